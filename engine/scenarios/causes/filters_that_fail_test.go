// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package causes_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// doubt is a filter that fails while it is to, and holds otherwise. It notes when it was asked for its cause, and for any if
// that is empty.
type doubt struct {
	mu     sync.Mutex
	cause  dsl.Cause
	left   int // how often it fails yet
	panics bool
	asked  []time.Time
}

func (d *doubt) ask(r *dsl.Subject) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cause != "" && d.cause != r.Cause {
		return true, nil
	}
	d.asked = append(d.asked, time.Now())
	if d.left == 0 {
		return true, nil
	}
	d.left--
	if d.panics {
		panic("out of luck")
	}
	return false, scene.ErrAgain
}

// fail has it fail so often from now on.
func (d *doubt) fail(times int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left, d.asked = times, nil
}

// since returns when it was asked since it was to fail, each time once.
func (d *doubt) since() []time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.CompactFunc(slices.Clone(d.asked), time.Time.Equal)
}

// TestAFilterThatFailsIsEvaluatedAgain is law 1 for filters that fail: for each cause the handler runs when its filter has an
// answer again, without any other change, and has spent no attempt.
func TestAFilterThatFailsIsEvaluatedAgain(t *testing.T) {
	// Each test has the filter of h fail when something happens, and wants h to be called for that.
	tests := map[string]struct {
		define func(foo *dsl.Resource, h dsl.Func, when dsl.Option)
		happen func(s *scene.Stage) // nil: the time comes
		want   string
	}{
		"create": {func(foo *dsl.Resource, h dsl.Func, when dsl.Option) { foo.OnCreate("h", h, when, dsl.Retries(0)) },
			func(s *scene.Stage) { s.Create(strings.ReplaceAll(scene.Web, "web", "other")) }, "h create"},
		"update": {func(foo *dsl.Resource, h dsl.Func, when dsl.Option) { foo.OnUpdate("h", h, when, dsl.Retries(0)) },
			func(s *scene.Stage) { s.Resize(2) }, "h update"},
		"a level-triggered handler": {func(foo *dsl.Resource, h dsl.Func, when dsl.Option) { foo.OnReconcile("h", h, when, dsl.Retries(0)) },
			func(s *scene.Stage) { s.Resize(2) }, "h update"},
		"the same at the start of a process": {func(foo *dsl.Resource, h dsl.Func, when dsl.Option) { foo.OnReconcile("h", h, when) },
			func(s *scene.Stage) { s.Process.Restart() }, "h resume"},
		"resume": {func(foo *dsl.Resource, h dsl.Func, when dsl.Option) { foo.OnResume("h", h, when) },
			func(s *scene.Stage) { s.Process.Restart() }, "h resume"},
		"resync": {func(foo *dsl.Resource, h dsl.Func, when dsl.Option) {
			foo.Resync = 50 * time.Minute
			foo.On([]dsl.Cause{dsl.Resync}, "h", h, when)
		}, nil, "h resync"},
		"a timer": {func(foo *dsl.Resource, h dsl.Func, when dsl.Option) { foo.Every(50*time.Minute, "h", h, when) },
			nil, "h timer"},
		"a child": {func(foo *dsl.Resource, h dsl.Func, when dsl.Option) {
			foo.Owns(scene.Deployments)
			foo.OnReconcile("child", scene.KeepsDeployment)
			foo.OnChild("h", h, when)
		}, func(s *scene.Stage) {
			s.Update(scene.Deployments, "default", "web", func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"x": "y"}) })
		}, "h child"},
		"a related object": {func(foo *dsl.Resource, h dsl.Func, when dsl.Option) {
			foo.Relates(dsl.Relation{Name: "them", Resource: dsl.ResourceName{Resource: "configmaps", Version: "v1"}, Select: scene.RelatedByLabel})
			foo.OnRelated("h", h, when)
		}, func(s *scene.Stage) {
			s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: them, labels: {app: web}}}`)
		}, "h related"},
		"an event": {func(foo *dsl.Resource, h dsl.Func, when dsl.Option) { foo.OnEvent("h", h, when) },
			func(s *scene.Stage) { s.Resize(2) }, "h event"},
		"delete": {func(foo *dsl.Resource, h dsl.Func, when dsl.Option) { foo.OnDelete("h", h, when, dsl.Retries(0)) },
			func(s *scene.Stage) { s.Remove() }, "h delete"},
		"delete without a finalizer, while others hold the object": {
			func(foo *dsl.Resource, h dsl.Func, when dsl.Option) { foo.OnDelete("h", h, when, dsl.NoFinalizer()) },
			func(s *scene.Stage) {
				s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"others.example.com/hold"}) })
				s.Remove()
			}, "h delete"},
		"delete without a finalizer": {func(foo *dsl.Resource, h dsl.Func, when dsl.Option) { foo.OnDelete("h", h, when, dsl.NoFinalizer()) },
			func(s *scene.Stage) { s.Remove() }, "h delete"},
	}
	for name, tt := range tests {
		for how, panics := range map[string]bool{"returns an error": false, "panics": true} {
			t.Run(name+", where the filter "+how, func(t *testing.T) {
				d := &doubt{panics: panics}
				scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
					tt.define(foo, j.Note("h"), dsl.When(d.ask))
				}, Play: func(s *scene.Stage) {
					s.Launch()
					s.Create(scene.Web)
					s.Advance(time.Minute)
					s.Take()
					d.fail(4)
					if tt.happen != nil {
						tt.happen(s)
					}
					for len(d.since()) == 0 {
						s.Advance(time.Minute)
					}
					s.Advance(2 * time.Minute)
					if got := s.Take(); len(got) != 1 || got[0] != tt.want {
						s.T.Errorf("calls %v, want %s", got, tt.want)
					}
					s.Advance(10 * time.Hour)
				}})
			})
		}
	}
}

// TestAFilterThatFailsBacksOff holds the back-off of filters that fail, and what they cost.
func TestAFilterThatFailsBacksOff(t *testing.T) {
	d := &doubt{}
	created := func(s *scene.Stage, times int) {
		d.fail(times)
		s.Launch()
		s.Create(scene.Web)
	}
	define := func(foo *dsl.Resource, j *kit.Journal) {
		foo.Workers = 1
		foo.OnCreate("h", j.Note("h"), dsl.When(d.ask))
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"the back-off grows to five minutes, as that of handlers": {Operator: define, Play: func(s *scene.Stage) {
			created(s, 1000)
			s.Advance(time.Hour)
			asked := d.since()
			if len(asked) < 15 || len(asked) > 22 {
				s.T.Fatalf("asked %d times in an hour", len(asked))
			}
			for i, least := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
				least *= time.Second
				if wait := asked[i+1].Sub(asked[i]); wait < least || wait > least+least/5+time.Second {
					s.T.Errorf("after %d failures it was asked again after %v", i+1, wait)
				}
			}
		}},
		"a change cuts it short, and it begins again": {Operator: define, Play: func(s *scene.Stage) {
			created(s, 1000)
			s.Advance(time.Hour)
			d.fail(3)
			s.Resize(2)
			s.Advance(20 * time.Second)
			s.Called("h create")
		}},
		"the handler's own back-off holds": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("h", j.Note("h"), dsl.When(d.ask), dsl.WithBackoff(20*time.Minute, time.Hour))
		}, Play: func(s *scene.Stage) {
			created(s, 1000)
			s.Advance(19 * time.Minute)
			if n := len(d.since()); n != 1 {
				s.T.Errorf("asked %d times within its first back-off", n)
			}
		}},
		"no worker waits": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Workers = 1
			foo.OnCreate("h", j.Note("h"), dsl.When(func(r *dsl.Subject) (bool, error) {
				if r.Object.GetName() == "ready" {
					return true, nil
				}
				return d.ask(r)
			}))
		}, Play: func(s *scene.Stage) {
			created(s, 1000)
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: ready}, spec: {size: 1}}`)
			begun := time.Now()
			s.Advance(time.Minute)
			if calls := s.Of("h", "ready"); len(calls) != 1 || calls[0].At.Sub(begun) > 2*time.Second {
				s.T.Errorf("the other object was handled %v", calls)
			}
		}},
		"one that fails for one cause alone says so once": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.On(scene.CreateAndUpdate(), "h", j.Note("h"), dsl.When(d.ask))
			foo.OnReconcile("report", scene.Reports, dsl.After("h"))
		}, Play: func(s *scene.Stage) {
			log := scene.LaunchWithLog(s, "\"msg\"=\"filter ")
			d.cause = dsl.Create
			defer func() { d.cause = "" }()
			d.fail(30)
			s.Create(scene.Web)
			s.Advance(30 * time.Minute)
			if lines := log(); len(lines) != 1 {
				s.T.Errorf("the log says %v", lines)
			}
			s.Advance(10 * time.Hour)
			if lines := log(); len(lines) != 1 || !strings.Contains(lines[0], "can be asked again") {
				s.T.Errorf("in the end the log says %v", lines)
			}
			s.Called("h create")
		}},
	})
}

