// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/ops"
)

// TestFailuresForGoodAreMended is law 1 for handlers that failed for good: they run again when what they
// look at changes, for the cause that they failed with.
func TestFailuresForGoodAreMended(t *testing.T) {
	good := fails(dsl.Permanent(errAgain))
	alone := func(options ...dsl.Option) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) { foo.OnCreate("made", j.Note("made", good, succeeds), options...) }
	}
	beside := func(foo *dsl.Resource, j *journal) {
		alone(dsl.Field("spec.size"))(foo, j)
		foo.OnUpdate("changed", j.Note("changed"))
	}
	// mends: a change is what it takes, once.
	mends := func(s *stage) {
		s.t.Helper()
		s.size(2)
		s.Called("made create")
		s.size(3)
		s.Advance(time.Hour)
		s.Called()
		s.Process.Restart()
		s.Called()
	}
	scenarios(t, map[string]scenario{
		"a create handler runs again when the spec is mended": {alone(), func(s *stage) {
			s.begin()
			s.Advance(time.Hour)
			s.Called()
			mends(s)
		}},
		"the same after a restart": {alone(), func(s *stage) {
			s.begin()
			s.Process.Restart()
			s.Called()
			mends(s)
		}},
		"the same when its retries are used up": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnCreate("made", j.Note("made", fails(errAgain), fails(errAgain), succeeds), dsl.Retries(1))
			}, func(s *stage) {
				s.begin()
				s.Advance(time.Hour)
				s.Called("made create 2")
				mends(s)
			},
		},
		"the same when it is mended while no process runs": {alone(), func(s *stage) {
			s.begin()
			stop(s)
			s.size(2)
			s.Process.Restart()
			s.Called("made create")
			s.Process.Restart()
			s.Called()
		}},
		"it does not run for what it does not look at": {beside, func(s *stage) {
			s.begin()
			s.set("blue", "spec", "color")
			s.Called("changed update")
			s.size(2)
			s.Called("made create", "changed update")
			s.size(3)
			s.Called("changed update")
		}},
		"an update handler runs again, and sees what it has not handled": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnUpdate("changed", j.Note("changed", func(ctx ctx, r *dsl.Request) error {
					_ = olds(j)(ctx, r)
					return dsl.Permanent(errAgain)
				}, olds(j)))
			}, func(s *stage) {
				s.begin()
				s.size(2)
				s.Called("changed update", "update map[spec:map[color:red size:1]] [change spec.size 1 2]")
				s.Process.Restart()
				s.Called()
				s.size(3)
				s.Settle()
				if got := s.Take(); len(got) != 2 || got[0] != "changed update" {
					s.t.Errorf("calls %v", got)
				}
			},
		},
	})
}

