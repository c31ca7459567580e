// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

// mendedAfter returns a handler that fails until so much time has passed since its first call, and then
// says in status that it is done.
func mendedAfter(d time.Duration) dsl.Func {
	var begun time.Time
	return func(_ ctx, r *dsl.Request) error {
		if begun.IsZero() {
			begun = time.Now()
		}
		if time.Since(begun) < d {
			return errAgain
		}
		r.Patch.SetStatus("done", true)
		return nil
	}
}

// TestNewsIsNoAttempt holds that news lets a failing handler look early, at no cost: what counts is a try
// that was due, or one of something new.
func TestNewsIsNoAttempt(t *testing.T) {
	failing := func(most int, mended time.Duration, causes ...dsl.Cause) func(*dsl.Resource, *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.Owns(deployments)
			foo.OnReconcile("child", keepsChild)
			foo.On(causes, "work", j.Note("work", mendedAfter(mended)), dsl.Retries(most))
		}
	}
	// flood makes news of the child, for half a second.
	flood := func(s *stage, n int64) {
		s.Launch()
		s.Create(web)
		for i := range n {
			s.Advance(500 * time.Millisecond / time.Duration(n))
			s.rollout(i + 1)
		}
		s.Settle()
		for _, call := range s.Of("work", "web") {
			if call.Attempt > 2 {
				s.t.Errorf("after %v a call is attempt %d", call.At.Sub(s.Of("work", "web")[0].At), call.Attempt)
				break
			}
		}
	}
	all := map[string]scenario{
		"something new is another matter, with all its attempts": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("work", j.Note("work", succeeds, fails(errAgain)), dsl.Retries(1))
			}, func(s *stage) {
				s.begin()
				s.size(2)
				s.Called("work update")
				s.size(3)
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
		all[name+" keeps its attempts"] = scenario{failing(3, 2*time.Second, causes...), func(s *stage) {
			flood(s, 11)
			s.Advance(time.Minute)
			s.at("status.done", true)
		}}
		all[name+" is not put off by news"] = scenario{failing(dsl.Unlimited, 1500*time.Millisecond, causes...), func(s *stage) {
			flood(s, 30)
			s.Advance(5 * time.Second)
			s.at("status.done", true)
		}}
	}
	scenarios(t, all)
}

// loops returns the Events by which the breaker says that an object rests.
func (s *stage) loops() (out []enginetest.Event) {
	s.t.Helper()
	for _, e := range s.Events() {
		if e.Reason == "Looping" {
			out = append(out, e)
		}
	}
	return out
}

// TestProgressIsNoLoop holds that the breaker leaves objects alone that are at work, however long.
func TestProgressIsNoLoop(t *testing.T) {
	scenarios(t, map[string]scenario{
		"a status that follows children, which change 400 times, ten times a second": {
			func(foo *dsl.Resource, _ *journal) {
				foo.Owns(configMaps)
				foo.OnReconcile("count", func(_ ctx, r *dsl.Request) error {
					list, err := r.Children.List(configMaps)
					steps := 0
					for _, o := range list {
						text, _ := value(o, "data.steps").(string)
						steps += len(text)
					}
					r.Patch.SetStatus("steps", steps)
					return err
				})
			}, func(s *stage) {
				owner := s.Create(web)
				part := func(i int) string { return fmt.Sprint("part-", i%4) }
				for i := range 4 {
					s.Create(owned(owner, "v1", "ConfigMap", part(i)))
				}
				s.Launch()
				for i := range 400 {
					s.Update(configMaps, "default", part(i), func(o *unstructured.Unstructured) {
						o.Object["data"] = map[string]any{"steps": strings.Repeat("x", i/4+1)}
					})
					s.Advance(100 * time.Millisecond)
				}
				s.Advance(5 * time.Second)
				s.at("status.steps", int64(400))
				if got := s.loops(); len(got) > 0 {
					s.t.Errorf("it counts as a loop: %v", got)
				}
			},
		},
		"a heartbeat that is written each second, for a quarter of an hour": {
			func(foo *dsl.Resource, j *journal) {
				foo.Every(time.Second, "beat", j.Note("beat", func(_ ctx, r *dsl.Request) error {
					r.Patch.SetStatus("beat", r.Now.UTC().Format(time.RFC3339Nano))
					return nil
				}), dsl.At(dsl.Timing{Every: time.Second, Jitter: -1}))
			}, func(s *stage) {
				s.begin()
				before := len(s.Of("beat", "web"))
				s.Advance(15 * time.Minute)
				if n := len(s.Of("beat", "web")) - before; n < 890 || n > 910 {
					s.t.Errorf("in a quarter of an hour it ran %d times", n)
				}
				if got := s.loops(); len(got) > 0 {
					s.t.Errorf("it counts as a loop: %v", got)
				}
			},
		},
	})
}

// owned is an object in the default namespace that the owner controls.
func owned(owner *unstructured.Unstructured, apiVersion, kind, name string) map[string]any {
	return map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name, "ownerReferences": []any{map[string]any{
			"apiVersion": owner.GetAPIVersion(), "kind": owner.GetKind(), "name": owner.GetName(), "uid": string(owner.GetUID()), "controller": true,
		}}},
	}
}

// TestALoopNamesItsHandlers holds that handlers which feed each other are stopped, and named.
func TestALoopNamesItsHandlers(t *testing.T) {
	const most = 20_000 // ends a loop that nobody stops
	feeds := func(s *int, from, to string) dsl.Func {
		return func(_ ctx, r *dsl.Request) error {
			if *s++; *s < most {
				n, _ := value(r.Object, from).(int64)
				r.Patch.Set(to, n+1)
			}
			return nil
		}
	}
	calls := 0
	scenarios(t, map[string]scenario{"two that write what the other one looks at": {
		func(foo *dsl.Resource, _ *journal) {
			foo.OnField("spec.size", "hammer", feeds(&calls, "spec.size", "spec.weight"))
			foo.OnField("spec.weight", "anvil", feeds(&calls, "spec.weight", "spec.size"))
		}, func(s *stage) {
			s.begin()
			s.size(2)
			s.Advance(time.Hour)
			if calls > most/4 {
				s.t.Errorf("in an hour they were called %d times", calls)
			}
			got := s.loops()
			if len(got) == 0 {
				s.t.Fatalf("no Event names the loop after %d calls", calls)
			}
			for _, id := range []string{"hammer", "anvil"} {
				if !strings.Contains(got[0].Note, id) {
					s.t.Errorf("the Event does not name %s: %s", id, got[0].Note)
				}
			}
		},
	}})
}
