// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

// counted plays a scenario with a resource whose objects keep in status.observedGeneration what was handled.
func counted(t *testing.T, one scenario) {
	t.Helper()
	enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
		c.Serve(enginetest.Resource{Name: foos, Kind: "Foo", ObservedGeneration: true})
		s := newStage(t, c)
		s.Operator.Resource(foos, func(foo *dsl.Resource) {
			foo.ObservedGeneration = true
			one.operator(foo, &s.Journal)
		})
		one.play(s)
	})
}

// observed is web's status.observedGeneration.
func (s *stage) observed() int64 {
	s.t.Helper()
	n, _, err := unstructured.NestedInt64(s.web().Object, "status", "observedGeneration")
	if err != nil {
		s.t.Error(err)
	}
	return n
}

// allObserved fails the test unless status.observedGeneration says that all of web was handled.
func (s *stage) allObserved() {
	s.t.Helper()
	if n, now := s.observed(), s.web().GetGeneration(); n != now {
		s.t.Errorf("status.observedGeneration is %d of %d", n, now)
	}
}

// bySpec are the options of an update handler whose changes a generation tells.
func bySpec() []dsl.Option { return []dsl.Option{dsl.Field("spec"), dsl.NoOld()} }

// marking are handlers by what they want of the object.
var marking = map[string]dsl.Func{
	"a label": func(_ ctx, r *dsl.Request) error {
		r.Patch.Label("size", fmt.Sprint(sizeOf(r.Object)))
		return nil
	},
	"a status and a label": func(_ ctx, r *dsl.Request) error {
		r.Patch.SetStatus("size", sizeOf(r.Object))
		r.Patch.Label("size", fmt.Sprint(sizeOf(r.Object)))
		return nil
	},
	"a status and a field of the spec": func(_ ctx, r *dsl.Request) error {
		r.Patch.SetStatus("size", sizeOf(r.Object))
		r.Patch.Set("spec.double", 2*sizeOf(r.Object))
		return nil
	},
}

// moment is something that happens to web, after something else.
type moment struct{ before, happens func(s *stage) }