// TestAFilterThatFailsWritesItsConditionOnce holds that the condition is written when a filter begins to fail and when it
// ends, however often it is asked.
func TestAFilterThatFailsWritesItsConditionOnce(t *testing.T) {
	d := &doubt{}
	d.fail(30)
	scene.PlayWithConditions(t, func(foo *dsl.Resource) { foo.OnCreate("picky", scene.Succeeds, dsl.When(d.ask)) }, func(s *scene.Stage) {
		s.WantFailureCondition("Operator op: picky: not yet")
		s.Advance(time.Hour)
		s.Forget()
		s.Advance(30 * time.Minute)
		s.Wrote()
		s.Advance(10 * time.Hour)
		s.WantFailureCondition("")
		s.Wrote("patch foos/status default/web", "patch foos default/web")
	})
}

// TestAFilterThatWorksAgainIsNoLongerSaidToFail holds that a condition about a filter goes when that has an answer again, also for a
// handler that has nothing to do then.
func TestAFilterThatWorksAgainIsNoLongerSaidToFail(t *testing.T) {
	large := func(r *dsl.Subject) (bool, error) {
		size, found, _ := unstructured.NestedInt64(r.Object.Object, "spec", "size")
		if !found {
			return false, errors.New("no size")
		}
		return size > 0, nil
	}
	lacks := func(s *scene.Stage) {
		s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { unstructured.RemoveNestedField(o.Object, "spec", "size") })
	}
	back := func(s *scene.Stage) { s.Resize(1) }
	for name, tt := range map[string]struct {
		define func(foo *dsl.Resource)
		mend   func(s *scene.Stage)
	}{
		"a handler of changes": {func(foo *dsl.Resource) {
			foo.On(scene.CreateAndUpdate(), "picky", scene.Succeeds, dsl.When(large))
		}, back},
		"one that names a field": {func(foo *dsl.Resource) {
			foo.OnUpdate("picky", scene.Succeeds, dsl.When(large), dsl.Field("spec.size"))
		}, back},
		"a level-triggered handler": {func(foo *dsl.Resource) {
			foo.OnReconcile("picky", scene.Succeeds, dsl.When(large))
		}, back},
		"one that labels leave out by now": {func(foo *dsl.Resource) {
			foo.OnReconcile("picky", scene.Succeeds, dsl.When(large), dsl.LabelAbsent("other"))
		}, func(s *scene.Stage) {
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"other": "yes"}) })
		}},
		"a delete handler behind one that holds the object": {func(foo *dsl.Resource) {
			foo.OnDelete("first", scene.Succeeds)
			foo.OnDelete("picky", scene.Succeeds, dsl.When(large))
		}, back},
	} {
		t.Run(name, func(t *testing.T) {
			scene.PlayWithConditions(t, tt.define, func(s *scene.Stage) {
				s.WantFailureCondition("")
				lacks(s)
				s.WantFailureCondition("Operator op: picky: no size")
				s.Advance(time.Hour)
				s.WantFailureCondition("Operator op: picky: no size")
				tt.mend(s)
				s.WantFailureCondition("")
				s.Advance(time.Hour)
				s.WantFailureCondition("")
			})
		})
	}
}

