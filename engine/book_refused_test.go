// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

// limited makes the server refuse Foos whose spec.limit or status.limit is larger than 500.
func (s *stage) limited() {
	s.Refuse(foos, func(o *unstructured.Unstructured) error {
		for _, part := range []string{"spec", "status"} {
			if n, _ := value(o, part+".limit").(int64); n > 500 {
				return apierrors.NewInvalid(schema.GroupKind{Group: "example.com", Kind: "Foo"}, o.GetName(),
					field.ErrorList{field.Invalid(field.NewPath(part, "limit"), n, "must be at most 500")})
			}
		}
		return nil
	})
}

// limits wants a limit of 400 for each of spec.size, in spec or in status.
func limits(part string) dsl.Func {
	return func(_ ctx, r *dsl.Request) error {
		n, _ := value(r.Object, "spec.size").(int64)
		if part == "status" {
			r.Patch.SetStatus("limit", n*400)
		} else {
			r.Patch.Set(part+".limit", n*400)
		}
		return nil
	}
}

// calls checks how often a handler was called for web since before.
func (s *stage) calls(handler string, before, least, most int) {
	s.t.Helper()
	s.Settle()
	if n := len(s.Of(handler, "web")) - before; n < least || n > most {
		s.t.Errorf("%s was called %d times, want %d to %d", handler, n, least, most)
	}
}

// warned checks whether an Event of a handler warns.
func (s *stage) warned(handler string) {
	s.t.Helper()
	for _, e := range s.Events() {
		if e.Type == "Warning" && e.Action == handler {
			return
		}
	}
	s.t.Errorf("no Event warns of handler %s: %v", handler, s.Events())
}

// TestARefusedPatchFailsItsHandler is law 9 for a patch that the server does not take: it is a failure of
// the handler whose patch it is, and of no other.
func TestARefusedPatchFailsItsHandler(t *testing.T) {
	two := func(part string, causes ...dsl.Cause) func(*dsl.Resource, *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.On(causes, "good", j.Note("good", reports))
			foo.On(causes, "bad", j.Note("bad", limits(part)), dsl.Retries(2))
			foo.On(causes, "last", j.Note("last", func(_ ctx, r *dsl.Request) error {
				r.Patch.SetStatus("copy", value(r.Object, "spec.size"))
				return nil
			}))
		}
	}
	mended := func(part string) func(s *stage) {
		return func(s *stage) {
			s.limited()
			s.begin()
			before := map[string]int{}
			for _, id := range []string{"good", "bad", "last"} {
				before[id] = len(s.Of(id, "web"))
			}
			s.size(2)
			s.Advance(time.Hour)
			s.calls("good", before["good"], 1, 1)
			s.calls("bad", before["bad"], 1, 3)
			s.calls("last", before["last"], 1, 2) // it may have seen what the server then refused
			s.at("status.size", int64(2))
			s.at("status.copy", int64(2))
			s.warned("bad")
			s.size(1) // a person mends it
			s.Advance(time.Minute)
			s.at(part+".limit", int64(400))
			s.at("status.copy", int64(1))
		}
	}
	deleting := func(options ...dsl.Option) func(*dsl.Resource, *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.OnDelete("good", j.Note("good"))
			foo.OnDelete("bad", j.Note("bad", limits("spec")), append(options, dsl.Retries(1))...)
		}
	}
	scenarios(t, map[string]scenario{
		"level-triggered handlers beside it run once":                 {two("spec", dsl.Reconcile), mended("spec")},
		"handlers of create and update beside it run once":            {two("spec", dsl.Create, dsl.Update), mended("spec")},
		"level-triggered handlers run once beside one of status":      {two("status", dsl.Reconcile), mended("status")},
		"handlers of create and update run once beside one of status": {two("status", dsl.Create, dsl.Update), mended("status")},
		"what others did is not repeated after a restart, whatever becomes of it": {two("spec", dsl.Create, dsl.Update), func(s *stage) {
			s.limited()
			s.begin()
			s.size(2)
			s.Advance(time.Hour)
			before := len(s.Of("good", "web"))
			s.Process.Restart()
			s.Advance(time.Hour)
			s.calls("good", before, 0, 0)
		}},
		"it does not hold an object that its handler lets go": {deleting(dsl.Release()), func(s *stage) {
			s.limited()
			s.begin()
			s.size(2)
			s.remove()
			s.Advance(time.Hour)
			s.calls("good", 0, 1, 1)
			s.calls("bad", 0, 1, 2)
			if s.web() != nil {
				s.t.Error("the object is still there")
			}
		}},
		"it holds an object as any failing delete handler does, and is named": {deleting(), func(s *stage) {
			s.limited()
			s.begin()
			s.size(2)
			s.remove()
			s.Advance(time.Hour)
			s.calls("good", 0, 1, 1)
			s.calls("bad", 0, 1, 2)
			s.warned("bad")
			if s.web() == nil {
				s.t.Error("the object is gone")
			}
			s.size(1) // a person mends it
			s.Advance(time.Minute)
			s.calls("good", 0, 1, 1)
			if s.web() != nil {
				s.t.Error("the object is still there")
			}
		}},
	})
}

