// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package writes_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// passesOver counts the reconciles over web that are kept.
func passesOver(s *scene.Stage) (n int) {
	s.T.Helper()
	s.Settle()
	a, err := s.Process.Engine().Why(s.T.Context(), why.Question{Resource: "foo", Namespace: "default", Name: "web", History: true})
	if err != nil {
		s.T.Fatal(err)
	}
	for _, p := range a.History {
		n += 1 + p.More
	}
	return n
}

// wantPasses compares the number of reconciles over web with what is wanted.
func wantPasses(s *scene.Stage, want int) {
	s.T.Helper()
	if got := passesOver(s); got != want {
		s.T.Errorf("there were %d passes, want %d", got, want)
	}
}

// sized is a handler that writes the size into the status.
func sized(j *kit.Journal) dsl.Func { return j.Note("sized", scene.ReportsSize) }

// wantStatusSize compares the size in the status of web with that in its spec.
func wantStatusSize(s *scene.Stage, want int64) {
	s.T.Helper()
	s.Settle()
	s.WantField("status.size", want)
}

// TestTheEchoOfAnOwnWriteStartsNoPass holds that a change which handlers answer with a write costs one reconcile, whenever the event of the
// write comes.
func TestTheEchoOfAnOwnWriteStartsNoPass(t *testing.T) {
	operators := map[string]func(foo *dsl.Resource, j *kit.Journal){
		"a status": func(foo *dsl.Resource, j *kit.Journal) { foo.OnReconcile("sized", sized(j)) },
		"a status, and another handler looks at the spec": func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("sized", sized(j))
			foo.OnReconcile("colored", scene.Succeeds, dsl.Field("spec.color"))
		},
		"a status, and a label turns another handler away": func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("sized", sized(j))
			foo.OnReconcile("gold", scene.Succeeds, dsl.Label("tier", "gold"))
		},
		"a status and the state annotation": func(foo *dsl.Resource, j *kit.Journal) {
			foo.On(scene.CreateAndUpdate(), "sized", sized(j))
		},
		"a label and a status": func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("sized", j.Note("sized", func(ctx context.Context, r *dsl.Request) error {
				r.Patch.Label("size", fmt.Sprint(scene.SizeOf(r.Object)))
				return scene.ReportsSize(ctx, r)
			}))
		},
		"a status, beside a child that stays as it is": func(foo *dsl.Resource, j *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.OnReconcile("child", scene.KeepsConfigMap(dsl.ChildSpec{Name: "config"}))
			foo.OnReconcile("sized", sized(j))
		},
	}
	plays := map[string]func(s *scene.Stage){
		"the answer comes first": func(*scene.Stage) {},
		"the event comes first":  func(s *scene.Stage) { s.DelayNext("patch", scene.Foos+"/status", time.Second) },
	}
	for name, operator := range operators {
		for order, prepare := range plays {
			t.Run(name+": "+order, func(t *testing.T) {
				scene.Play(t, scene.Scenario{Operator: operator, Play: func(s *scene.Stage) {
					s.Begin()
					s.Settle()
					s.Advance(time.Minute)
					for i := range int64(3) {
						before := passesOver(s)
						prepare(s)
						s.Resize(i + 2)
						s.Advance(10 * time.Second)
						wantPasses(s, before+1)
						s.Called("sized update")
						wantStatusSize(s, i+2)
					}
				}})
			})
		}
	}
}