// TestADaemonStartsWhenItsFilterDoesNotFailAnyMore holds that a daemon starts when its filter has an answer.
func TestADaemonStartsWhenItsFilterDoesNotFailAnyMore(t *testing.T) {
	d := &doubt{}
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
		foo.Daemon("watch", func(ctx context.Context, _ *dsl.DaemonRequest) error {
			j.Add("begun")
			<-ctx.Done()
			return nil
		}, dsl.When(d.ask))
	}, Play: func(s *scene.Stage) {
		d.fail(4)
		s.Update("customresourcedefinitions.v1.apiextensions.k8s.io", "", "foos.example.com", scene.AddConditions)
		s.Launch()
		s.Create(scene.Web)
		s.Called()
		s.WantFailureCondition("Operator op: watch: not yet")
		s.Advance(2 * time.Minute)
		s.Called("begun")
		s.WantFailureCondition("")
	}})
}

// TestFiltersOfSubHandlersAreEvaluatedAgain holds that they are asked again, spend no attempt, and say so once.
func TestFiltersOfSubHandlersAreEvaluatedAgain(t *testing.T) {
	d := &doubt{}
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
		foo.OnCreate("h", func(_ context.Context, r *dsl.Request) error {
			r.Handle("sub", j.Note("sub"), dsl.When(d.ask), dsl.Retries(0))
			return nil
		}, dsl.Retries(0))
	}, Play: func(s *scene.Stage) {
		log := scene.LaunchWithLog(s, "h/sub")
		d.fail(30)
		s.Create(scene.Web)
		s.Advance(time.Hour)
		s.Called()
		if n := len(d.since()); n < 15 || n > 22 {
			s.T.Errorf("asked %d times in an hour", n)
		}
		if lines := log(); len(lines) != 1 {
			s.T.Errorf("the log says %v", lines)
		}
		if wrote := s.Process.Writes(); len(wrote) > 2 {
			s.T.Errorf("writes %v", wrote)
		}
		s.Advance(10 * time.Hour)
		s.Called("sub create")
	}})
}

