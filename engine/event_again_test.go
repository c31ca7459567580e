// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// hears notes the events that a handler is told, then does the rest.
func hears(j *journal, id string, then ...dsl.Func) dsl.Func {
	return func(c ctx, r *dsl.Request) error {
		j.Add(fmt.Sprint(id, " ", r.Event, " ", value(r.Object, "spec.size")))
		for _, fn := range then {
			if err := fn(c, r); err != nil {
				return err
			}
		}
		return nil
	}
}

// sizes is a handler that sets status.size.
func sizes(_ ctx, r *dsl.Request) error {
	r.Patch.SetStatus("size", value(r.Object, "spec.size"))
	return nil
}

// TestAnEventIsToldOnce holds that a handler of events which is through with one does not hear of it again when
// the pass that told it could not be finished, and that one which is not through with it does.
func TestAnEventIsToldOnce(t *testing.T) {
	refused := errors.New("connection refused")
	for name, c := range map[string]struct {
		handlers func(foo *dsl.Resource, j *journal)
		// refused is a request that fails while the size is set to 2.
		verb, resource string
		want           []string
	}{
		"it is through, and another one's change is refused": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnEvent("see", hears(j, "see"))
				foo.OnReconcile("status", sizes)
			}, "patch", foos + "/status", []string{"see MODIFIED 2", "see MODIFIED 2"}, // one is for the status
		},
		"it comes after the one whose change is refused": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("status", sizes)
				foo.OnEvent("see", hears(j, "see"))
			}, "patch", foos + "/status", []string{"see MODIFIED 2", "see MODIFIED 2"},
		},
		"one fails, and is tried again, and another one is through": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnEvent("fails", hears(j, "fails", failsOnce))
				foo.OnEvent("see", hears(j, "see"))
				foo.OnReconcile("status", sizes)
			}, "patch", foos + "/status", []string{"fails MODIFIED 2", "see MODIFIED 2", "fails MODIFIED 2", "see MODIFIED 2", "fails MODIFIED 2"},
		},
		"before the one whose finalizer is refused": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnDelete("bye", succeeds, dsl.When(func(r *dsl.Subject) (bool, error) { return value(r.Object, "spec.size") != int64(1), nil }))
				foo.OnEvent("see", hears(j, "see"))
			}, "patch", foos, []string{"see MODIFIED 2", "see MODIFIED 2"}, // one is for the finalizer
		},
	} {
		t.Run(name, func(t *testing.T) {
			perform(t, scenario{c.handlers, func(s *stage) {
				s.begin()
				s.Advance(time.Hour)
				s.Forget()
				end := s.FailWhile(c.verb, c.resource, refused)
				s.size(2)
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

// TestTheFirstEventIsToldOnce holds the same of an object that is new to the process.
func TestTheFirstEventIsToldOnce(t *testing.T) {
	perform(t, scenario{func(foo *dsl.Resource, j *journal) {
		foo.OnEvent("see", hears(j, "see"))
		foo.OnReconcile("status", sizes)
	}, func(s *stage) {
		s.Launch()
		end := s.FailWhile("patch", foos+"/status", errors.New("connection refused"))
		s.Create(web)
		s.Advance(10 * time.Minute)
		s.Called("see ADDED 1")
		end()
		s.Advance(time.Hour)
		s.Called("see MODIFIED 1")
	}})
}

// TestADeletionIsToldAllTheSame holds that handlers of events hear of a deletion once, also where the pass that was to
// tell it broke off.
func TestADeletionIsToldAllTheSame(t *testing.T) {
	offers := func(_ ctx, r *dsl.Request) error {
		if r.Event != "" && r.Event != "DELETED" {
			return nil
		}
		r.Patch.OfferCondition("Ready", "True", "Offered", "offered")
		return nil
	}
	perform(t, scenario{func(foo *dsl.Resource, j *journal) {
		foo.OnEvent("early", hears(j, "early"))
		foo.OnEvent("offers", hears(j, "offers", offers))
		foo.OnEvent("late", hears(j, "late"))
	}, func(s *stage) {
		s.begin()
		end := s.FailWhile("get", crdsOf, errors.New("connection refused"))
		s.remove()
		s.Advance(time.Minute)
		if n := end(); n < 2 {
			s.t.Errorf("the schema was asked for %d times", n)
		}
		s.Advance(time.Hour)
		got := map[string]int{}
		for _, line := range s.Take() {
			got[line]++
		}
		if got["early DELETED 1"] != 1 || got["late DELETED 1"] != 1 || got["offers DELETED 1"] < 2 {
			s.t.Errorf("what they heard of the deletion is %v", got)
		}
	}})
}
