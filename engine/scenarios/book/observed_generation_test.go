// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// playWithObservedGeneration plays a scenario with a resource whose objects keep in status.observedGeneration what was handled.
func playWithObservedGeneration(t *testing.T, one scene.Scenario) {
	t.Helper()
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo", ObservedGeneration: true})
		s := scene.NewStage(t, c)
		s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
			foo.ObservedGeneration = true
			one.Operator(foo, &s.Journal)
		})
		one.Play(s)
	})
}

// observedGeneration is web's status.observedGeneration.
func observedGeneration(s *scene.Stage) int64 {
	s.T.Helper()
	n, _, err := unstructured.NestedInt64(s.Web().Object, "status", "observedGeneration")
	if err != nil {
		s.T.Error(err)
	}
	return n
}

// wantAllObserved fails the test unless status.observedGeneration says that all of web was handled.
func wantAllObserved(s *scene.Stage) {
	s.T.Helper()
	if n, now := observedGeneration(s), s.Web().GetGeneration(); n != now {
		s.T.Errorf("status.observedGeneration is %d of %d", n, now)
	}
}

// bySpec are the options of an update handler whose changes a generation shows.
func bySpec() []dsl.Option { return []dsl.Option{dsl.Field("spec"), dsl.NoOld()} }

// marking are handlers by what they want of the object.
var marking = map[string]dsl.Func{
	"a label": func(_ context.Context, r *dsl.Request) error {
		r.Patch.Label("size", fmt.Sprint(scene.SizeOf(r.Object)))
		return nil
	},
	"a status and a label": func(_ context.Context, r *dsl.Request) error {
		r.Patch.SetStatus("size", scene.SizeOf(r.Object))
		r.Patch.Label("size", fmt.Sprint(scene.SizeOf(r.Object)))
		return nil
	},
	"a status and a field of the spec": func(_ context.Context, r *dsl.Request) error {
		r.Patch.SetStatus("size", scene.SizeOf(r.Object))
		r.Patch.Set("spec.double", 2*scene.SizeOf(r.Object))
		return nil
	},
}

// moment is something that happens to web, after something else.
type moment struct{ before, happens func(s *scene.Stage) }

