// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package resources_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// wantIndexHealth checks what /readyz has to say of the index.
func wantIndexHealth(s *scene.Stage, check, want string) {
	s.T.Helper()
	for _, c := range s.Process.Engine().Ready() {
		if c.Name == check+"/owners" && want != "" && strings.Contains(c.Message, want) {
			return
		}
		if c.Name == check+"/owners" && c.Message != "" && want == "" {
			s.T.Errorf("%s says %q", c.Name, c.Message)
		}
	}
	if want != "" {
		s.T.Errorf("health %+v, want %q of the index", s.Process.Engine().Ready(), want)
	}
}

// TestAnIndexWakesReadersOfItsKeys holds that handlers see what an index has, and that those run again that have read what
// changes.
func TestAnIndexWakesReadersOfItsKeys(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"readers of the key are woken, also where there was nothing, and no others": {Operator: scene.LooksUp(dsl.Reconcile), Play: func(s *scene.Stage) {
			s.Create(settingsMap("a", "", "x", "1"))
			s.LaunchWithIndex()
			s.Create(scene.FooWithRef("one", "x"))
			s.Create(scene.FooWithRef("two", "u"))
			s.CalledInAnyOrder("one create: 1", "two create:")
			s.Create(settingsMap("other/b", "", "x", "2"))
			s.Called("one index: 1 2")
			s.Create(settingsMap("c", "", "z u", "3"))
			s.Called("two index: 3")
			setData(s, "c", "for", "z")
			s.Called("two index:")
			setData(s, "a", "v", "9")
			s.Called("one index: 9 2")
			s.Delete(scene.ConfigMaps, "default", "a")
			s.Called("one index: 2")
			s.Wrote()
		}},
		"an equal value wakes no handler": {Operator: scene.LooksUp(dsl.Reconcile), Play: func(s *scene.Stage) {
			s.Create(settingsMap("a", "", "x", "1"))
			s.LaunchWithIndex()
			s.Create(scene.FooWithRef("one", "x"))
			s.Called("one create: 1")
			setData(s, "a", "app", "red")
			setData(s, "a", "for", "x z")
			s.Called()
			s.HoldWatches(scene.ConfigMaps)
			s.Delete(scene.ConfigMaps, "default", "a")
			s.Create(settingsMap("a", "", "x", "1"))
			s.ExpireWatches(scene.ConfigMaps)
			s.ReleaseWatches(scene.ConfigMaps)
			s.Advance(time.Minute)
			s.Called() // recreated under the name while no handler looked, with the same value
		}},
		"a key that is read no more wakes no handler": {Operator: scene.LooksUp(dsl.Reconcile), Play: func(s *scene.Stage) {
			s.LaunchWithIndex()
			s.Create(scene.FooWithRef("web", "x"))
			s.Called("web create:")
			s.Set("u", "spec", "ref")
			s.Called("web update:")
			s.Create(settingsMap("a", "", "x", "1"))
			s.Called()
			s.Create(settingsMap("b", "", "u", "1"))
			s.Called("web index: 1")
			s.Remove()
			s.Settle()
			setData(s, "b", "v", "2")
			s.Called()
			s.Create(scene.FooWithRef("web", "u"))
			s.Called("web create: 2")
		}},
		"edge-triggered handlers read, and are not woken": {Operator: scene.LooksUp(dsl.Create, dsl.Update), Play: func(s *scene.Stage) {
			s.LaunchWithIndex()
			s.Create(scene.FooWithRef("web", "x"))
			s.Called("web create:")
			s.Forget()
			s.Create(settingsMap("a", "", "x", "1"))
			s.Called()
			s.Wrote()
			s.Set("new", "spec", "color")
			s.Called("web update: 1")
		}},
		"unless they ask for the cause": {Operator: scene.LooksUp(dsl.Create, dsl.IndexChange), Play: func(s *scene.Stage) {
			s.LaunchWithIndex()
			s.Create(scene.FooWithRef("web", "x"))
			s.Called("web create:")
			s.Create(settingsMap("a", "", "x", "1"))
			s.Called("web index: 1")
		}},
	})
}

// TestReadersOfAnIndexSeeAllOfItAfterARestart holds that nothing is handled before the first listing, and that a restart
// brings no news.
func TestReadersOfAnIndexSeeAllOfItAfterARestart(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a restart brings no news, and loses none": {Operator: scene.LooksUp(dsl.IndexChange, dsl.Create), Play: func(s *scene.Stage) {
			s.LaunchWithIndex()
			s.Create(scene.FooWithRef("web", "x"))
			s.Forget()
			s.Process.Restart()
			s.Called()
		}},
		"level-triggered handlers look again after a restart": {Operator: scene.LooksUp(dsl.Reconcile), Play: func(s *scene.Stage) {
			s.LaunchWithIndex()
			s.Create(scene.FooWithRef("web", "x"))
			s.Called("web create:")
			s.Process.Kill()
			s.Create(settingsMap("a", "", "x", "1"))
			s.Process.Restart()
			s.Called("web resume: 1")
		}},
		"handling waits for the first listing, with one worker": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.Workers = 1; scene.LooksUp(dsl.Reconcile)(foo, j) }, Play: func(s *scene.Stage) {
				for i := range 20 {
					s.Create(settingsMap(fmt.Sprint("c", i), "", "x", "1"))
					s.Create(scene.FooWithRef(fmt.Sprint("web-", i), "x"))
				}
				s.DelayNext("watch", scene.ConfigMaps, time.Minute)
				s.LaunchWithIndex()
				s.Called()
				s.Advance(2 * time.Minute)
				for _, line := range s.Take() {
					if strings.Count(line, " 1") != 20 {
						s.T.Errorf("call %q, want one that sees all", line)
					}
				}
			}},
	})
}

