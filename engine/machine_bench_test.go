// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// BenchmarkMachines measures what each of 10,000 objects costs that rest in a state of a machine with a time-out: the memory
// that is kept of it, beside that of one whose handler has set two fields of the status, the processor time of a
// process that finds them, as after a restart, the server of the test kit included, and the time of a scrape of the gauges.
func BenchmarkMachines(b *testing.B) {
	const count = 10_000
	for b.Loop() {
		plain := restingIn(b, count, func(x *bustle, foo *dsl.Resource) {
			foo.OnReconcile("plain", func(_ context.Context, r *dsl.Request) error {
				r.Patch.SetStatus("state", "Running")
				r.Patch.SetStatus("stateSince", "2030-01-01T00:00:00Z")
				r.Patch.SetStatus("stateUID", string(r.Object.GetUID()))
				x.runs.Add(1)
				return nil
			})
		})
		machine := restingIn(b, count, func(x *bustle, foo *dsl.Resource) {
			foo.Machine(dsl.Machine{States: []dsl.State{
				{Name: "Running", During: func(context.Context, *dsl.Request) error { x.runs.Add(1); return nil }, Stay: &dsl.Stay{AtMost: time.Hour, Then: "Failed"},
					Transitions: []dsl.Transition{{To: "Done", When: scene.SizeOver(count)}}},
				{Name: "Done", Terminal: true}, {Name: "Failed", Terminal: true, Failed: true},
			}})
		})
		b.ReportMetric((machine.heap-plain.heap)/count, "B/object")
		b.ReportMetric(machine.found.Seconds()*1e6/count, "found-cpu-µs/object")
		b.ReportMetric(plain.found.Seconds()*1e6/count, "plain-found-cpu-µs/object")
		b.ReportMetric(machine.scrape.Seconds()*1e3, "scrape-ms")
	}
}

// resting is what objects at rest cost.
type resting struct {
	heap          float64
	found, scrape time.Duration
}

// processorTime is what this process has taken so far.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// restingIn has an operator handle objects, and a second process find them.
func restingIn(b *testing.B, count int, define func(*bustle, *dsl.Resource)) (out resting) {
	b.Helper()
	x := newBustle(b, count)
	run := func() *ops.Metrics {
		op, m := dsl.New("op"), ops.NewMetrics()
		op.Settings.LeaderElection.Mode = dsl.LeaderNone
		op.Resource(scene.Foos, func(foo *dsl.Resource) { define(x, foo) })
		x.launch(op, engine.Settings{Config: x.cluster.Config(), Metrics: m})
		return m
	}
	run()
	x.await(int64(count))
	<-time.After(3 * time.Second) // the echoes of its writes
	x.end()
	x.runs.Store(0)
	before := processorTime(b)
	m := run()
	x.await(int64(count))
	out.found = processorTime(b) - before
	<-time.After(3 * time.Second)
	with := liveHeap()
	began := time.Now()
	if _, err := m.Registry().Gather(); err != nil {
		b.Fatal(err)
	}
	out.scrape = time.Since(began)
	x.end()
	out.heap = float64(with - liveHeap())
	for _, o := range x.cluster.List(scene.Foos, "default")[:1] {
		if state, _, _ := unstructured.NestedString(o.Object, "status", "state"); state != "Running" {
			b.Fatalf("an object is in state %q", state)
		}
	}
	return out
}
