// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

func (s *stage) condOf(kind string) string {
	s.t.Helper()
	s.Settle()
	list, _, _ := unstructured.NestedSlice(s.web().Object, "status", "conditions")
	for _, item := range list {
		c := item.(map[string]any)
		if c["type"] == kind {
			return fmt.Sprint(c["status"], "@", c["observedGeneration"])
		}
	}
	return "none"
}

// TestViewsOfOnePathAreTwo holds that a view of a path alone is another one than the essence with that path.
func TestViewsOfOnePathAreTwo(t *testing.T) {
	set := `{id: a, set: {status: {seen: "${self.status.phase}"}}}`
	log := `{id: b, log: {message: "${self.status.phase}"}}`
	for name, handlers := range map[string]string{"set first": set + "," + log, "log first": log + "," + set} {
		t.Run(name, func(t *testing.T) {
			written(t, `{resource: foos.v1.example.com, handlers: [`+handlers+`]}`, func(s *stage) {
				s.Create(furnished)
				s.Launch()
				s.Settle()
				a, b := len(s.Of("a", "web")), len(s.Of("b", "web"))
				s.set("blue", "spec", "color")
				s.Settle()
				if n := len(s.Of("a", "web")) - a; n != 0 {
					t.Errorf("the set that reads status.phase ran %d times for spec.color", n)
				}
				if n := len(s.Of("b", "web")) - b; n != 1 {
					t.Errorf("the log, which looks at all but the status, ran %d times for spec.color", n)
				}
			})
		})
	}
}

// TestConditionsWithoutASubresourceRest holds that conditions are not restated where each write of the status is another
// generation.
func TestConditionsWithoutASubresourceRest(t *testing.T) {
	enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
		c.Serve(enginetest.Resource{Name: foos, Kind: "Foo", NoStatus: true})
		s := newStage(t, c)
		op, err := parse(`{resource: foos.v1.example.com, handlers: [{id: a, set: {conditions: [{type: Sized, status: "${self.spec.size > 0}"}]}}]}`)
		if err != nil {
			t.Fatal(err)
		}
		s.Operator = op
		var n atomic.Int64
		c.Refuse(foos, func(*unstructured.Unstructured) error {
			if n.Add(1) > 500 {
				return errors.New("enough")
			}
			return nil
		})
		s.Launch()
		s.Create(web)
		s.Settle()
		if n.Load() > 10 {
			t.Errorf("%d writes though nobody did anything", n.Load())
		}
	})
}

// TestAChildOfAComputedKindIsPutBack holds that apply is woken by children whose kind is worked out, too.
func TestAChildOfAComputedKindIsPutBack(t *testing.T) {
	written(t, `{resource: foos.v1.example.com, owns: [configmaps.v1, secrets.v1], handlers: [{id: config,
		needs: [{resource: configmaps, verbs: [get, create, patch, delete]}, {resource: secrets, verbs: [get, create, patch, delete]}],
		apply: {config: {apiVersion: v1, kind: "${self.spec.color == 'blue' ? 'Secret' : 'ConfigMap'}", metadata: {name: "${self.metadata.name}"}, data: {a: b}}}}]}`, func(s *stage) {
		s.begin()
		s.Settle()
		if s.Get(configMaps, "default", "web") == nil {
			t.Fatal("no child")
		}
		s.Delete(configMaps, "default", "web")
		s.Advance(time.Hour)
		if s.Get(configMaps, "default", "web") == nil {
			t.Error("the child that somebody deleted is not put back")
		}
	})
}

// TestWhatIsSaidNowCountsMore holds that a condition which one handler sets is not overwritten by what another one
// that rests has said before.
func TestWhatIsSaidNowCountsMore(t *testing.T) {
	written(t, `{resource: foos.v1.example.com, handlers: [
		{id: a, set: {conditions: [{type: Ready, status: "${self.spec.size > 0}"}]}},
		{id: b, when: self.spec.color == 'blue', set: {conditions: [{type: Ready, status: false, reason: Blue}]}}]}`, func(s *stage) {
		s.begin()
		s.set("blue", "spec", "color")
		s.Advance(time.Minute)
		if got := s.condOf("Ready"); got != "False@2" {
			t.Errorf("b has set it to False in generation 2, and it is %s", got)
		}
	})
}

