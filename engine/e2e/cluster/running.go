// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/klog/v2"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// verbosity is the highest V-level in the log of [Running].
const verbosity = 1

// Running is an operator inside the test's process.
type Running struct {
	*Lines // of its log, and client-go's; errors begin with "ERROR"

	// Engine runs it.
	Engine *engine.Engine
	// Metrics are the given ones, or new ones.
	Metrics *ops.Metrics
	// Lingering is how long its goroutines may take to end after it. It is generous; tests in which one never ends
	// may shorten it.
	Lingering time.Duration

	id     string // labels its goroutines
	cancel context.CancelFunc
	done   chan struct{}
	err    error // once done
	left   bool  // whether its goroutines were checked at the end
}

// Run runs an operator until Stop, or until the test's end. The settings must have Config. Run sets Log, and
// Metrics unless given.
func Run(t testing.TB, op *dsl.Operator, s engine.Settings) *Running {
	t.Helper()
	if s.Metrics == nil {
		s.Metrics = ops.NewMetrics()
	}
	r := &Running{Lines: newEcho(t), Metrics: s.Metrics, Lingering: Patience, id: rand.String(12), done: make(chan struct{})}
	s.Log = r.logger()
	ctx, cancel := context.WithCancel(klog.NewContext(context.WithoutCancel(t.Context()), s.Log))
	r.cancel = cancel
	var err error
	r.labelled(ctx, func(context.Context) { r.Engine, err = engine.New(op, s) })
	if err != nil {
		cancel()
		t.Fatalf("making operator: %v", err)
	}
	go func() {
		defer close(r.done)
		defer r.end()
		r.labelled(ctx, func(ctx context.Context) { r.err = r.Engine.Run(ctx) })
	}()
	t.Cleanup(func() { r.Stop(t) })
	return r
}

// Cancel begins the stop without waiting. It is safe for use by several goroutines.
func (r *Running) Cancel() { r.cancel() }

// Stop stops the operator, and fails the test if that returns an error, takes too long or leaves goroutines behind.
// A second call does nothing.
func (r *Running) Stop(t testing.TB) {
	t.Helper()
	if err := r.Crash(t); err != nil {
		t.Errorf("running operator: %v", err)
	}
}

// Crash stops the operator as Stop does, but returns its error instead of failing. After [Proxy.Sever], the
// operator cannot do anything during the stop: for the API server it died at once.
func (r *Running) Crash(t testing.TB) error {
	t.Helper()
	if r.left {
		return nil
	}
	r.left = true
	r.cancel()
	select {
	case <-r.done:
	case <-time.After(Patience):
		t.Fatalf("stopping operator: %v; its goroutines:\n%s", errLate, goroutines(r.id))
	}
	if leak := awaitNoGoroutines(r.id, r.Lingering); leak != "" {
		t.Errorf("stopping operator: goroutines are left:\n%s", leak)
	}
	return r.err
}

// AwaitReady waits until the operator reports that it is ready, whatever the state of objects. There is no event
// for it, so it polls.
func (r *Running) AwaitReady(t testing.TB) {
	t.Helper()
	late, tick := time.After(Patience), time.NewTicker(glance)
	defer tick.Stop()
	for !r.ready() {
		select {
		case <-tick.C:
		case <-r.done:
			t.Fatalf("waiting for the operator to be ready: it ended: %v", r.err)
		case <-late:
			t.Fatalf("waiting for the operator to be ready: %v: %+v", errLate, r.Engine.Ready())
		}
	}
}

func (r *Running) ready() bool {
	for _, check := range r.Engine.Ready() {
		if check.State != ops.Pass && !OfObjects(check) {
			return false
		}
	}
	return true
}

// OfObjects reports whether a check is about objects that wait, fail or are held, and not about the operator.
func OfObjects(check ops.Check) bool {
	about, _, _ := strings.Cut(check.Name, "/")
	return slices.Contains([]string{"waiting", "failing", "held"}, about)
}

// labelled runs a function with the operator's label on its goroutines and those that they start.
func (r *Running) labelled(ctx context.Context, run func(context.Context)) {
	pprof.Do(ctx, pprof.Labels(goroutineLabel, r.id), run)
}

func (r *Running) logger() logr.Logger {
	return funcr.New(func(name, args string) {
		level := "ERROR"
		if len(args) > 8 && args[:8] == `"level"=` { // only information has it
			level = "INFO"
		}
		fmt.Fprintf(r, "%s %s %s %s\n", time.Now().Format("15:04:05.000"), level, name, args)
	}, funcr.Options{Verbosity: verbosity})
}

// Idle reports whether no worker is processing a key of the resource, which is also true after the operator has
// ended.
func (r *Running) Idle(t testing.TB, resource string) bool {
	t.Helper()
	select {
	case <-r.done:
		return true
	default:
	}
	// The order matters: a key that is taken in between makes the two differ.
	done := r.samples(t, "workqueue_work_duration_seconds", resource)
	return done == r.samples(t, "workqueue_queue_duration_seconds", resource)
}

// samples returns the number of samples in a histogram of a resource's queue.
func (r *Running) samples(t testing.TB, name, resource string) (sum uint64) {
	t.Helper()
	families, err := r.Metrics.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, series := range family.GetMetric() {
			if family.GetName() == name && series.GetLabel()[0].GetValue() == resource {
				sum += series.GetHistogram().GetSampleCount()
			}
		}
	}
	return sum
}

// Goroutines returns the current number of our and client-go's goroutines of the operator.
func (r *Running) Goroutines() (count int) {
	for stack := range strings.SplitSeq(goroutines(r.id), "\n\n") {
		var same int
		if _, err := fmt.Sscanf(strings.TrimSpace(stack), "%d @", &same); err == nil {
			count += same
		}
	}
	return count
}
