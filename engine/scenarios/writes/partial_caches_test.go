// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package writes_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// conditionTypes names the conditions of an object.
func conditionTypes(o *unstructured.Unstructured) string {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	var out []string
	for _, c := range list {
		kind, _ := c.(map[string]any)["type"].(string)
		out = append(out, kind)
	}
	return strings.Join(out, " ")
}

// TestConditionsOfOthersStayWithAPartialCache holds that conditions of others are there after the server has refused what a
// handler wants: what others want, or the handler at its next try, is sent by itself then.
func TestConditionsOfOthersStayWithAPartialCache(t *testing.T) {
	profiles := map[string]func(*dsl.Resource){
		"all is cached":    func(*dsl.Resource) {},
		"a part is cached": func(foo *dsl.Resource) { foo.Keep = []dsl.Path{{"spec", "size"}, {"spec", "bad"}} },
	}
	for name, set := range profiles {
		for which, alone := range map[string]bool{"another handler is refused": false, "it was refused itself": true} {
			for _, bare := range []bool{false, true} {
				t.Run(name+", "+which+map[bool]string{true: ", without a status subresource"}[bare], func(t *testing.T) {
					kit.Run(t, func(t *testing.T, c *kit.Cluster) {
						c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo", NoStatus: bare})
						conditionsStay(scene.NewStage(t, c), set, alone)
					})
				})
			}
		}
	}
}

// conditionsStay plays it, alone with one handler, which wants something wrong at first.
func conditionsStay(s *scene.Stage, set func(*dsl.Resource), alone bool) {
	marks := func(r *dsl.Request) error {
		r.Patch.SetCondition("Ready", metav1.ConditionTrue, "Done", "it is")
		r.Patch.Remove("spec.size")
		return nil
	}
	wrong := func(r *dsl.Request) error {
		r.Patch.Set("spec.bad", "yes")
		return nil
	}
	s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
		set(foo)
		if !alone {
			foo.OnCreate("good", s.Note("good", func(_ context.Context, r *dsl.Request) error { return marks(r) }))
		}
		foo.OnCreate("bad", s.Note("bad", func(_ context.Context, r *dsl.Request) error {
			if alone && r.Attempt > 1 {
				return marks(r)
			}
			return wrong(r)
		}), dsl.Retries(2))
	})
	s.Refuse(scene.Foos, func(o *unstructured.Unstructured) error {
		if _, bad, _ := unstructured.NestedString(o.Object, "spec", "bad"); bad {
			return apierrors.NewInvalid(schema.GroupKind{Group: "example.com", Kind: "Foo"}, o.GetName(), nil)
		}
		return nil
	})
	s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 1, color: red},
		status: {conditions: [{type: Other, status: "True", reason: Theirs, message: x, lastTransitionTime: "2000-01-01T00:00:00Z"}]}}`)
	s.Launch()
	s.Advance(10 * time.Minute)
	if got := conditionTypes(s.Web()); !strings.Contains(got, "Other") || !strings.Contains(got, "Ready") {
		s.T.Errorf("its conditions are %q", got)
	}
	if _, there, _ := unstructured.NestedFieldNoCopy(s.Web().Object, "spec", "size"); there {
		s.T.Error("what a handler removes is there still")
	}
}

// TestTheObservedGenerationFollowsWithAPartialCache holds that status.observedGeneration is that of what was handled, where
// a handler that runs for creations alone is beside others, and that a process finds it also where the cache holds a part of
// the object.
func TestTheObservedGenerationFollowsWithAPartialCache(t *testing.T) {
	for name, keep := range map[string][]dsl.Path{"all is cached": nil, "one field is cached": {{"spec"}}} {
		t.Run(name, func(t *testing.T) {
			kit.Run(t, func(t *testing.T, c *kit.Cluster) {
				c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo", ObservedGeneration: true})
				s := scene.NewStage(t, c)
				s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
					foo.Keep = keep
					foo.OnCreate("c", s.Note("c"), dsl.Needs("patch", "self/status"))
					foo.OnUpdate("u", s.Note("u"), dsl.Field("spec"), dsl.NoOld())
				})
				s.Begin()
				for _, color := range []string{"green", "blue", "black"} {
					s.Set(color, "spec", "color")
					s.Called("u update")
					observed, _, _ := unstructured.NestedInt64(s.Web().Object, "status", "observedGeneration")
					if now := s.Web().GetGeneration(); observed != now {
						t.Errorf("all is handled, and observedGeneration is %d of %d", observed, now)
					}
				}
				s.Process.Restart()
				s.Forget()
				s.Advance(time.Minute)
				s.Called()
			})
		})
	}
}

// TestTheNextObjectOfANameIsHandled holds that an object is handled while it cannot be found out what became of the one before
// it of its name.
func TestTheNextObjectOfANameIsHandled(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
		foo.LabelSelector = "tier=gold"
		foo.OnCreate("c", j.Note("c"))
		foo.OnDelete("d", j.Note("d"))
	}, Play: func(s *scene.Stage) {
		const gold = `{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, labels: {tier: gold}}, spec: {size: 1}}`
		s.Launch()
		s.Create(gold)
		s.Called("c create")
		allow := s.FailWhile("get", scene.Foos, apierrors.NewForbidden(schema.GroupResource{Group: "example.com", Resource: "foos"}, "web", errors.New("no")))
		s.LabelTier("")
		s.Advance(time.Minute)
		s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
		s.Remove()
		s.Forget()
		s.Create(gold)
		s.Advance(10 * time.Minute)
		s.Called("c create")
		allow()
	}})
}
