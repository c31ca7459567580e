// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package causes_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// notesEvents notes the events that a handler gets, then does the rest.
func notesEvents(j *kit.Journal, id string, then ...dsl.Func) dsl.Func {
	return func(c context.Context, r *dsl.Request) error {
		j.Add(fmt.Sprint(id, " ", r.Event, " ", scene.ValueAt(r.Object, "spec.size")))
		for _, fn := range then {
			if err := fn(c, r); err != nil {
				return err
			}
		}
		return nil
	}
}

// TestAnEventHandlerRunsOnceForAnEvent holds that a handler of events which is through with one does not hear of it again when
// the reconcile that ran it could not be finished, and that one which is not through with it does.
func TestAnEventHandlerRunsOnceForAnEvent(t *testing.T) {
	refused := errors.New("connection refused")
	for name, c := range map[string]struct {
		handlers func(foo *dsl.Resource, j *kit.Journal)
		// refused is a request that fails while the size is set to 2.
		verb, resource string
		want           []string
	}{
		"it is through, and another one's change is refused": {
			func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnEvent("see", notesEvents(j, "see"))
				foo.OnReconcile("status", scene.ReportsSize)
			}, "patch", scene.Foos + "/status", []string{"see MODIFIED 2", "see MODIFIED 2"}, // one is for the status
		},
		"it comes after the one whose change is refused": {
			func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("status", scene.ReportsSize)
				foo.OnEvent("see", notesEvents(j, "see"))
			}, "patch", scene.Foos + "/status", []string{"see MODIFIED 2", "see MODIFIED 2"},
		},
		"one fails, and is tried again, and another one is through": {
			func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnEvent("fails", notesEvents(j, "fails", scene.FailsOnce))
				foo.OnEvent("see", notesEvents(j, "see"))
				foo.OnReconcile("status", scene.ReportsSize)
			}, "patch", scene.Foos + "/status", []string{"fails MODIFIED 2", "see MODIFIED 2", "fails MODIFIED 2", "see MODIFIED 2", "fails MODIFIED 2"},
		},
		"before the one whose finalizer is refused": {
			func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnDelete("bye", scene.Succeeds, dsl.When(func(r *dsl.Subject) (bool, error) { return scene.ValueAt(r.Object, "spec.size") != int64(1), nil }))
				foo.OnEvent("see", notesEvents(j, "see"))
			}, "patch", scene.Foos, []string{"see MODIFIED 2", "see MODIFIED 2"}, // one is for the finalizer
		},
	} {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: c.handlers, Play: func(s *scene.Stage) {
				s.Begin()
				s.Advance(time.Hour)
				s.Forget()
				end := s.FailWhile(c.verb, c.resource, refused)
				s.Resize(2)
				s.Advance(10 * time.Minute)
				if n := end(); n < 3 {
					t.Errorf("%d requests were refused", n)
				}
				s.Advance(2 * time.Hour)
				s.Called(c.want...)
			}})
		})
	}
}

// TestAnEventHandlerRunsOnceForANewObject holds the same of an object that is new to the process.
func TestAnEventHandlerRunsOnceForANewObject(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
		foo.OnEvent("see", notesEvents(j, "see"))
		foo.OnReconcile("status", scene.ReportsSize)
	}, Play: func(s *scene.Stage) {
		s.Launch()
		end := s.FailWhile("patch", scene.Foos+"/status", errors.New("connection refused"))
		s.Create(scene.Web)
		s.Advance(10 * time.Minute)
		s.Called("see ADDED 1")
		end()
		s.Advance(time.Hour)
		s.Called("see MODIFIED 1")
	}})
}

// TestAnEventHandlerRunsOnceForADeletion holds that handlers of events hear of a deletion once, also where the reconcile that was to
// say that it broke off.
func TestAnEventHandlerRunsOnceForADeletion(t *testing.T) {
	offers := func(_ context.Context, r *dsl.Request) error {
		if r.Event != "" && r.Event != "DELETED" {
			return nil
		}
		r.Patch.OfferCondition("Ready", "True", "Offered", "offered")
		return nil
	}
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
		foo.OnEvent("early", notesEvents(j, "early"))
		foo.OnEvent("offers", notesEvents(j, "offers", offers))
		foo.OnEvent("late", notesEvents(j, "late"))
	}, Play: func(s *scene.Stage) {
		end := s.FailWhile("get", scene.CRDs, errors.New("connection refused"))
		s.Begin()
		s.Remove()
		s.Advance(time.Minute)
		if n := end(); n < 3 { // one at the start
			s.T.Errorf("the schema was asked for %d times", n)
		}
		s.Advance(time.Hour)
		got := map[string]int{}
		for _, line := range s.Take() {
			got[line]++
		}
		if got["early DELETED 1"] != 1 || got["late DELETED 1"] != 1 || got["offers DELETED 1"] < 2 {
			s.T.Errorf("what they heard of the deletion is %v", got)
		}
	}})
}

// TestAnEventHandlerSeesThatAnObjectIsAnotherOne holds that handlers of events hear that an object is another one.
func TestAnEventHandlerSeesThatAnObjectIsAnotherOne(t *testing.T) {
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, j *kit.Journal) {
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
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.FailNext("patch", scene.Foos+"/status", errors.New("no"))
			s.Resize(2)
			s.Advance(5 * time.Second)
			s.Delete(scene.Foos, "default", "web")
			o := s.Create(scene.Web)
			s.Advance(time.Hour)
			got := s.Take()
			for _, line := range got {
				if line == fmt.Sprint("ADDED ", o.GetUID()) {
					return
				}
			}
			t.Errorf("no handler gets the event ADDED of the new object")
		},
	})
}