// TestAHandlerWaitsForOneWhoseFilterFails holds that a handler which comes after another one waits while it cannot be known
// whether that one has something to do.
func TestAHandlerWaitsForOneWhoseFilterFails(t *testing.T) {
	tests := map[string]struct {
		happen func(s *scene.Stage)
		want   []string
	}{
		"a new object": {func(s *scene.Stage) { s.Create(strings.ReplaceAll(scene.Web, "web", "other")) }, []string{"first create", "second create"}},
		"a change":     {func(s *scene.Stage) { s.Resize(5) }, []string{"first update", "second update"}},
		"a new object, and the next process": {func(s *scene.Stage) {
			s.Create(strings.ReplaceAll(scene.Web, "web", "other"))
			s.Settle()
			s.Process.Restart()
		}, []string{"first create", "second create"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d := &doubt{}
			scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("beside", scene.Succeeds)
				foo.On(scene.CreateAndUpdate(), "first", j.Note("first"), dsl.When(d.ask))
				foo.On(scene.CreateAndUpdate(), "second", j.Note("second"), dsl.After("first"))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Settle()
				s.Take()
				d.fail(4)
				tt.happen(s)
				s.Called()
				s.Advance(time.Minute)
				s.Called(tt.want...)
			}})
		})
	}
}
