// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// playSwitched plays with a resource whose declaration can be changed: that is what the next process has.
func playSwitched(t *testing.T, observes bool, operator func(foo *dsl.Resource, j *kit.Journal), play func(s *scene.Stage, foo *dsl.Resource)) {
	t.Helper()
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo", ObservedGeneration: true})
		s := scene.NewStage(t, c)
		var declared *dsl.Resource
		s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
			declared = foo
			foo.ObservedGeneration = observes
			operator(foo, &s.Journal)
		})
		play(s, declared)
	})
}

// madeAndChanged is a handler that creates, and one that runs for changes of the spec.
func madeAndChanged(foo *dsl.Resource, j *kit.Journal) {
	foo.OnCreate("made", j.Note("made"))
	foo.On(scene.CreateAndUpdate(), "h", j.Note("h"), bySpec()...)
}

// TestObservedGenerationCanBeSwitchedOnAndOff holds law 2 where another version of an operator keeps what was handled elsewhere.
func TestObservedGenerationCanBeSwitchedOnAndOff(t *testing.T) {
	const gold = `{apiVersion: example.com/v1, kind: Foo, metadata: {name: gold}, spec: {size: 1}}`
	tests := map[string]struct {
		observes bool
		operator func(foo *dsl.Resource, j *kit.Journal)
		play     func(s *scene.Stage, foo *dsl.Resource)
	}{
		"off: a generation with the number is handled": {true, madeAndChanged, func(s *scene.Stage, foo *dsl.Resource) {
			s.Begin()
			foo.ObservedGeneration = false
			s.Process.Restart()
			s.Called()
			s.Wrote()
			s.Resize(2)
			s.Called("h update")
			s.Process.Restart()
			s.Called()
		}},
		"off: what came meanwhile is no creation": {true, madeAndChanged, func(s *scene.Stage, foo *dsl.Resource) {
			s.Begin()
			s.Process.Kill()
			s.Resize(2)
			foo.ObservedGeneration = false
			s.Process.Restart()
			s.Called("h update")
			s.Process.Restart()
			s.Called()
		}},
		"off: a book beside the number counts": {true, func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("made", j.Note("made"))
			foo.On(scene.CreateAndUpdate(), "h", j.Note("h", scene.Succeeds, scene.RetriesAfter(time.Hour), scene.Succeeds), bySpec()...)
		}, func(s *scene.Stage, foo *dsl.Resource) {
			s.Begin()
			s.Resize(2)
			s.Called("h update")
			foo.ObservedGeneration = false
			s.Process.Restart()
			s.Called()
			s.Advance(time.Hour)
			s.Called("h update 2")
		}},
		"off: the number of another manager means nothing": {false, madeAndChanged, func(s *scene.Stage, _ *dsl.Resource) {
			s.Create(scene.Web)
			s.Set(int64(1), "status", "observedGeneration")
			s.Launch()
			s.Called("made create", "h create")
		}},
		"off: nor does that which a handler sets": {false, func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("made", j.Note("made"))
			foo.On(scene.CreateAndUpdate(), "h", j.Note("h", func(_ context.Context, r *dsl.Request) error {
				r.Patch.SetStatus("observedGeneration", r.Object.GetGeneration())
				return nil
			}), bySpec()...)
		}, func(s *scene.Stage, _ *dsl.Resource) {
			s.Launch()
			s.Process.CrashAfter(1)
			s.Create(scene.Web)
			s.Called("made create", "h create")
			s.Process.Kill()
			if observedGeneration(s) != 1 {
				s.T.Error("the handler has set nothing")
			}
			s.Process.Restart()
			s.Called("made create", "h create")
		}},
		"off: the last one to write the number counts": {true, madeAndChanged, func(s *scene.Stage, foo *dsl.Resource) {
			s.Begin()
			s.Process.Kill()
			s.Resize(2)
			s.Set(int64(2), "status", "observedGeneration") // whoever that is has not handled it
			foo.ObservedGeneration = false
			s.Process.Restart()
			s.Called("made create", "h create")
		}},
		"on: the state of a book counts, and goes on": {false, func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("made", j.Note("made"))
			foo.On(scene.CreateAndUpdate(), "h", j.Note("h", scene.Succeeds, scene.Succeeds, scene.RetriesAfter(time.Hour), scene.Succeeds), bySpec()...)
		}, func(s *scene.Stage, foo *dsl.Resource) {
			s.Begin()
			s.Create(gold)
			s.Called("made create", "h create")
			s.Resize(2)
			s.Called("h update")
			s.Set(int64(1), "status", "observedGeneration") // no manager has claimed it so far
			foo.ObservedGeneration = true
			s.Process.Restart()
			s.Called()
			s.Advance(time.Hour)
			s.Called("h update 2")
			wantAllObserved(s)
			if keys := s.Web().GetAnnotations(); len(keys) > 0 {
				s.T.Errorf("annotations %v: the generation says all", keys)
			}
			s.Process.Restart()
			s.Forget()
			s.Process.Restart()
			s.Called()
			s.Wrote()
		}},
		"on: what a handler sets is not the mark": {true, func(foo *dsl.Resource, j *kit.Journal) {
			foo.On(scene.CreateAndUpdate(), "h", j.Note("h", func(_ context.Context, r *dsl.Request) error {
				r.Patch.SetStatus("observedGeneration", r.Object.GetGeneration())
				return nil
			}), bySpec()...)
			foo.On(scene.CreateAndUpdate(), "other", j.Note("other", scene.RetriesAfter(scene.Soon), scene.Succeeds), bySpec()...)
		}, func(s *scene.Stage, _ *dsl.Resource) {
			s.Launch()
			s.Create(scene.Web)
			s.Called("h create", "other create")
			s.Process.Kill()
			s.Process.Restart()
			s.Called("h create", "other create")
			wantAllObserved(s)
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { playSwitched(t, test.observes, test.operator, test.play) })
	}
}