// TestThoseWhoMustSeeAnOwnWriteSeeIt has for each kind of reader that follows from an own write one that notes what it sees.
func TestThoseWhoMustSeeAnOwnWriteSeeIt(t *testing.T) {
	notes := func(j *kit.Journal, who string) dsl.Func {
		return func(_ context.Context, r *dsl.Request) error {
			j.Add(fmt.Sprint(who, " sees ", scene.ValueAt(r.Object, "status.size")))
			return nil
		}
	}
	quiet := func(foo *dsl.Resource) { foo.OnReconcile("sized", scene.ReportsSize, dsl.Field("spec.size")) }
	scene.PlayAll(t, map[string]scene.Scenario{
		"a handler of events": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			quiet(foo)
			foo.OnEvent("heard", notes(j, "heard"))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Resize(2)
			s.Called("heard sees 2", "heard sees 2") // for the change, and for the own write
		}},
		"a handler before it that looks at the status": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("looks", notes(j, "looks"), dsl.Field("status.size"))
			quiet(foo)
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Resize(2)
			s.Called("looks sees 2")
		}},
		"one whose when reads the status, and that waits for it": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("late", notes(j, "late"), dsl.When(func(s *dsl.Subject) (bool, error) {
				return scene.ValueAt(s.Object, "status.size") == scene.ValueAt(s.Object, "spec.size"), nil
			}))
			quiet(foo)
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Resize(2)
			s.Called("late sees 2")
		}},
		"one that reads an index over the same objects": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("looks", func(_ context.Context, r *dsl.Request) error {
				sizes, err := dsl.Index[string, int64](r, "sizes")
				if err != nil {
					return err
				}
				found, err := sizes.Get("all")
				j.Add(fmt.Sprint("looks sees ", found))
				return err
			}, dsl.Field("spec.color"))
			quiet(foo)
		}, Play: func(s *scene.Stage) {
			s.Operator.Index("sizes", scene.Foos, func(o *unstructured.Unstructured) ([]dsl.Entry, error) {
				size, _, err := unstructured.NestedInt64(o.Object, "status", "size")
				return []dsl.Entry{{Key: "all", Value: size}}, err
			})
			s.Begin()
			s.Resize(2)
			s.Called("looks sees [2]")
		}},
		"one that reads related objects of its own kind": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Relates(dsl.Relation{Name: "them", Resource: dsl.ResourceName{Resource: "foos", Version: "v1", Group: "example.com"}})
			foo.On([]dsl.Cause{dsl.Create, dsl.RelatedChange}, "looks", func(_ context.Context, r *dsl.Request) error {
				found, err := r.Related.Get("them")
				for _, o := range found {
					j.Add(fmt.Sprint("looks sees ", scene.ValueAt(o, "status.size")))
				}
				return err
			})
			quiet(foo)
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Resize(2)
			s.Settle()
			if calls := s.Take(); !slices.Contains(calls, "looks sees 2") {
				s.T.Errorf("calls are %v, want one that sees 2", calls)
			}
		}},
		"a timer that waits for its object to rest": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.On([]dsl.Cause{dsl.Timer}, "rested", notes(j, "rested"), dsl.At(scene.WithoutJitter(dsl.Timing{Idle: time.Minute})), dsl.Field("status.size"))
			quiet(foo)
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(2 * time.Minute)
			s.Forget()
			s.Resize(2)
			s.Advance(2 * time.Minute)
			s.Called("rested sees 2")
		}},
	})
}

// TestWhatOthersDoAroundAnOwnWriteIsSeen holds that a handler sees what somebody else writes before or after an own write, whatever order
// the events and the answer come in.
func TestWhatOthersDoAroundAnOwnWriteIsSeen(t *testing.T) {
	operator := func(foo *dsl.Resource, j *kit.Journal) { foo.OnReconcile("sized", sized(j)) }
	scene.PlayAll(t, map[string]scene.Scenario{
		"somebody writes after it, and the answer comes last": {Operator: operator, Play: func(s *scene.Stage) {
			s.Begin()
			s.DelayNext("patch", scene.Foos+"/status", 10*time.Second)
			s.Resize(2)
			s.Advance(time.Second)
			s.Resize(3)
			s.Advance(time.Minute)
			s.Called("sized update", "sized update")
			wantStatusSize(s, 3)
		}},
		"somebody writes after it, and the events come last": {Operator: operator, Play: func(s *scene.Stage) {
			s.Begin()
			s.DelayNext("patch", scene.Foos+"/status", time.Second)
			s.Resize(2)
			s.Settle()
			s.HoldWatches(scene.Foos)
			s.Resize(3)
			s.Advance(time.Minute)
			s.ReleaseWatches(scene.Foos)
			s.Called("sized update", "sized update")
			wantStatusSize(s, 3)
		}},
		"somebody changes the status alone after it": {Operator: operator, Play: func(s *scene.Stage) {
			s.Begin()
			s.Resize(2)
			s.Settle()
			before := passesOver(s)
			s.Set(int64(9), "status", "size")
			wantPasses(s, before+1)
			s.Called("sized update") // for the size alone: what it looks at has no status
		}},
		"somebody writes before it, so that it meets a conflict": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("sized", j.Note("sized", scene.TakesTime(time.Second), scene.ReportsSize))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(time.Minute)
			s.Forget()
			s.Resize(2)
			s.Settle()
			s.Resize(3)
			s.Advance(time.Minute)
			s.Called("sized update", "sized update")
			wantStatusSize(s, 3)
		}},
		"somebody changes another field before it, and the write is repeated": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("sized", j.Note("sized", scene.TakesTime(time.Second), scene.ReportsSize), dsl.Field("spec.size"))
			foo.OnReconcile("colored", j.Note("colored"), dsl.Field("spec.color"))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(time.Minute)
			s.Forget()
			s.Resize(2)
			s.Settle()
			s.Set("blue", "spec", "color")
			s.Advance(time.Minute)
			s.CalledInAnyOrder("sized update", "colored update")
			wantStatusSize(s, 2)
		}},
		"the watch misses the event of the write, and what came after it": {Operator: operator, Play: func(s *scene.Stage) {
			s.Begin()
			s.DelayNext("patch", scene.Foos+"/status", time.Second)
			s.Resize(2)
			s.Settle()
			s.HoldWatches(scene.Foos)
			s.Resize(3)
			s.Advance(time.Minute)
			s.ExpireWatches(scene.Foos)
			s.Advance(time.Minute)
			s.Called("sized update", "sized update")
			wantStatusSize(s, 3)
		}},
		"the object is replaced by another one of its name": {Operator: operator, Play: func(s *scene.Stage) {
			s.Begin()
			s.HoldWatches(scene.Foos)
			s.Remove()
			s.Create(scene.Web)
			s.ReleaseWatches(scene.Foos)
			s.Called("sized create")
			wantStatusSize(s, 1)
		}},
	})
}

