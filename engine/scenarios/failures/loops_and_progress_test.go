// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package failures_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// mendedAfter returns a handler that fails until so much time has passed since its first call, and then
// says in status that it is done.
func mendedAfter(d time.Duration) dsl.Func {
	var begun time.Time
	return func(_ context.Context, r *dsl.Request) error {
		if begun.IsZero() {
			begun = time.Now()
		}
		if time.Since(begun) < d {
			return scene.ErrAgain
		}
		r.Patch.SetStatus("done", true)
		return nil
	}
}

// TestAnEventIsNoAttempt holds that news lets a failing handler look early, at no cost: what counts is a try
// that was due, or one of something new.
func TestAnEventIsNoAttempt(t *testing.T) {
	failing := func(most int, mended time.Duration, causes ...dsl.Cause) func(*dsl.Resource, *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.Owns(scene.Deployments)
			foo.OnReconcile("child", scene.KeepsDeployment)
			foo.On(causes, "work", j.Note("work", mendedAfter(mended)), dsl.Retries(most))
		}
	}
	// flood makes news of the child, for half a second.
	flood := func(s *scene.Stage, n int64) {
		s.Launch()
		s.Create(scene.Web)
		for i := range n {
			s.Advance(500 * time.Millisecond / time.Duration(n))
			s.RollOut(i + 1)
		}
		s.Settle()
		for _, call := range s.Of("work", "web") {
			if call.Attempt > 2 {
				s.T.Errorf("after %v a call is attempt %d", call.At.Sub(s.Of("work", "web")[0].At), call.Attempt)
				break
			}
		}
	}
	all := map[string]scene.Scenario{
		"something new is another matter, with all its attempts": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("work", j.Note("work", scene.Succeeds, scene.Fails(scene.ErrAgain)), dsl.Retries(1))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Resize(2)
				s.Called("work update")
				s.Resize(3)
				s.Called("work update")
				s.Advance(time.Hour)
				s.Called("work update 2")
			},
		},
	}
	for name, causes := range map[string][]dsl.Cause{
		"a level-triggered handler":                   {dsl.Reconcile},
		"a handler of create, update and its child's": {dsl.Create, dsl.Update, dsl.Child},
	} {
		all[name+" keeps its attempts"] = scene.Scenario{Operator: failing(3, 2*time.Second, causes...), Play: func(s *scene.Stage) {
			flood(s, 11)
			s.Advance(time.Minute)
			s.WantField("status.done", true)
		}}
		all[name+" is not put off by news"] = scene.Scenario{Operator: failing(dsl.Unlimited, 1500*time.Millisecond, causes...), Play: func(s *scene.Stage) {
			flood(s, 30)
			s.Advance(5 * time.Second)
			s.WantField("status.done", true)
		}}
	}
	scene.PlayAll(t, all)
}

// TestProgressIsNoLoop holds that the breaker leaves objects alone that are at work, however long.
func TestProgressIsNoLoop(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a status that follows children, which change 400 times, ten times a second": {
			Operator: func(foo *dsl.Resource, _ *kit.Journal) {
				foo.Owns(scene.ConfigMaps)
				foo.OnReconcile("count", func(_ context.Context, r *dsl.Request) error {
					list, err := r.Children.List(scene.ConfigMaps)
					steps := 0
					for _, o := range list {
						text, _ := scene.ValueAt(o, "data.steps").(string)
						steps += len(text)
					}
					r.Patch.SetStatus("steps", steps)
					return err
				})
			}, Play: func(s *scene.Stage) {
				owner := s.Create(scene.Web)
				part := func(i int) string { return fmt.Sprint("part-", i%4) }
				for i := range 4 {
					s.Create(scene.OwnedObject(owner, "v1", "ConfigMap", part(i)))
				}
				s.Launch()
				for i := range 400 {
					s.Update(scene.ConfigMaps, "default", part(i), func(o *unstructured.Unstructured) {
						o.Object["data"] = map[string]any{"steps": strings.Repeat("x", i/4+1)}
					})
					s.Advance(100 * time.Millisecond)
				}
				s.Advance(5 * time.Second)
				s.WantField("status.steps", int64(400))
				if got := s.LoopEvents(); len(got) > 0 {
					s.T.Errorf("it counts as a loop: %v", got)
				}
			},
		},
		"a heartbeat that is written each second, for a quarter of an hour": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Every(time.Second, "beat", j.Note("beat", func(_ context.Context, r *dsl.Request) error {
					r.Patch.SetStatus("beat", r.Now.UTC().Format(time.RFC3339Nano))
					return nil
				}), dsl.At(dsl.Timing{Every: time.Second, Jitter: -1}))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				before := len(s.Of("beat", "web"))
				s.Advance(15 * time.Minute)
				if n := len(s.Of("beat", "web")) - before; n < 890 || n > 910 {
					s.T.Errorf("in a quarter of an hour it ran %d times", n)
				}
				if got := s.LoopEvents(); len(got) > 0 {
					s.T.Errorf("it counts as a loop: %v", got)
				}
			},
		},
	})
}

// TestALoopNamesItsHandlers holds that handlers which feed each other are stopped, and named.
func TestALoopNamesItsHandlers(t *testing.T) {
	const most = 20_000 // ends an endless loop
	feeds := func(s *int, from, to string) dsl.Func {
		return func(_ context.Context, r *dsl.Request) error {
			if *s++; *s < most {
				n, _ := scene.ValueAt(r.Object, from).(int64)
				r.Patch.Set(to, n+1)
			}
			return nil
		}
	}
	calls := 0
	scene.PlayAll(t, map[string]scene.Scenario{"two that write what the other one looks at": {
		Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnField("spec.size", "hammer", feeds(&calls, "spec.size", "spec.weight"))
			foo.OnField("spec.weight", "anvil", feeds(&calls, "spec.weight", "spec.size"))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Resize(2)
			s.Advance(time.Hour)
			if calls > most/4 {
				s.T.Errorf("in an hour they were called %d times", calls)
			}
			got := s.LoopEvents()
			if len(got) == 0 {
				s.T.Fatalf("no Event names the loop after %d calls", calls)
			}
			for _, id := range []string{"hammer", "anvil"} {
				if !strings.Contains(got[0].Note, id) {
					s.T.Errorf("the Event does not name %s: %s", id, got[0].Note)
				}
			}
		},
	}})
}
