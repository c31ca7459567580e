// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// replaceWith is kubectl replace with an export of web.
func replaceWith(s *scene.Stage, export *unstructured.Unstructured) {
	s.T.Helper()
	s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
		o.Object["spec"] = export.DeepCopy().Object["spec"]
		o.SetLabels(export.GetLabels())
		o.SetAnnotations(export.GetAnnotations())
	})
}

// TestAnObjectThatIsReplacedIsHandled is law 1 for an object whose state goes back, or away, with its spec.
func TestAnObjectThatIsReplacedIsHandled(t *testing.T) {
	views := func(foo *dsl.Resource, j *kit.Journal) {
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
	scene.PlayAll(t, map[string]scene.Scenario{
		"by an older one: what has changed since is a change back": {Operator: views, Play: func(s *scene.Stage) {
			s.Begin()
			old := exportWeb(s)
			s.Resize(2)
			s.Called("changed update", "spec update", "sized update")
			replaceWith(s, old)
			s.Called("changed update", "spec update", "sized update")
			s.Advance(time.Hour)
			s.Called()
			s.Process.Restart()
			s.Called()
		}},
		"by an older one, and then by the newer one again": {Operator: views, Play: func(s *scene.Stage) {
			s.Begin()
			first := exportWeb(s)
			s.Resize(2)
			s.Forget()
			second := exportWeb(s)
			replaceWith(s, first)
			s.Called("changed update", "spec update", "sized update")
			replaceWith(s, second)
			s.Called("changed update", "spec update", "sized update")
		}},
		"by an older one while the operator is away: who looks at the whole spec runs once more": {Operator: views, Play: func(s *scene.Stage) {
			s.Begin()
			old := exportWeb(s)
			s.Resize(2)
			s.Forget()
			scene.Stop(s)
			replaceWith(s, old)
			s.Process.Restart()
			s.Called("changed update", "spec update")
			s.Advance(time.Hour)
			s.Called()
			s.Process.Restart()
			s.Called()
		}},
		"by an older one with another spec while the operator is away: who looks at what differs runs": {Operator: views, Play: func(s *scene.Stage) {
			s.Begin()
			old := exportWeb(s)
			s.Resize(2)
			s.Forget()
			scene.Stop(s)
			old.Object["spec"] = map[string]any{"size": int64(1), "color": "blue"}
			replaceWith(s, old)
			s.Process.Restart()
			s.Called("changed update", "spec update", "colored update")
		}},
		"by one without annotations and with another spec": {Operator: views, Play: func(s *scene.Stage) {
			s.Begin()
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { bare(o, 2) })
			s.Called("changed update", "spec update", "sized update")
			s.Process.Restart()
			s.Called()
		}},
		"by one without annotations and with the same spec": {Operator: views, Play: func(s *scene.Stage) {
			s.Begin()
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { bare(o, 1) })
			s.Called()
			s.Resize(2)
			s.Called("changed update", "spec update", "sized update")
		}},
		"by one whose state somebody has written by hand": {Operator: views, Play: func(s *scene.Stage) {
			s.Begin()
			other := exportWeb(s)
			s.Resize(2)
			s.Forget()
			s.Set(other.GetAnnotations()[scene.StateAnnotation], "metadata", "annotations", scene.StateAnnotation)
			s.Called()
			s.Resize(1)
			s.Called("changed update", "spec update", "sized update")
		}},
		"by an older one while a handler is to be tried again: it is tried for what is there now": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "size", j.Note("size", scene.Succeeds, scene.RetriesAfter(time.Hour), scene.Succeeds), dsl.Field("spec.size"))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				old := exportWeb(s)
				s.Resize(2)
				s.Called("size update")
				replaceWith(s, old)
				s.Called("size update")
				s.Advance(2 * time.Hour)
				s.Called()
			},
		},
	})
}

// TestAnObjectThatComesBackIsNew is law 7: what left the operator's selector or scope, and was released, is new
// when it comes back.
func TestAnObjectThatComesBackIsNew(t *testing.T) {
	gold := func(options ...dsl.Option) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.LabelSelector = "tier=gold"
			foo.OnCreate("made", j.Note("made"))
			foo.OnUpdate("changed", j.Note("changed"))
			foo.OnDelete("left", j.Note("left"), options...)
		}
	}
	tier := func(s *scene.Stage, value string) { s.Set(value, "metadata", "labels", "tier") }
	arrives := func(s *scene.Stage) {
		s.T.Helper()
		s.Launch()
		s.Create(scene.Web)
		tier(s, "gold")
		s.Called("made create")
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"it is new": {Operator: gold(), Play: func(s *scene.Stage) {
			arrives(s)
			for range 3 {
				tier(s, "iron")
				s.Called("left delete")
				tier(s, "gold")
				s.Called("made create")
				s.WantFinalizers(scene.Finalizer)
			}
			s.Resize(2)
			s.Called("changed update")
		}},
		"it is new where nothing holds objects": {Operator: gold(dsl.NoFinalizer()), Play: func(s *scene.Stage) {
			arrives(s)
			tier(s, "iron")
			s.Called("left delete")
			tier(s, "gold")
			s.Called("made create")
		}},
		"it is new after a restart": {Operator: gold(), Play: func(s *scene.Stage) {
			arrives(s)
			tier(s, "iron")
			s.Called("left delete")
			s.Process.Restart()
			tier(s, "gold")
			s.Called("made create")
		}},
		"it is new after a restart where nothing holds objects": {Operator: gold(dsl.NoFinalizer()), Play: func(s *scene.Stage) {
			arrives(s)
			tier(s, "iron")
			s.Called("left delete")
			s.Process.Restart()
			tier(s, "gold")
			s.Called("made create")
		}},
		"it is new when it comes back while the operator is away": {Operator: gold(), Play: func(s *scene.Stage) {
			arrives(s)
			tier(s, "iron")
			s.Called("left delete")
			scene.Stop(s)
			tier(s, "gold")
			s.Process.Restart()
			s.Called("made create")
		}},
	})
}
