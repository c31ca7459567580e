// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package log_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestEventsAreLimited is law 9: an object that changes without rest, or a handler that has a lot to say,
// does not flood the cluster with Events, nor hide what the engine has to say.
func TestEventsAreLimited(t *testing.T) {
	metrics := ops.NewMetrics()
	change := func(s *scene.Stage, from, to int64) {
		for n := from; n < to; n++ {
			s.Resize(n)
			s.Advance(20 * time.Millisecond)
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"an object has 25 at once and one more each five minutes; what is dropped is counted, and logged once": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnReconcile("chatter", scene.ReportsEvents) },
			Play: func(s *scene.Stage) {
				log := scene.LaunchWithLog(s, "Events of an object are dropped")
				s.Create(scene.Web)
				s.Advance(time.Millisecond) // Events are named after the time
				change(s, 2, 502)
				if n := len(s.Events()); n != 25 {
					s.T.Errorf("%d Events, want 25", n)
				}
				if lines := log(); len(lines) != 1 || !strings.Contains(lines[0], `"name"="web"`) {
					s.T.Errorf("the log says %v", lines)
				}
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: second}, spec: {size: 1}}`)
				s.Settle()
				if n := len(scene.EventsAbout(s.Events(), "second", "Size")); n != 1 {
					s.T.Errorf("%d Events of another object, want 1", n)
				}
				s.Advance(5 * time.Minute)
				change(s, 600, 610)
				if n := len(scene.EventsAbout(s.Events(), "web", "Size")); n != 26 {
					s.T.Errorf("%d Events after five minutes, want 26", n)
				}
				if lines := log(); len(lines) != 0 {
					s.T.Errorf("the log says %v of the same flood", lines)
				}
				s.Advance(25 * 5 * time.Minute)
				change(s, 700, 800)
				if lines := log(); len(lines) != 1 {
					s.T.Errorf("the log says %v of the next flood", lines)
				}
			},
		},
		"what the metrics count": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnReconcile("chatter", scene.ReportsEvents) },
			Play: func(s *scene.Stage) {
				s.Process = s.Start(s.Operator, func(e *engine.Settings) { e.Metrics = metrics })
				s.Create(scene.Web)
				s.Advance(time.Millisecond) // Events are named after the time
				change(s, 2, 52)
				if n := droppedBy(s.T, metrics, "handler"); n != 26 {
					s.T.Errorf("%v are counted as dropped, want 26", n)
				}
				if n := droppedBy(s.T, metrics, "engine"); n != 0 {
					s.T.Errorf("%v of the engine are counted as dropped", n)
				}
			},
		},
		"one that is repeated is counted, however often": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("same", func(_ context.Context, r *dsl.Request) error {
					r.Events.Event(dsl.Normal, "Same", "Again.")
					return nil
				})
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Millisecond) // Events are named after the time
				change(s, 2, 102)
				s.Advance(15 * time.Minute)
				if events := s.Events(); len(events) != 1 || events[0].Count != 101 {
					s.T.Errorf("events %+v", events)
				}
			},
		},
		"what the engine says of the object is not crowded out": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("chatter", scene.ReportsEvents)
				foo.OnDelete("stuck", scene.Fails(dsl.Permanent(errors.New("no way"))))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Millisecond) // Events are named after the time
				change(s, 2, 102)
				s.Remove()
				s.Settle()
				if events := scene.EventsAbout(s.Events(), "web", "DeletionHeld"); len(events) != 1 {
					s.T.Errorf("events %+v", events)
				}
				s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			},
		},
	})
}

// droppedBy returns how many Events the metrics have counted as dropped.
func droppedBy(t *testing.T, metrics *ops.Metrics, reporter string) (n float64) {
	t.Helper()
	for _, m := range scene.Series(t, metrics, "handwerk_events_dropped_total") {
		if m.GetLabel()[0].GetValue() == reporter {
			n += m.GetCounter().GetValue()
		}
	}
	return n
}
