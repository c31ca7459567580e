// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// restores are ways to make web again from what it was, with its status.
var restores = map[string]func(s *scene.Stage, was *unstructured.Unstructured){
	"its status": func(s *scene.Stage, was *unstructured.Unstructured) {
		s.Create(scene.Web)
		s.Set(was.Object["status"], "status")
	},
	"its status and its managedFields": func(s *scene.Stage, was *unstructured.Unstructured) {
		s.Create(scene.Web)
		s.Set(was.Object["status"], "status")
		s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetManagedFields(was.GetManagedFields()) })
	},
	"all but its UID": func(s *scene.Stage, was *unstructured.Unstructured) {
		was.SetUID("another")
		was.SetResourceVersion("")
		s.Load(was)
	},
}

// TestAnObjectRestoredWithItsStatusIsNew holds that the number in status.observedGeneration counts for the object alone for which
// it was written: what was made from a backup is handled as a new object, once.
func TestAnObjectRestoredWithItsStatusIsNew(t *testing.T) {
	versions := map[string]func(foo *dsl.Resource){
		"":                                  func(*dsl.Resource) {},
		", by a version without the number": func(foo *dsl.Resource) { foo.ObservedGeneration = false },
		", the cache holds the spec":        func(foo *dsl.Resource) { foo.Keep = []dsl.Path{{"spec"}} },
		", the cache holds keys":            func(foo *dsl.Resource) { foo.Cache = dsl.CacheLive },
	}
	for what, restore := range restores {
		for version, change := range versions {
			t.Run(what+version, func(t *testing.T) {
				playSwitched(t, true, madeAndChanged, func(s *scene.Stage, foo *dsl.Resource) {
					s.Begin()
					was := s.Web()
					s.Process.Kill()
					s.Remove()
					restore(s, was)
					if observedGeneration(s) != s.Web().GetGeneration() {
						t.Fatal("the number was not restored")
					}
					change(foo)
					s.Process.Restart()
					s.Called("made create", "h create")
					wantAllObserved(s)
					s.Process.Restart()
					s.Called()
					s.Resize(2)
					s.Called("h update")
					s.Process.Writes()
					s.Process.Restart()
					s.Called()
					s.Wrote()
				})
			})
		}
	}
}

// TestAnObservedGenerationOfAnotherWriterIsReplaced holds that what was handled is known although somebody has written the
// number that the operator would have written, and that the number alone says so again after the next change.
func TestAnObservedGenerationOfAnotherWriterIsReplaced(t *testing.T) {
	theirs := func(s *scene.Stage, n int64) { s.Set(n, "status", "observedGeneration") }
	const untracked = "managedFields are taken away"
	for name, play := range map[string]func(s *scene.Stage){
		"it is there first": func(s *scene.Stage) {
			s.Create(scene.Web)
			theirs(s, 1)
			s.Launch()
			s.Called("made create", "h create")
		},
		untracked: func(s *scene.Stage) {
			s.Begin()
			s.Set([]any{map[string]any{}}, "metadata", "managedFields")
			s.Called()
		},
		"it is another one": func(s *scene.Stage) {
			s.Create(scene.Web)
			theirs(s, 5)
			s.Launch()
			s.Called("made create", "h create")
			wantAllObserved(s)
		},
		"it is written over the operator's": func(s *scene.Stage) {
			s.Begin()
			end := s.FailWhile("patch", scene.Foos+"/status", scene.ErrAgain)
			theirs(s, 9)
			s.Advance(time.Second)
			theirs(s, 1)
			end()
			s.Advance(time.Hour)
			s.Called()
		},
	} {
		t.Run(name, func(t *testing.T) {
			playSwitched(t, true, madeAndChanged, func(s *scene.Stage, _ *dsl.Resource) {
				play(s)
				s.Process.Restart()
				s.Called()
				s.Resize(2)
				s.Called("h update")
				wantAllObserved(s)
				if notes := s.Web().GetAnnotations(); len(notes) > 0 && name != untracked { // the server does not keep who writes then
					t.Errorf("the number says all, and there are annotations: %v", notes)
				}
				s.Forget()
				s.Process.Restart()
				s.Called()
				s.Wrote()
			})
		})
	}
}

// TestAnObservedGenerationOfAnotherWriterThatComesTrueIsReplaced holds that what was handled is known where a handler's own
// change of the spec makes the generation to which somebody has set the number before.
func TestAnObservedGenerationOfAnotherWriterThatComesTrueIsReplaced(t *testing.T) {
	playSwitched(t, true, func(foo *dsl.Resource, j *kit.Journal) {
		foo.OnCreate("made", j.Note("made"))
		foo.On(scene.CreateAndUpdate(), "h", j.Note("h", func(_ context.Context, r *dsl.Request) error {
			r.Patch.Set("spec.double", 2*scene.SizeOf(r.Object))
			return nil
		}), bySpec()...)
	}, func(s *scene.Stage, _ *dsl.Resource) {
		s.Create(scene.Web)
		s.Set(int64(2), "status", "observedGeneration")
		s.Launch()
		s.Called("made create", "h create")
		wantAllObserved(s)
		s.Process.Restart()
		s.Called()
	})
}
