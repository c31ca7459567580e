// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// replace is kubectl replace with an export of web.
func (s *stage) replace(export *unstructured.Unstructured) {
	s.t.Helper()
	s.Update(foos, "default", "web", func(o *unstructured.Unstructured) {
		o.Object["spec"] = export.DeepCopy().Object["spec"]
		o.SetLabels(export.GetLabels())
		o.SetAnnotations(export.GetAnnotations())
	})
}

// TestObjectsThatAreReplaced is law 1 for an object whose state goes back, or away, with its spec.
func TestObjectsThatAreReplaced(t *testing.T) {
	views := func(foo *dsl.Resource, j *journal) {
		foo.OnCreate("made", j.Note("made"))
		foo.OnUpdate("changed", j.Note("changed"))
		foo.OnField("spec", "spec", j.Note("spec"))
		foo.OnField("spec.size", "sized", j.Note("sized"))
		foo.OnField("spec.color", "colored", j.Note("colored"))
	}
	bare := func(o *unstructured.Unstructured, size int64) {
		o.SetAnnotations(nil)
		o.Object["spec"] = map[string]any{"size": size, "color": "red"}
	}
	scenarios(t, map[string]scenario{
		"by an older one: what has changed since is a change back": {views, func(s *stage) {
			s.begin()
			old := s.export()
			s.size(2)
			s.Called("changed update", "spec update", "sized update")
			s.replace(old)
			s.Called("changed update", "spec update", "sized update")
			s.Advance(time.Hour)
			s.Called()
			s.Process.Restart()
			s.Called()
		}},
		"by an older one, and then by the newer one again": {views, func(s *stage) {
			s.begin()
			first := s.export()
			s.size(2)
			s.Forget()
			second := s.export()
			s.replace(first)
			s.Called("changed update", "spec update", "sized update")
			s.replace(second)
			s.Called("changed update", "spec update", "sized update")
		}},
		"by an older one while the operator is away: who looks at the whole spec runs once more": {views, func(s *stage) {
			s.begin()
			old := s.export()
			s.size(2)
			s.Forget()
			stop(s)
			s.replace(old)
			s.Process.Restart()
			s.Called("changed update", "spec update")
			s.Advance(time.Hour)
			s.Called()
			s.Process.Restart()
			s.Called()
		}},
		"by an older one with another spec while the operator is away: who looks at what differs runs": {views, func(s *stage) {
			s.begin()
			old := s.export()
			s.size(2)
			s.Forget()
			stop(s)
			old.Object["spec"] = map[string]any{"size": int64(1), "color": "blue"}
			s.replace(old)
			s.Process.Restart()
			s.Called("changed update", "spec update", "colored update")
		}},
		"by one without annotations and with another spec": {views, func(s *stage) {
			s.begin()
			s.Update(foos, "default", "web", func(o *unstructured.Unstructured) { bare(o, 2) })
			s.Called("changed update", "spec update", "sized update")
			s.Process.Restart()
			s.Called()
		}},
		"by one without annotations and with the same spec": {views, func(s *stage) {
			s.begin()
			s.Update(foos, "default", "web", func(o *unstructured.Unstructured) { bare(o, 1) })
			s.Called()
			s.size(2)
			s.Called("changed update", "spec update", "sized update")
		}},
		"by one whose state somebody has written by hand": {views, func(s *stage) {
			s.begin()
			other := s.export()
			s.size(2)
			s.Forget()
			s.set(other.GetAnnotations()[state], "metadata", "annotations", state)
			s.Called()
			s.size(1)
			s.Called("changed update", "spec update", "sized update")
		}},
		"by an older one while a handler is to be tried again: it is tried for what is there now": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "size", j.Note("size", succeeds, temporary(time.Hour), succeeds), dsl.Field("spec.size"))
			}, func(s *stage) {
				s.begin()
				old := s.export()
				s.size(2)
				s.Called("size update")
				s.replace(old)
				s.Called("size update")
				s.Advance(2 * time.Hour)
				s.Called()
			},
		},
	})
}

// TestObjectsThatComeBack is law 7: what left the operator's selector or scope, and was seen off, is new
// when it comes back.
func TestObjectsThatComeBack(t *testing.T) {
	gold := func(options ...dsl.Option) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.LabelSelector = "tier=gold"
			foo.OnCreate("made", j.Note("made"))
			foo.OnUpdate("changed", j.Note("changed"))
			foo.OnDelete("left", j.Note("left"), options...)
		}
	}
	tier := func(s *stage, value string) { s.set(value, "metadata", "labels", "tier") }
	arrives := func(s *stage) {
		s.t.Helper()
		s.Launch()
		s.Create(web)
		tier(s, "gold")
		s.Called("made create")
	}
	scenarios(t, map[string]scenario{
		"it is new": {gold(), func(s *stage) {
			arrives(s)
			for range 3 {
				tier(s, "iron")
				s.Called("left delete")
				tier(s, "gold")
				s.Called("made create")
				s.finalizers(finalizer)
			}
			s.size(2)
			s.Called("changed update")
		}},
		"it is new where nothing holds objects": {gold(dsl.NoFinalizer()), func(s *stage) {
			arrives(s)
			tier(s, "iron")
			s.Called("left delete")
			tier(s, "gold")
			s.Called("made create")
		}},
		"it is new after a restart": {gold(), func(s *stage) {
			arrives(s)
			tier(s, "iron")
			s.Called("left delete")
			s.Process.Restart()
			tier(s, "gold")
			s.Called("made create")
		}},
		"it is new after a restart where nothing holds objects": {gold(dsl.NoFinalizer()), func(s *stage) {
			arrives(s)
			tier(s, "iron")
			s.Called("left delete")
			s.Process.Restart()
			tier(s, "gold")
			s.Called("made create")
		}},
		"it is new when it comes back while the operator is away": {gold(), func(s *stage) {
			arrives(s)
			tier(s, "iron")
			s.Called("left delete")
			stop(s)
			tier(s, "gold")
			s.Process.Restart()
			s.Called("made create")
		}},
	})
}
