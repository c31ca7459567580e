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
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

const bars = "bars.v1.example.org"

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
		"a status that follows 400 children, ten in a second": {
			func(foo *dsl.Resource, _ *journal) {
				foo.Owns(configMaps)
				foo.OnReconcile("count", func(_ ctx, r *dsl.Request) error {
					list, err := r.Children.List(configMaps)
					ready := 0
					for _, o := range list {
						if value(o, "data.ready") == "yes" {
							ready++
						}
					}
					r.Patch.SetStatus("ready", ready)
					return err
				})
			}, func(s *stage) {
				owner := s.Create(web)
				for i := range 400 {
					s.Create(owned(owner, "v1", "ConfigMap", fmt.Sprintf("part-%03d", i)))
				}
				s.Launch()
				for i := range 400 {
					s.Update(configMaps, "default", fmt.Sprintf("part-%03d", i), func(o *unstructured.Unstructured) {
						o.Object["data"] = map[string]any{"ready": "yes"}
					})
					s.Advance(100 * time.Millisecond)
				}
				s.Advance(5 * time.Second)
				s.at("status.ready", int64(400))
				if got := s.loops(); len(got) > 0 {
					s.t.Errorf("it counts as a loop: %v", got)
				}
			},
		},
		"a heartbeat that is written each second, for an hour": {
			func(foo *dsl.Resource, j *journal) {
				foo.Every(time.Second, "beat", j.Note("beat", func(_ ctx, r *dsl.Request) error {
					r.Patch.SetStatus("beat", r.Now.UTC().Format(time.RFC3339Nano))
					return nil
				}), dsl.At(dsl.Timing{Every: time.Second, Jitter: -1}))
			}, func(s *stage) {
				s.begin()
				before := len(s.Of("beat", "web"))
				s.Advance(time.Hour)
				if n := len(s.Of("beat", "web")) - before; n < 3590 || n > 3610 {
					s.t.Errorf("in an hour it ran %d times", n)
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
				s.t.Fatalf("no Event tells of the loop after %d calls", calls)
			}
			for _, id := range []string{"hammer", "anvil"} {
				if !strings.Contains(got[0].Note, id) {
					s.t.Errorf("the Event does not name %s: %s", id, got[0].Note)
				}
			}
		},
	}})
}

// TestNothingWaitsForWhatIsGone holds that no memory is left of writes that were waited for.
func TestNothingWaitsForWhatIsGone(t *testing.T) {
	scenarios(t, map[string]scenario{"children that come and go": {
		func(foo *dsl.Resource, j *journal) {
			foo.Owns(configMaps)
			foo.OnReconcile("sweep", j.Note("sweep", func(c ctx, r *dsl.Request) error {
				list, err := r.Children.List(configMaps)
				for _, o := range list {
					if err := r.Children.Delete(c, configMaps, o.GetName()); err != nil {
						return err
					}
					r.Patch.SetStatus("swept", o.GetName())
				}
				return err
			}))
		}, func(s *stage) {
			s.begin()
			owner := s.web()
			for i := range 50 {
				s.HoldWatches(foos)
				name := fmt.Sprintf("dust-%d", i)
				s.Create(owned(owner, "v1", "ConfigMap", name))
				s.Advance(time.Second)
				s.set(name, "metadata", "labels", "last") // news that waits for the write of the status
				s.ReleaseWatches(foos)
				s.at("status.swept", name)
			}
			s.Advance(10 * time.Minute)
			if n := len(s.List(configMaps, "default")); n > 0 {
				s.t.Errorf("%d are left", n)
			}
			if n := engine.Waiting(s.Process.Engine()); n > 0 {
				s.t.Errorf("%d objects are waited for when all is done", n)
			}
		},
	}})
}

