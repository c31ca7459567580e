// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
	"github.com/handwerk-dev/handwerk/engine/ops"
)

// chatters is a handler that reports something new of each size.
func chatters(_ ctx, r *dsl.Request) error {
	size, _ := dsl.MustParsePath("spec.size").In(r.Object.Object)
	r.Events.Event(dsl.Normal, fmt.Sprint("Size", size), "The size is %v.", size)
	return nil
}

// about returns the Events of an object, by their reasons' beginning.
func about(all []enginetest.Event, name, reason string) (out []enginetest.Event) {
	for _, e := range all {
		if e.Name == name && strings.HasPrefix(e.Reason, reason) {
			out = append(out, e)
		}
	}
	return out
}

// TestEventsAreLimited is law 9: an object that changes without rest, or a handler that has a lot to say,
// does not flood the cluster with Events, nor hide what the engine has to say.
func TestEventsAreLimited(t *testing.T) {
	metrics := ops.NewMetrics()
	change := func(s *stage, from, to int64) {
		for n := from; n < to; n++ {
			s.size(n)
			s.Advance(20 * time.Millisecond)
		}
	}
	scenarios(t, map[string]scenario{
		"an object has 25 at once and one more each five minutes; what is dropped is counted, and logged once": {
			func(foo *dsl.Resource, j *journal) { foo.OnReconcile("chatter", chatters) },
			func(s *stage) {
				log := overheard(s, "Events of an object are dropped")
				s.Create(web)
				s.Advance(time.Millisecond) // Events are named after the time
				change(s, 2, 502)
				if n := len(s.Events()); n != 25 {
					s.t.Errorf("%d Events, want 25", n)
				}
				if lines := log(); len(lines) != 1 || !strings.Contains(lines[0], `"name"="web"`) {
					s.t.Errorf("the log says %v", lines)
				}
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: second}, spec: {size: 1}}`)
				s.Settle()
				if n := len(about(s.Events(), "second", "Size")); n != 1 {
					s.t.Errorf("%d Events of another object, want 1", n)
				}
				s.Advance(5 * time.Minute)
				change(s, 600, 610)
				if n := len(about(s.Events(), "web", "Size")); n != 26 {
					s.t.Errorf("%d Events after five minutes, want 26", n)
				}
				if lines := log(); len(lines) != 0 {
					s.t.Errorf("the log says %v of the same flood", lines)
				}
				s.Advance(25 * 5 * time.Minute)
				change(s, 700, 800)
				if lines := log(); len(lines) != 1 {
					s.t.Errorf("the log says %v of the next flood", lines)
				}
			},
		},
		"what the metrics count": {
			func(foo *dsl.Resource, j *journal) { foo.OnReconcile("chatter", chatters) },
			func(s *stage) {
				s.Process = s.Start(s.Operator, func(e *engine.Settings) { e.Metrics = metrics })
				s.Create(web)
				s.Advance(time.Millisecond) // Events are named after the time
				change(s, 2, 52)
				if n := droppedBy(s.t, metrics, "handler"); n != 26 {
					s.t.Errorf("%v are counted as dropped, want 26", n)
				}
				if n := droppedBy(s.t, metrics, "engine"); n != 0 {
					s.t.Errorf("%v of the engine are counted as dropped", n)
				}
			},
		},
		"one that is repeated is counted, however often": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("same", func(_ ctx, r *dsl.Request) error {
					r.Events.Event(dsl.Normal, "Same", "Again.")
					return nil
				})
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Advance(time.Millisecond) // Events are named after the time
				change(s, 2, 102)
				s.Advance(15 * time.Minute)
				if events := s.Events(); len(events) != 1 || events[0].Count != 101 {
					s.t.Errorf("events %+v", events)
				}
			},
		},
		"what the engine says of the object is not crowded out": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("chatter", chatters)
				foo.OnDelete("stuck", fails(dsl.Permanent(errors.New("no way"))))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Advance(time.Millisecond) // Events are named after the time
				change(s, 2, 102)
				s.remove()
				s.Settle()
				if events := about(s.Events(), "web", "DeletionHeld"); len(events) != 1 {
					s.t.Errorf("events %+v", events)
				}
				s.Update(foos, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			},
		},
	})
}

// droppedBy returns how many Events the metrics have counted as dropped.
func droppedBy(t *testing.T, metrics *ops.Metrics, reporter string) (n float64) {
	t.Helper()
	families, err := metrics.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "handwerk_events_dropped_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			if m.GetLabel()[0].GetValue() == reporter {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}