// TestAnEarlierVersionIsNoEcho restores the cluster between an own write and its event, so that the write is lost, and its version is given
// to somebody else's. The cache is no newer than the restored state, so nothing shows that the versions have gone back.
func TestAnEarlierVersionIsNoEcho(t *testing.T) {
	var hold func()
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
		var once sync.Once
		foo.OnReconcile("sized", j.Note("sized", scene.TakesTime(time.Second), func(ctx context.Context, r *dsl.Request) error {
			if scene.SizeOf(r.Object) == 2 {
				once.Do(func() { hold() })
			}
			return scene.ReportsSize(ctx, r)
		}))
	}, Play: func(s *scene.Stage) {
		var restore func()
		hold = func() { s.HoldWatches(scene.Foos); restore = s.Backup() }
		s.Begin()
		s.Advance(time.Minute)
		s.Forget()
		s.Resize(2)
		s.Advance(10 * time.Second)
		lost := s.Web().GetResourceVersion()
		restore()
		s.Resize(3)
		if got := s.Web().GetResourceVersion(); got != lost {
			s.T.Fatalf("the other write has version %s, want %s", got, lost)
		}
		s.ExpireWatches(scene.Foos)
		s.ReleaseWatches(scene.Foos)
		s.Advance(5 * time.Minute)
		s.Called("sized update", "sized update")
		wantStatusSize(s, 3)
	}})
}

// TestAnEchoThatTheServerHasChangedIsSeen has webhooks and defaults change what the operator writes.
func TestAnEchoThatTheServerHasChangedIsSeen(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a webhook changes at the write what another handler looks at": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("hooked", j.Note("hooked"), dsl.Field("metadata.labels.hooked"))
			foo.OnReconcile("sized", j.Note("sized", func(_ context.Context, r *dsl.Request) error {
				r.Patch.Label("size", fmt.Sprint(scene.SizeOf(r.Object)))
				return nil
			}), dsl.Field("spec.size"))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			end := s.Rewrite(scene.Foos, func(o *unstructured.Unstructured) {
				if o.GetLabels()["size"] == "2" {
					o.SetLabels(map[string]string{"size": "2", "hooked": "yes"})
				}
			})
			defer end()
			s.Resize(2)
			s.Advance(time.Minute)
			s.Called("sized update", "hooked update")
		}},
		"the server drops the status that a handler wants": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("sized", sized(j))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			end := s.Rewrite(scene.Foos, func(o *unstructured.Unstructured) { unstructured.RemoveNestedField(o.Object, "status", "size") })
			s.Resize(2)
			s.Advance(time.Minute)
			s.Called("sized update")
			end()
			s.Resize(3)
			s.Advance(time.Minute)
			s.Called("sized update")
			wantStatusSize(s, 3)
		}},
		"a handler changes the spec, so there is another generation": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("defaults", j.Note("defaults", func(_ context.Context, r *dsl.Request) error {
				r.Patch.Set("spec.weight", scene.SizeOf(r.Object)*2)
				return nil
			}), dsl.Field("spec.size"))
			foo.OnReconcile("weighed", j.Note("weighed"), dsl.Field("spec.weight"))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Settle()
			before := passesOver(s)
			s.Resize(2)
			s.Advance(time.Minute)
			s.Called("defaults update", "weighed update")
			wantPasses(s, before+2)
		}},
	})
}

// TestTheHistoryTellsOwnChangesFromThoseOfOthers holds that a reconcile names as changed what others did since the last reconcile, and not what that
// pass has written.
func TestTheHistoryTellsOwnChangesFromThoseOfOthers(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
		foo.OnReconcile("sized", sized(j))
	}, Play: func(s *scene.Stage) {
		s.Begin()
		s.Resize(2)
		s.Settle()
		s.Resize(3)
		s.Settle()
		a, err := s.Process.Engine().Why(s.T.Context(), why.Question{Resource: "foo", Namespace: "default", Name: "web", History: true})
		if err != nil {
			s.T.Fatal(err)
		}
		last := a.History[len(a.History)-1]
		if len(last.Changed) != 1 || last.Changed[0].Path != "spec.size" {
			s.T.Errorf("the changes are %v, want that of spec.size alone", last.Changed)
		}
		s.Forget()
	}})
}