// TestWhatFailedIsNotRestated holds that what a handler has said is not said of a generation that it failed with.
func TestWhatFailedIsNotRestated(t *testing.T) {
	written(t, `{resource: foos.v1.example.com, handlers: [{id: a, set: {conditions: [{type: Sized, status: "${self.spec.size > 0}", reason: "${self.spec.why}"}]}}]}`, func(s *stage) {
		s.Launch()
		s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 1, why: Good}}`)
		s.Settle()
		s.Update(foos, "default", "web", func(o *unstructured.Unstructured) {
			o.Object["spec"] = map[string]any{"size": int64(0), "why": "not good"}
		})
		s.Advance(time.Minute)
		s.set("x", "metadata", "labels", "any")
		s.Advance(time.Minute)
		if got := s.condOf("Sized"); got != "True@1" && got != "False@2" {
			t.Errorf("size is 0 in generation 2 and the handler has failed; the condition says %s", got)
		}
		s.set("y", "spec", "other")
		s.Advance(time.Minute)
		if got := s.condOf("Sized"); got == "True@3" {
			t.Errorf("size is 0 in generation 3 and the handler has failed; the condition says %s", got)
		}
	})
}

// TestASuccessorIsAdded holds that handlers of events hear that an object is another one.
func TestASuccessorIsAdded(t *testing.T) {
	perform(t, scenario{
		func(foo *dsl.Resource, j *journal) {
			foo.OnEvent("see", func(_ context.Context, r *dsl.Request) error {
				j.Add(fmt.Sprint(r.Event, " ", r.Object.GetUID()))
				return nil
			})
			foo.OnReconcile("slow", func(c context.Context, r *dsl.Request) error {
				size, _ := dsl.MustParsePath("spec.size").In(r.Object.Object)
				r.Patch.SetStatus("size", size)
				if size == int64(2) {
					time.Sleep(10 * time.Second) // of the bubble: that long the handler takes
				}
				return nil
			})
		}, func(s *stage) {
			s.begin()
			s.FailNext("patch", foos+"/status", errors.New("no"))
			s.size(2)
			s.Advance(5 * time.Second)
			s.Delete(foos, "default", "web")
			o := s.Create(web)
			s.Advance(time.Hour)
			got := s.Take()
			for _, line := range got {
				if line == fmt.Sprint("ADDED ", o.GetUID()) {
					return
				}
			}
			t.Errorf("of the new object nobody is told that it is ADDED")
		},
	})
}

// TestTakenBackWhileItWaits is law 1 for a handler that has begun with a change and waits: when that is taken
// back, what it has begun may have to be undone.
func TestTakenBackWhileItWaits(t *testing.T) {
	wait := func(c context.Context, r *dsl.Request) error {
		if size, _ := dsl.MustParsePath("spec.size").In(r.Object.Object); size != int64(1) {
			return dsl.Waiting("rain", 0)
		}
		return nil
	}
	play := func(s *stage) {
		s.begin()
		s.size(2)
		s.Called("h update")
		s.size(1)
		s.Settle()
		s.Advance(time.Hour)
		calls := s.Of("h", "web")
		if got := value(calls[len(calls)-1].Object, "spec.size"); got != int64(1) {
			s.t.Errorf("it has begun with 2 and waited; the change is taken back, and an hour later it was last called for %v", got)
		}
	}
	scenarios(t, map[string]scenario{
		"update": {func(foo *dsl.Resource, j *journal) {
			foo.OnUpdate("h", j.Note("h", wait))
		}, play},
		"level": {func(foo *dsl.Resource, j *journal) {
			foo.OnReconcile("h", j.Note("h", wait))
		}, play},
	})
}