// TestOwnWritesToHandledObjects is law 6 for an object that is written to by a handler of another resource
// of the operator: its own pass begins from no older cache.
func TestOwnWritesToHandledObjects(t *testing.T) {
	for name, write := range map[string]dsl.Func{
		"with the client": func(c ctx, r *dsl.Request) error {
			_, err := r.Client.MergePatch(c, bars, "default", "web", map[string]any{"spec": map[string]any{"size": value(r.Object, "spec.size")}})
			return err
		},
		"as a child": func(c ctx, r *dsl.Request) error {
			_, err := r.Children.Apply(c, map[string]any{
				"apiVersion": "example.org/v1", "kind": "Bar", "metadata": map[string]any{"name": "web"},
				"spec": map[string]any{"size": value(r.Object, "spec.size")},
			}, dsl.ChildSpec{Adopt: dsl.AdoptIfUnowned})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
				c.Serve(enginetest.Resource{Name: foos, Kind: "Foo"}, enginetest.Resource{Name: bars, Kind: "Bar"})
				s := newStage(t, c)
				s.Operator.Resource(foos, func(foo *dsl.Resource) {
					foo.Owns(bars)
					foo.OnReconcile("write", write)
				})
				s.Operator.Resource(bars, func(bar *dsl.Resource) {
					bar.Every(time.Second, "beat", s.Note("beat"), dsl.At(dsl.Timing{Every: time.Second, Jitter: -1}))
				})
				s.Create(`{apiVersion: example.org/v1, kind: Bar, metadata: {name: web}, spec: {size: 0}}`)
				s.begin()
				s.Advance(10 * time.Second)
				if n := len(s.Of("beat", "web")); n < 5 {
					t.Fatalf("in ten seconds it ran %d times", n)
				}
				s.HoldWatches(bars)
				s.size(2)
				s.Forget()
				s.Advance(10 * time.Second)
				s.Called()
				s.ReleaseWatches(bars)
				s.Advance(2 * time.Second)
				if last := s.Of("beat", "web"); value(last[len(last)-1].Object, "spec.size") != int64(2) || len(s.Take()) == 0 {
					t.Errorf("what it saw last is %v", last[len(last)-1].Object.Object["spec"])
				}
			})
		})
	}
}

// same returns a resource with two handlers that make a ConfigMap of the name that is given for each.
func same(one, two string) string {
	child := func(name, text string) string {
		return `{apiVersion: v1, kind: ConfigMap, metadata: {name: "` + name + `"}, data: {from: ` + text + `}}`
	}
	return `{resource: foos.v1.example.com, resync: 1m, handlers: [{id: first, apply: {settings: ` + child(one, "one") + `}},
		{id: second, apply: {limits: ` + child(two, "two") + `}}]}`
}

// TestOneChildHasOneHandler holds that two handlers do not make one object and undo each other's work.
func TestOneChildHasOneHandler(t *testing.T) {
	t.Run("where names say so, it is a fault of the configuration", func(t *testing.T) {
		_, err := parse(same("shared", "shared"))
		if err == nil || !strings.Contains(err.Error(), "first") || !strings.Contains(err.Error(), "second") {
			t.Errorf("the error is %v, want one that names both handlers", err)
		}
		for name, resource := range map[string]string{
			"other names":                 same("one", "two"),
			"names that are worked out":   same("${self.spec.one}", "${self.spec.two}"),
			"one that may be the same":    same("shared", "${self.spec.two}"),
			"a kind or namespace besides": strings.Replace(same("shared", "shared"), "ConfigMap", "Secret", 1),
		} {
			if _, err := parse(resource); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	// quarrel has both look again and again, and checks that nothing is written any more.
	quarrel := func(s *stage) {
		s.Launch()
		s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 1, one: shared, two: shared}}`)
		s.Advance(10 * time.Minute)
		before := s.Get(configMaps, "default", "shared")
		s.Forget()
		s.Advance(20 * time.Minute)
		if n := len(s.Writes()); n > 0 {
			s.t.Errorf("in twenty looks there are %d writes", n)
		}
		after := s.Get(configMaps, "default", "shared")
		if value(before, "data.from") != "one" || value(after, "data.from") != "one" {
			s.t.Errorf("the first handler's child is %v, and then %v", value(before, "data"), value(after, "data"))
		}
	}
	t.Run("where names come out the same, the second one is told", func(t *testing.T) {
		written(t, same("${self.spec.one}", "${self.spec.two}"), func(s *stage) {
			quarrel(s)
			told := false
			for _, e := range s.Events() {
				told = told || e.Type == "Warning" && e.Reason == "NameCollision" && strings.Contains(e.Note, "shared")
			}
			if !told {
				s.t.Errorf("no Event tells of it: %v", s.Events())
			}
		})
	})
	t.Run("so it is in Go", func(t *testing.T) {
		making := func(text string) dsl.Func {
			return func(c ctx, r *dsl.Request) error {
				_, err := r.Children.Apply(c, map[string]any{
					"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "shared"}, "data": map[string]any{"from": text},
				})
				return err
			}
		}
		perform(t, scenario{func(foo *dsl.Resource, _ *journal) {
			foo.Owns(configMaps)
			foo.Resync = time.Minute
			foo.OnReconcile("first", making("one"), dsl.Retries(1))
			foo.OnReconcile("second", making("two"), dsl.Retries(1))
		}, func(s *stage) {
			quarrel(s)
			s.warned("second")
		}})
	})
}