// moments are those at which requests of a pass fail. A size of 7 fails at first.
var moments = map[string]moment{
	"a creation":        {func(*stage) {}, func(s *stage) { s.Create(web) }},
	"a change":          {func(s *stage) { s.Create(web) }, func(s *stage) { s.size(2) }},
	"a late success":    {func(s *stage) { s.Create(web); s.Settle(); s.size(7) }, func(s *stage) { s.Advance(late) }},
	"a change after it": {func(s *stage) { s.Create(web); s.Settle(); s.size(7); s.Advance(late / 2) }, func(s *stage) { s.size(2) }},
	"a late creation": {func(s *stage) {
		s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 7}}`)
	}, func(s *stage) { s.Advance(late) }},
}

// TestTheLastRequestMarksAnObjectAsHandled is law 2 where status.observedGeneration says what was handled: whatever becomes of
// the requests of a pass, nothing that a handler wants is lost, and what was recorded is not repeated.
func TestTheLastRequestMarksAnObjectAsHandled(t *testing.T) {
	for wants, handler := range marking {
		operator := func(foo *dsl.Resource, j *journal) {
			foo.OnCreate("made", j.Note("made"), dsl.Field("spec.size"))
			foo.On(both(), "h", j.Note("h", func(ctx ctx, r *dsl.Request) error {
				if sizeOf(r.Object) == 7 && r.Attempt == 1 {
					return dsl.Temporary(errAgain, late)
				}
				return handler(ctx, r)
			}), bySpec()...)
		}
		for when, m := range moments {
			var want string
			counted(t, scenario{operator, func(s *stage) { want = s.broken(m, nil) }})
			breaks := map[string]func(s *stage) (mend func()){
				"the server takes no status": func(s *stage) func() { end := s.FailWhile("patch", foos+"/status", errAgain); return func() { end() } },
				"the server takes no object": func(s *stage) func() { end := s.FailWhile("patch", foos, errAgain); return func() { end() } },
			}
			for after := 1; after <= 4; after++ {
				breaks[fmt.Sprintf("a crash after write %d", after)] = func(s *stage) func() {
					s.Process.CrashAfter(after)
					return func() {}
				}
			}
			for how, breaks := range breaks {
				t.Run(fmt.Sprintf("%s, %s, %s", wants, when, how), func(t *testing.T) {
					counted(t, scenario{operator, func(s *stage) {
						if diff := cmp.Diff(want, s.broken(m, breaks)); diff != "" {
							s.t.Errorf("the end (-without a fault +with one):\n%s", diff)
						}
					}})
				})
			}
		}
	}
}

// broken tells how a moment ends in which something breaks, and the process with it.
func (s *stage) broken(m moment, breaks func(s *stage) (mend func())) string {
	s.Launch()
	m.before(s)
	s.Forget()
	mend := func() {}
	if breaks != nil {
		mend = breaks(s)
	}
	m.happens(s)
	s.Advance(5 * time.Second)
	if breaks != nil {
		s.Process.Kill()
		mend()
		s.Process.Restart()
	}
	s.Advance(time.Hour)
	s.allObserved()
	called := handlersIn(s.Take())
	slices.Sort(called)
	o := s.web()
	return fmt.Sprint(o.Object["spec"], o.GetLabels(), o.Object["status"].(map[string]any)["size"], o.GetAnnotations(), slices.Compact(called))
}

// TestOthersWriteBetweenTheTwoRequests holds what becomes of the status, and of what it says was handled, when somebody writes
// between the request for the object and the one for its status.
func TestOthersWriteBetweenTheTwoRequests(t *testing.T) {
	operator := func(foo *dsl.Resource, j *journal) {
		foo.On(both(), "quiet", j.Note("quiet"), bySpec()...)
		foo.On(both(), "h", j.Note("h", func(_ ctx, r *dsl.Request) error {
			r.Patch.SetStatus("size", sizeOf(r.Object))
			r.Patch.Label("size", fmt.Sprint(sizeOf(r.Object)))
			return nil
		}), bySpec()...)
	}
	between := func(do func(s *stage)) func(s *stage) {
		return func(s *stage) {
			s.begin()
			s.DelayNext("patch", foos, time.Second)
			s.size(2)
			s.Called("quiet update", "h update")
			do(s)
			s.Advance(time.Minute)
		}
	}
	ends := func(s *stage, size int64) {
		s.t.Helper()
		s.allObserved()
		if got := s.web().Object["status"].(map[string]any)["size"]; got != size {
			s.t.Errorf("the status has size %v, want %d", got, size)
		}
		s.Forget()
		s.Process.Restart()
		s.Called()
		s.Wrote()
	}
	for name, play := range map[string]func(s *stage){
		"a label": func(s *stage) {
			between(func(s *stage) { s.set("gold", "metadata", "labels", "tier") })(s)
			s.Called()
			s.Wrote("patch foos default/web", "patch foos/status default/web: 409", "patch foos/status default/web")
			ends(s, 2)
		},
		"a field of the status": func(s *stage) {
			between(func(s *stage) { s.set("x", "status", "theirs") })(s)
			s.Called()
			ends(s, 2)
		},
		"a field of the spec": func(s *stage) {
			between(func(s *stage) { s.size(3) })(s)
			s.Called("quiet update", "h update")
			ends(s, 3)
		},
	} {
		t.Run(name, func(t *testing.T) { counted(t, scenario{operator, play}) })
	}
}

// TestTheGenerationThatAHandlerMakesIsHandled holds law 5 where a handler writes the spec: two requests, and the generation that
// it makes is said to be handled.
func TestTheGenerationThatAHandlerMakesIsHandled(t *testing.T) {
	for wants, handler := range marking {
		t.Run(wants, func(t *testing.T) {
			counted(t, scenario{func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "h", j.Note("h", handler), bySpec()...)
			}, func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("h create")
				s.Wrote("patch foos default/web", "patch foos/status default/web")
				s.allObserved()
				s.size(2)
				s.Called("h update")
				s.Wrote("patch foos default/web", "patch foos/status default/web")
				s.allObserved()
				s.Advance(time.Hour)
				s.Process.Restart()
				s.Called()
				s.Wrote()
			}})
		})
	}
}

// TestWhatANumberCannotSayStaysInABook holds what a process knows of an object besides the generation that was handled.
func TestWhatANumberCannotSayStaysInABook(t *testing.T) {
	forGood := fails(dsl.Permanent(errAgain))
	mended := func(s *stage) {
		s.begin()
		s.Process.Kill()
		s.size(2)
		s.Process.Restart()
	}
	tests := map[string]scenario{
		"a creation that failed for good is made up for when the spec is mended while no process runs": {func(foo *dsl.Resource, j *journal) {
			foo.OnCreate("made", j.Note("made", forGood, succeeds), dsl.Field("spec"))
			foo.On(both(), "h", j.Note("h"), bySpec()...)
		}, func(s *stage) {
			mended(s)
			s.Called("made create", "h update")
			s.allObserved()
			s.Process.Restart()
			s.Called()
		}},
		"one that fails again does so once for each change": {func(foo *dsl.Resource, j *journal) {
			foo.OnCreate("made", j.Note("made", forGood), dsl.Field("spec"))
			foo.On(both(), "h", j.Note("h"), bySpec()...)
		}, func(s *stage) {
			mended(s)
			s.Called("made create", "h update")
			s.Process.Restart()
			s.Called()
			s.Wrote("patch foos default/web")
		}},
		"a change that failed for good is not tried again, nor what succeeded beside it": {func(foo *dsl.Resource, j *journal) {
			foo.OnCreate("made", j.Note("made"), dsl.Field("spec.size"))
			foo.On(both(), "h", j.Note("h", succeeds, forGood, succeeds), bySpec()...)
			foo.On(both(), "other", j.Note("other"), bySpec()...)
		}, func(s *stage) {
			s.begin()
			s.size(2)
			s.Called("h update", "other update")
			s.Wrote("patch foos default/web")
			s.Process.Restart()
			s.Called()
			s.Wrote()
			s.size(3)
			s.Called("h update", "other update")
			s.allObserved()
		}},
		"what comes after one that failed for good runs when that succeeds": {func(foo *dsl.Resource, j *journal) {
			foo.OnCreate("first", j.Note("first", forGood, succeeds), dsl.Field("spec"))
			foo.OnCreate("then", j.Note("then"), dsl.Field("spec.color"), dsl.After("first"))
		}, func(s *stage) {
			mended(s)
			s.Called("first create", "then create")
			s.allObserved()
		}},
		"an attempt at a change that is taken back while no process runs is undone": {func(foo *dsl.Resource, j *journal) {
			foo.On(both(), "h", j.Note("h", succeeds, temporary(time.Hour), succeeds), bySpec()...)
		}, func(s *stage) {
			s.begin()
			s.size(2)
			s.Called("h update")
			s.Process.Kill()
			s.size(1)
			s.Process.Restart()
			s.Called("h update")
			s.allObserved()
			if book := s.web().GetAnnotations()[state]; book != "" {
				s.t.Errorf("the generation tells all, and there is a book: %s", book)
			}
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { counted(t, test) })
	}
}