// TestAllKindsOfCodeReadIndexes holds that filters, schedules, and handlers of the indexed resource itself read them.
func TestAllKindsOfCodeReadIndexes(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"an index over the handlers' own resource": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("count", func(_ context.Context, r *dsl.Request) error {
					foos, err := dsl.Index[string, string](r, "foos")
					if err != nil {
						return err
					}
					all, err := foos.Get("all")
					keys, err2 := foos.Keys()
					j.Add(fmt.Sprintf("%s %s %v %v %d", r.Object.GetName(), r.Cause, all, keys, foos.Len()))
					r.Patch.SetStatus("count", len(all))
					return errors.Join(err, err2)
				})
			}, Play: func(s *scene.Stage) {
				s.Operator.Index("foos", scene.Foos, func(o *unstructured.Unstructured) ([]dsl.Entry, error) {
					return []dsl.Entry{{Key: "all", Value: o.GetName()}}, nil
				})
				s.Launch()
				s.Create(scene.FooWithRef("one", ""))
				s.Called("one create [one] [all] 1")
				s.Create(scene.FooWithRef("two", ""))
				s.CalledInAnyOrder("two create [one two] [all] 1", "one index [one two] [all] 1")
				s.Forget()
				s.Delete(scene.Foos, "default", "one")
				s.Called("two index [two] [all] 1")
				s.Wrote("patch foos/status default/two")
			}},
		"filters read, and are asked again": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("see", j.Note("see"), dsl.When(func(s *dsl.Subject) (bool, error) {
					owners, err := dsl.Index[string, any](s, "owners")
					if err != nil {
						return false, err
					}
					found, err := owners.Get("x")
					return len(found) > 0, err
				}))
			}, Play: func(s *scene.Stage) {
				s.LaunchWithIndex()
				s.Create(scene.Web)
				s.Called()
				s.Create(settingsMap("a", "", "x", "1"))
				s.Called("see create")
				s.Delete(scene.ConfigMaps, "default", "a")
				s.Called()
				s.Create(settingsMap("a", "", "x", "2"))
				s.Called("see update") // its filter held, and did not: it is unknown what happened meanwhile
			}},
		"a schedule reads": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("none", scene.Succeeds)
				foo.Schedule(dsl.Timing{Every: time.Hour}, "count", func(_ context.Context, r *dsl.Request) error {
					owners, err := dsl.Index[string, any](r, "owners")
					if err == nil {
						j.Add(fmt.Sprint(owners.Len()))
					}
					return err
				})
			}, Play: func(s *scene.Stage) {
				s.Create(settingsMap("a", "", "x", "1"))
				s.LaunchWithIndex()
				s.Advance(59 * time.Minute)
				s.Forget()
				s.Create(settingsMap("b", "", "u", "1"))
				s.Advance(3 * time.Hour)
				wantLastCall(s, "2")
			}},
	})
}

// TestNewsOfAnIndexAreNotLost holds that a failed reconcile passes them on, and that they cut a wait for a retry short.
func TestNewsOfAnIndexAreNotLost(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"news of a pass that failed reach the next": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On([]dsl.Cause{dsl.IndexChange, dsl.Create}, "see", func(_ context.Context, r *dsl.Request) error {
					line, err := scene.LookUp(r)
					j.Add(line)
					r.Patch.SetStatus("seen", line)
					return err
				})
			}, Play: func(s *scene.Stage) {
				s.LaunchWithIndex()
				s.Create(scene.FooWithRef("web", "x"))
				s.Forget()
				s.FailNext("patch", scene.Foos+"/status", errors.New("connection refused"))
				s.Create(settingsMap("a", "", "x", "1"))
				s.Advance(time.Second)
				s.Called("web index: 1", "web index: 1")
			}},
		"a change cuts a retry short": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("see", func(_ context.Context, r *dsl.Request) error {
					line, err := scene.LookUp(r)
					j.Add(line)
					if err == nil && !strings.HasSuffix(line, " 1") {
						err = dsl.Temporary(scene.ErrAgain, time.Hour)
					}
					return err
				})
			}, Play: func(s *scene.Stage) {
				s.LaunchWithIndex()
				s.Create(scene.FooWithRef("web", "x"))
				s.Called("web create:")
				s.Create(settingsMap("a", "", "x", "1"))
				s.Called("web create: 1")
			}},
		"also that of a handler which has not the cause": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("see", func(_ context.Context, r *dsl.Request) error {
					line, err := scene.LookUp(r)
					j.Add(line)
					if err == nil && !strings.HasSuffix(line, " 1") {
						err = dsl.Waiting("for it", time.Hour)
					}
					return err
				})
			}, Play: func(s *scene.Stage) {
				s.LaunchWithIndex()
				s.Create(scene.FooWithRef("web", "x"))
				s.Called("web create:")
				s.Create(settingsMap("a", "", "x", "1"))
				s.Called("web create: 1")
				setData(s, "a", "v", "2")
				s.Called()
			}},
	})
}