// TestAfterAHandlerThatFailed is law 1 for handlers that come after one that failed for good: they have
// not failed, and run when that one has succeeded at last, whatever it ran for.
func TestAfterAHandlerThatFailed(t *testing.T) {
	good := fails(dsl.Permanent(errAgain))
	onSize, onColor := dsl.Field("spec.size"), dsl.Field("spec.color")
	// chain declares first, which fails for good once, and second, which comes after it.
	chain := func(second []dsl.Cause, first ...dsl.Option) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.On(both(), "first", j.Note("first", good, succeeds), append(first, onSize)...)
			foo.On(second, "second", j.Note("second"), onColor, dsl.After("first"))
		}
	}
	edge, reconcile := both(), []dsl.Cause{dsl.Reconcile}
	mends := func(s *stage) {
		s.t.Helper()
		s.begin()
		s.size(2)
		s.Called("first update", "second create")
		s.Advance(time.Hour)
		s.Called()
		s.Process.Restart()
		s.Forget()
		s.set("blue", "spec", "color")
		s.Called("second update")
	}
	scenarios(t, map[string]scenario{
		"it runs when what that one looks at was mended": {chain(edge), mends},
		"the same where it is level-triggered":           {chain(reconcile), mends},
		"the same where that one is level-triggered": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("first", j.Note("first", good, succeeds), onSize)
				foo.On(both(), "second", j.Note("second"), onColor, dsl.After("first"))
			}, mends,
		},
		"the same after a restart": {chain(edge), func(s *stage) {
			s.begin()
			s.Process.Restart()
			s.Called()
			s.size(2)
			s.Called("first update", "second create")
		}},
		"the same when it was mended while no process ran": {chain(edge), func(s *stage) {
			s.begin()
			stop(s)
			s.size(2)
			s.Process.Restart()
			s.Called("first update", "second create")
		}},
		"what it looks at has changed meanwhile, too": {chain(edge), func(s *stage) {
			s.begin()
			s.set("blue", "spec", "color")
			s.Called()
			s.size(2)
			s.Called("first update", "second create")
			s.Advance(time.Hour)
			s.Called()
		}},
		"it runs when that one succeeds for a child": {
			func(foo *dsl.Resource, j *journal) {
				foo.Owns(deployments)
				foo.OnCreate("child", keepsChild)
				chain(edge, also(dsl.Child))(foo, j)
			}, func(s *stage) {
				s.begin()
				s.rollout(1)
				s.Called("first child", "second create")
				s.rollout(2)
				s.Called("first child")
			},
		},
		"it runs when that one succeeds for a related object": {
			func(foo *dsl.Resource, j *journal) {
				foo.Relates(dsl.Relation{Name: "them", Resource: dsl.ResourceName{Resource: "configmaps", Version: "v1"}, Select: byLabel})
				chain(edge, also(dsl.RelatedChange))(foo, j)
			}, func(s *stage) {
				s.begin()
				s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: one, labels: {app: web}}}`)
				s.Called("first related", "second create")
			},
		},
		"it runs when that one succeeds for its timer": {
			chain(edge, also(dsl.Timer), dsl.At(exact(dsl.Timing{Every: time.Minute}))), func(s *stage) {
				s.begin()
				s.Advance(time.Minute)
				s.Called("first timer", "second create")
				s.Advance(time.Minute)
				s.Called("first timer")
			},
		},
		"it runs when that one succeeds for a resync": {
			func(foo *dsl.Resource, j *journal) {
				foo.Resync = time.Hour
				chain(edge, also(dsl.Resync))(foo, j)
			}, func(s *stage) {
				s.begin()
				// The first resync comes at a random time of the hour, the next one 54 minutes later at the soonest.
				for before := s.Len(); s.Len() == before; {
					s.Advance(time.Minute)
				}
				s.Called("first resync", "second create")
			},
		},
		"an update that was held up runs when that one succeeds": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "first", j.Note("first", succeeds, good, succeeds), onSize)
				foo.On(both(), "second", j.Note("second"), onColor, dsl.After("first"))
			}, func(s *stage) {
				s.begin()
				s.Update(foos, "default", "web", func(o *unstructured.Unstructured) {
					o.Object["spec"] = map[string]any{"size": int64(2), "color": "blue"}
				})
				s.Called("first update")
				s.size(3)
				s.Called("first update", "second update")
			},
		},
		"it is not counted as one that failed": {chain(edge), func(s *stage) {
			metrics := ops.NewMetrics()
			s.Process = s.Start(s.Operator, func(e *engine.Settings) { e.Metrics = metrics })
			s.Create(web)
			s.Advance(time.Hour)
			first, second := runsOf(s.t, metrics, "first", "failed"), runsOf(s.t, metrics, "second", "failed")
			if first != 1 || second != 0 {
				s.t.Errorf("%v runs of the first are counted as failed, want 1, and %v of the second, want none", first, second)
			}
		}},
	})
}

// also gives a handler causes beside those it is declared with.
func also(causes ...dsl.Cause) dsl.Option {
	return func(h *dsl.Handler) { h.Causes = append(slices.Clone(h.Causes), causes...) }
}