// TestSwitchingObservedGenerationAtRandomLosesNoChange holds that an object is created once, and that no change is lost,
// however often the number is switched on and off, whatever cache there is, and wherever the operator crashes.
func TestSwitchingObservedGenerationAtRandomLosesNoChange(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 7))
			var mu sync.Mutex // handlers of a killed process may be at work yet
			var size int64
			roll := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return dice.IntN(n)
			}
			playSwitched(t, roll(2) == 0, func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("made", j.Note("made"))
				foo.On(scene.CreateAndUpdate(), "h", j.Note("h", func(_ context.Context, r *dsl.Request) error {
					seen := scene.SizeOf(r.Object)
					atomic.StoreInt64(&size, seen)
					r.Patch.Label("size", fmt.Sprint(seen))
					if roll(3) == 0 {
						r.Patch.SetStatus("size", seen)
					}
					if roll(3) == 0 {
						return dsl.Temporary(scene.ErrAgain, time.Duration(1+roll(60))*time.Second)
					}
					return nil
				}), bySpec()...)
			}, func(s *scene.Stage, foo *dsl.Resource) {
				s.Begin()
				s.Advance(time.Hour)
				s.Forget()
				for n := range int64(12) {
					switch roll(4) {
					case 0:
						s.Process.Kill()
						foo.ObservedGeneration = !foo.ObservedGeneration
					case 1:
						s.Process.CrashAfter(1 + roll(2))
					}
					s.Resize(10 + n)
					s.Advance(time.Duration(roll(100)) * time.Second)
					if roll(2) == 0 {
						s.Process.Kill()
					}
					s.Process.Restart()
				}
				s.Advance(24 * time.Hour)
				for _, line := range s.Take() {
					if line == "made create" {
						t.Errorf("it was created long ago")
					}
				}
				if got := s.Web().GetLabels()["size"]; size != 21 || got != "21" {
					t.Errorf("the last change seen is %d, and the label says %s; want 21", size, got)
				}
			})
		})
	}
}

// TestAPartialCacheHasWhatTheEngineReads holds laws 2 and 4 where the cache holds a part of the object.
func TestAPartialCacheHasWhatTheEngineReads(t *testing.T) {
	made := func(foo *dsl.Resource, j *kit.Journal) { foo.OnCreate("made", j.Note("made")) }
	again := func(s *scene.Stage) {
		s.T.Helper()
		s.Process.Restart()
		s.Called()
		s.Wrote()
		s.Advance(time.Hour)
		s.Process.Restart()
		s.Called()
		s.Wrote()
	}
	tests := map[string]func(s *scene.Stage, foo *dsl.Resource){
		"metadata alone": func(s *scene.Stage, foo *dsl.Resource) {
			foo.Cache = dsl.CacheMetadata
			s.Begin()
			again(s)
		},
		"metadata alone, after all": func(s *scene.Stage, foo *dsl.Resource) {
			s.Begin()
			foo.Cache = dsl.CacheMetadata
			again(s)
			foo.Cache = dsl.CacheCompact
			again(s)
		},
		"metadata alone, after all, and no number any more": func(s *scene.Stage, foo *dsl.Resource) {
			s.Begin()
			foo.Cache, foo.ObservedGeneration = dsl.CacheMetadata, false
			again(s)
		},
		"one field": func(s *scene.Stage, foo *dsl.Resource) {
			foo.Keep = []dsl.Path{{"spec", "color"}}
			s.Begin()
			again(s)
			foo.ObservedGeneration = false
			again(s)
		},
		"keys alone": func(s *scene.Stage, foo *dsl.Resource) {
			foo.Cache = dsl.CacheLive
			s.Begin()
			again(s)
			foo.ObservedGeneration = false
			again(s)
		},
	}
	for name, play := range tests {
		t.Run(name, func(t *testing.T) { playSwitched(t, true, made, play) })
	}
}

// TestAPartialCacheHasConditions holds that the engine keeps up conditions also where the cache holds a part of the object.
func TestAPartialCacheHasConditions(t *testing.T) {
	t.Run("one of a handler that rests is restated", func(t *testing.T) {
		scene.PlayYAML(t, `{resource: foos.v1.example.com, keep: [spec.size], handlers: [
			{id: a, set: {conditions: [{type: Sized, status: "${self.spec.size > 0}"}]}}]}`, func(s *scene.Stage) {
			s.Begin()
			s.Set("blue", "spec", "color")
			if got := s.ConditionStatus("Sized"); got != "True@2" {
				t.Errorf("the condition is %s, want True@2", got)
			}
		})
	})
	t.Run("handlers that fail are named, and others' conditions stay", func(t *testing.T) {
		calls := 0
		scene.PlayWithConditions(t, func(foo *dsl.Resource) {
			foo.Keep = []dsl.Path{{"spec", "size"}}
			foo.OnReconcile("h", func(context.Context, *dsl.Request) error {
				if calls++; calls > 3 {
					return nil
				}
				return dsl.Temporary(scene.ErrAgain, scene.Soon)
			})
		}, func(s *scene.Stage) {
			s.Set([]any{map[string]any{"type": "Theirs", "status": "True"}}, "status", "conditions")
			s.Advance(2*scene.Soon + time.Second)
			s.WantFailureCondition("Operator op: h: not yet")
			s.Advance(time.Minute)
			s.WantFailureCondition("")
			if got := s.ConditionStatus("Theirs"); got == "none" {
				t.Error("the condition of somebody else is gone")
			}
		})
	})
}