// crowded is a web whose spec takes a lot of room, and which has annotations of others that leave room for
// so many bytes.
func crowded(blob, room int) string {
	return fmt.Sprintf(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, annotations: {theirs: %s}},
		spec: {size: 1, color: red, blob: %q}}`, strings.Repeat("x", 256<<10-len("theirs")-room), noise(blob))
}

// TestAnnotationsOfOthersLeaveLittleRoom holds that what is kept on an object gives way to what others
// keep there: no write of the operator is refused for it, and nothing is repeated.
func TestAnnotationsOfOthersLeaveLittleRoom(t *testing.T) {
	keeps := func(foo *dsl.Resource, j *journal) {
		foo.On(both(), "changed", j.Note("changed", reports))
		foo.OnDelete("left", j.Note("left"))
	}
	handled := func(s *stage) {
		s.Advance(time.Hour)
		s.taken()
		s.Called("changed create")
		s.size(2)
		s.Advance(time.Hour)
		s.taken()
		s.Called("changed update")
		s.at("status.size", int64(2))
	}
	scenarios(t, map[string]scenario{
		"the essence gives way": {keeps, func(s *stage) {
			s.Launch()
			s.Create(crowded(130<<10, 60<<10))
			handled(s)
			s.Process.Restart()
			s.Advance(time.Hour)
			s.Called()
			s.size(3)
			s.Called("changed update")
			s.taken()
		}},
		"it gives way when others come later": {keeps, func(s *stage) {
			s.Launch()
			s.Create(crowded(100<<10, 140<<10))
			handled(s)
			s.set(strings.Repeat("x", 160<<10), "metadata", "annotations", "theirs")
			s.set(noise(150<<10), "spec", "blob")
			s.Advance(time.Hour)
			s.Forget()
			s.size(3)
			s.Advance(time.Hour)
			s.Called("changed update")
			s.taken()
		}},
		"an object is handled and let go where there is no room at all": {keeps, func(s *stage) {
			s.Launch()
			s.Create(crowded(0, 10))
			handled(s)
			s.remove()
			s.Called("left delete")
			s.taken()
			if s.web() != nil {
				s.t.Error("the object is still there")
			}
		}},
	})
}

// taken checks that no write since the last look was refused.
func (s *stage) taken() {
	s.t.Helper()
	s.Settle()
	writes := s.Writes()
	for _, w := range writes {
		if w.Code >= 400 {
			s.t.Errorf("of %d writes one was refused: %s", len(writes), w)
			return
		}
	}
}

// TestLargeNumbersDiffer holds that whole numbers which no floating-point number tells apart are written.
func TestLargeNumbersDiffer(t *testing.T) {
	const large = 1 << 53
	writing := func(write dsl.Func) func(*dsl.Resource, *journal) {
		return func(foo *dsl.Resource, j *journal) { foo.OnReconcile("write", j.Note("write", write)) }
	}
	grow := func(path string) func(s *stage) {
		return func(s *stage) {
			s.begin()
			s.size(large)
			s.at(path, int64(large))
			s.size(large + 1)
			s.at(path, int64(large+1))
		}
	}
	scenarios(t, map[string]scenario{
		"in status": {writing(reports), grow("status.size")},
		"in spec":   {writing(copies("spec.size", "spec.copy")), grow("spec.copy")},
		"what changed by one is an update": {
			func(foo *dsl.Resource, j *journal) { foo.OnField("spec.size", "changed", j.Note("changed")) },
			func(s *stage) {
				s.begin()
				s.size(large)
				s.Settle()
				s.size(large + 1)
				s.Called("changed update", "changed update")
			},
		},
	})
	enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
		c.Serve(enginetest.Resource{Name: foos, Kind: "Foo"}, enginetest.Resource{Name: bars, Kind: "Bar"})
		s := newStage(t, c)
		s.Operator.Resource(foos, func(foo *dsl.Resource) {
			foo.Owns(bars)
			foo.OnReconcile("child", func(c ctx, r *dsl.Request) error {
				_, err := r.Children.Apply(c, map[string]any{
					"apiVersion": "example.org/v1", "kind": "Bar", "metadata": map[string]any{"name": "web"},
					"spec": map[string]any{"size": value(r.Object, "spec.size")},
				})
				return err
			})
		})
		s.begin()
		for _, n := range []int64{large, large + 1} {
			s.size(n)
			s.Settle()
			if got := value(s.Get(bars, "default", "web"), "spec.size"); got != n {
				t.Errorf("in a child spec.size is %v, want %d", got, n)
			}
		}
		s.Update(bars, "default", "web", func(o *unstructured.Unstructured) { // drift
			o.Object["spec"] = map[string]any{"size": int64(large)}
		})
		s.Settle()
		if got := value(s.Get(bars, "default", "web"), "spec.size"); got != int64(large+1) {
			t.Errorf("drift of a child by one is left: %v", got)
		}
	})
}