// moments are those at which requests of a pass fail. A size of 7 fails at first.
var moments = map[string]moment{
	"a creation":        {func(*scene.Stage) {}, func(s *scene.Stage) { s.Create(scene.Web) }},
	"a change":          {func(s *scene.Stage) { s.Create(scene.Web) }, func(s *scene.Stage) { s.Resize(2) }},
	"a late success":    {func(s *scene.Stage) { s.Create(scene.Web); s.Settle(); s.Resize(7) }, func(s *scene.Stage) { s.Advance(scene.Late) }},
	"a change after it": {func(s *scene.Stage) { s.Create(scene.Web); s.Settle(); s.Resize(7); s.Advance(scene.Late / 2) }, func(s *scene.Stage) { s.Resize(2) }},
	"a late creation": {func(s *scene.Stage) {
		s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 7}}`)
	}, func(s *scene.Stage) { s.Advance(scene.Late) }},
}

// TestTheLastRequestMarksAnObjectAsHandled is law 2 where status.observedGeneration says what was handled: whatever becomes of
// the requests of a pass, nothing that a handler wants is lost, and what was recorded is not repeated.
func TestTheLastRequestMarksAnObjectAsHandled(t *testing.T) {
	for wants, handler := range marking {
		operator := func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("made", j.Note("made"), dsl.Field("spec.size"))
			foo.On(scene.CreateAndUpdate(), "h", j.Note("h", func(ctx context.Context, r *dsl.Request) error {
				if scene.SizeOf(r.Object) == 7 && r.Attempt == 1 {
					return dsl.Temporary(scene.ErrAgain, scene.Late)
				}
				return handler(ctx, r)
			}), bySpec()...)
		}
		for when, m := range moments {
			var want string
			playWithObservedGeneration(t, scene.Scenario{Operator: operator, Play: func(s *scene.Stage) { want = endOfBrokenMoment(s, m, nil) }})
			breaks := map[string]func(s *scene.Stage) (mend func()){
				"the server takes no status": func(s *scene.Stage) func() {
					end := s.FailWhile("patch", scene.Foos+"/status", scene.ErrAgain)
					return func() { end() }
				},
				"the server takes no object": func(s *scene.Stage) func() {
					end := s.FailWhile("patch", scene.Foos, scene.ErrAgain)
					return func() { end() }
				},
			}
			for after := 1; after <= 4; after++ {
				breaks[fmt.Sprintf("a crash after write %d", after)] = func(s *scene.Stage) func() {
					s.Process.CrashAfter(after)
					return func() {}
				}
			}
			for how, breaks := range breaks {
				t.Run(fmt.Sprintf("%s, %s, %s", wants, when, how), func(t *testing.T) {
					playWithObservedGeneration(t, scene.Scenario{Operator: operator, Play: func(s *scene.Stage) {
						if diff := cmp.Diff(want, endOfBrokenMoment(s, m, breaks)); diff != "" {
							s.T.Errorf("the end (-without a fault +with one):\n%s", diff)
						}
					}})
				})
			}
		}
	}
}

// endOfBrokenMoment returns how a moment ends in which something breaks, and the process with it.
func endOfBrokenMoment(s *scene.Stage, m moment, breaks func(s *scene.Stage) (mend func())) string {
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
	wantAllObserved(s)
	called := handlersIn(s.Take())
	slices.Sort(called)
	o := s.Web()
	return fmt.Sprint(o.Object["spec"], o.GetLabels(), o.Object["status"].(map[string]any)["size"], o.GetAnnotations(), slices.Compact(called))
}

// TestAWriteBetweenTheTwoRequestsIsNotLost holds what becomes of the status, and of what it says was handled, when somebody
// writes between the request for the object and the one for its status.
func TestAWriteBetweenTheTwoRequestsIsNotLost(t *testing.T) {
	operator := func(foo *dsl.Resource, j *kit.Journal) {
		foo.On(scene.CreateAndUpdate(), "quiet", j.Note("quiet"), bySpec()...)
		foo.On(scene.CreateAndUpdate(), "h", j.Note("h", func(_ context.Context, r *dsl.Request) error {
			r.Patch.SetStatus("size", scene.SizeOf(r.Object))
			r.Patch.Label("size", fmt.Sprint(scene.SizeOf(r.Object)))
			return nil
		}), bySpec()...)
	}
	between := func(do func(s *scene.Stage)) func(s *scene.Stage) {
		return func(s *scene.Stage) {
			s.Begin()
			s.DelayNext("patch", scene.Foos, time.Second)
			s.Resize(2)
			s.Called("quiet update", "h update")
			do(s)
			s.Advance(time.Minute)
		}
	}
	ends := func(s *scene.Stage, size int64) {
		s.T.Helper()
		wantAllObserved(s)
		if got := s.Web().Object["status"].(map[string]any)["size"]; got != size {
			s.T.Errorf("the status has size %v, want %d", got, size)
		}
		s.Forget()
		s.Process.Restart()
		s.Called()
		s.Wrote()
	}
	for name, play := range map[string]func(s *scene.Stage){
		"a label": func(s *scene.Stage) {
			between(func(s *scene.Stage) { s.Set("gold", "metadata", "labels", "tier") })(s)
			s.Called()
			s.Wrote("patch foos default/web", "patch foos/status default/web: 409", "patch foos/status default/web")
			ends(s, 2)
		},
		"a field of the status": func(s *scene.Stage) {
			between(func(s *scene.Stage) { s.Set("x", "status", "theirs") })(s)
			s.Called()
			ends(s, 2)
		},
		"a field of the spec": func(s *scene.Stage) {
			between(func(s *scene.Stage) { s.Resize(3) })(s)
			s.Called("quiet update", "h update")
			ends(s, 3)
		},
	} {
		t.Run(name, func(t *testing.T) { playWithObservedGeneration(t, scene.Scenario{Operator: operator, Play: play}) })
	}
}

// TestTheGenerationThatAHandlerMakesIsHandled holds law 5 where a handler writes the spec: two requests, and the generation that
// it makes is said to be handled.
func TestTheGenerationThatAHandlerMakesIsHandled(t *testing.T) {
	for wants, handler := range marking {
		t.Run(wants, func(t *testing.T) {
			playWithObservedGeneration(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "h", j.Note("h", handler), bySpec()...)
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("h create")
				s.Wrote("patch foos default/web", "patch foos/status default/web")
				wantAllObserved(s)
				s.Resize(2)
				s.Called("h update")
				s.Wrote("patch foos default/web", "patch foos/status default/web")
				wantAllObserved(s)
				s.Advance(time.Hour)
				s.Process.Restart()
				s.Called()
				s.Wrote()
			}})
		})
	}
}

// TestABookHasWhatObservedGenerationCannotSay holds what a process knows of an object besides the generation that was handled.
func TestABookHasWhatObservedGenerationCannotSay(t *testing.T) {
	forGood := scene.Fails(dsl.Permanent(scene.ErrAgain))
	mended := func(s *scene.Stage) {
		s.Begin()
		s.Process.Kill()
		s.Resize(2)
		s.Process.Restart()
	}
	tests := map[string]scene.Scenario{
		"a creation that failed for good is made up for when the spec is mended while no process runs": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("made", j.Note("made", forGood, scene.Succeeds), dsl.Field("spec"))
			foo.On(scene.CreateAndUpdate(), "h", j.Note("h"), bySpec()...)
		}, Play: func(s *scene.Stage) {
			mended(s)
			s.Called("made create", "h update")
			wantAllObserved(s)
			s.Process.Restart()
			s.Called()
		}},
		"one that fails again does so once for each change": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("made", j.Note("made", forGood), dsl.Field("spec"))
			foo.On(scene.CreateAndUpdate(), "h", j.Note("h"), bySpec()...)
		}, Play: func(s *scene.Stage) {
			mended(s)
			s.Called("made create", "h update")
			s.Process.Restart()
			s.Called()
			s.Wrote("patch foos default/web")
		}},
		"a change that failed for good is not tried again, nor what succeeded beside it": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("made", j.Note("made"), dsl.Field("spec.size"))
			foo.On(scene.CreateAndUpdate(), "h", j.Note("h", scene.Succeeds, forGood, scene.Succeeds), bySpec()...)
			foo.On(scene.CreateAndUpdate(), "other", j.Note("other"), bySpec()...)
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Resize(2)
			s.Called("h update", "other update")
			s.Wrote("patch foos default/web")
			s.Process.Restart()
			s.Called()
			s.Wrote()
			s.Resize(3)
			s.Called("h update", "other update")
			wantAllObserved(s)
		}},
		"what comes after one that failed for good runs when that succeeds": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("first", j.Note("first", forGood, scene.Succeeds), dsl.Field("spec"))
			foo.OnCreate("then", j.Note("then"), dsl.Field("spec.color"), dsl.After("first"))
		}, Play: func(s *scene.Stage) {
			mended(s)
			s.Called("first create", "then create")
			wantAllObserved(s)
		}},
		"an attempt at a change that is taken back while no process runs is undone": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.On(scene.CreateAndUpdate(), "h", j.Note("h", scene.Succeeds, scene.RetriesAfter(time.Hour), scene.Succeeds), bySpec()...)
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Resize(2)
			s.Called("h update")
			s.Process.Kill()
			s.Resize(1)
			s.Process.Restart()
			s.Called("h update")
			wantAllObserved(s)
			if book := s.Web().GetAnnotations()[scene.StateAnnotation]; book != "" {
				s.T.Errorf("the generation says all, and there is a book: %s", book)
			}
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { playWithObservedGeneration(t, test) })
	}
}
