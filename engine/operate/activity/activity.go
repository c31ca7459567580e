// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package activity runs the startups, cleanups and probes of an operator: at the start and the end of its process, and
// for checks of its health.
package activity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/children/apply"
	"github.com/handwerk-dev/handwerk/engine/cluster/events"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/reconcile/attempt"
)

// stuck is how long an attempt waits for code that ignores the end of its context.
const stuck = 5 * time.Second

var (
	errNoObject = errors.New("it runs for the operator as a whole, and not for one object")
	errStuck    = errors.New("it does not heed the end of its context")
)

// Settings are the settings of activities. All are required.
type Settings struct {
	Operator *dsl.Operator
	Log      logr.Logger
	// Memo is the operator's memo.
	Memo *dsl.Memo
	// Held reports whether this process may write.
	Held transport.Held
	// Clients makes the client of an attempt.
	Clients Clients
	// Indexes are the operator's indexes. Unwatched are those for startups, which run before anything is watched.
	Indexes, Unwatched dsl.Indexes
	// Events sends Events about objects.
	Events *events.Recorder
	// Grace is the grace period.
	Grace time.Duration
}

// Clients makes clients for activities, as [reconcile.ClientSettings] does.
type Clients interface {
	// Unnoted returns a client whose writes end with the span.
	Unnoted(*transport.Span) dsl.Client
}

// Hooks runs the activities of one operator.
type Hooks struct {
	set    Settings
	probes []*probe
	cleans sync.Once

	mu sync.Mutex // guards what follows
	// begun: the startups are through. now is the startup that runs, with its last error.
	begun bool
	now   string
	// ctx is the context of the process, once the startups are through. Probes end with it.
	ctx context.Context
	// asked is when the process was asked to stop.
	asked time.Time
}

// New returns the activities of an operator. Nothing runs yet.
func New(s Settings) *Hooks {
	x := &Hooks{set: s}
	for _, c := range []dsl.Cause{dsl.HealthProbe, dsl.ReadyProbe} {
		for _, h := range s.Operator.Activities(c) {
			x.probes = append(x.probes, newProbe(x, h))
		}
	}
	return x
}

// StartupError is the error of a startup that failed. The process does not run without it.
type StartupError struct {
	// ID is the id of the startup.
	ID  string
	Err error
}

// Error names the startup.
func (e *StartupError) Error() string { return fmt.Sprintf("running startup %s: %v", e.ID, e.Err) }

// Unwrap returns the error of the startup's code.
func (e *StartupError) Unwrap() error { return e.Err }

// Start runs the startups, in order. It returns the error of a startup that failed for good, or of ctx.
func (x *Hooks) Start(ctx context.Context) error {
	context.AfterFunc(ctx, func() {
		x.mu.Lock()
		x.asked = time.Now()
		x.mu.Unlock()
	})
	for _, h := range x.set.Operator.Activities(dsl.Startup) {
		x.say(h.ID)
		if err := x.run(ctx, h); err != nil {
			return &StartupError{h.ID, err}
		}
	}
	x.mu.Lock()
	x.begun, x.ctx = true, ctx
	x.mu.Unlock()
	return nil
}

// Clean runs the cleanups, in order and once, within the rest of the grace period or at least a tenth of it. Each gets
// an equal part of the remaining time. If the startups are not through, it does nothing.
func (x *Hooks) Clean(ctx context.Context) {
	x.cleans.Do(func() {
		x.mu.Lock()
		begun, left := x.begun, x.set.Grace
		if !x.asked.IsZero() {
			left = max(left-time.Since(x.asked), left/10)
		}
		x.mu.Unlock()
		all := x.set.Operator.Activities(dsl.Cleanup)
		if !begun || len(all) == 0 {
			return
		}
		end := time.Now().Add(left)
		for i, h := range all {
			// A part of the remaining time, so that a cleanup that fails again and again leaves time for the following
			// ones.
			one, cancel := context.WithTimeout(ctx, time.Until(end)/time.Duration(len(all)-i))
			if err := x.run(one, h); err != nil {
				x.log(h).Error(err, "cleanup failed")
			}
			cancel()
		}
	})
}

// run runs an activity until it has succeeded, or failed for good.
func (x *Hooks) run(ctx context.Context, h *dsl.Handler) error {
	r := progress.Record{Cause: h.Causes[0]}
	var last error
	failed := trouble{log: x.log(h)}
	for ctx.Err() == nil {
		r = r.Start(h, time.Now())
		err := r.Overdue(h, time.Now())
		if err == nil {
			err = x.attempt(ctx, h, r.Attempts+1, r.Deadline(h))
		}
		if err != nil && ctx.Err() != nil {
			return cause(ctx, err, last)
		}
		last = err
		_, waits := attempt.Waits(err)
		if r = attempt.Note(h, r, err, time.Now(), "", func(error) bool { return false }); err == nil {
			failed.over()
			return nil
		}
		switch {
		case r.Failed:
			return err
		case r.Done:
			x.log(h).Info("activity failed, which counts as success", logmark.Warning, true, "error", err.Error())
			return nil
		}
		x.say(h.ID + ": " + r.Message)
		wait := max(0, r.Remaining(time.Now()))
		failed.say(err, waits, wait)
		pause(ctx, wait)
	}
	return cause(ctx, nil, last)
}

// cause returns the error of an activity that ended with its context: the context's error and the last error before. If
// the code ignored the end of the context, it returns errStuck.
func cause(ctx context.Context, err, last error) error {
	switch {
	case errors.Is(err, errStuck):
		return err
	case last != nil:
		return fmt.Errorf("%w, when it had failed: %w", ctx.Err(), last)
	}
	return ctx.Err()
}

func pause(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// attempt runs an activity once. It returns some time after the end of ctx, even if the code does not.
func (x *Hooks) attempt(ctx context.Context, h *dsl.Handler, n int, end time.Time) error {
	span := transport.NewSpan(x.set.Held)
	request := x.request(h, n, span)
	done := make(chan error, 1)
	go func() { done <- once(ctx, h, request, end, span) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	timer := time.NewTimer(stuck)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return errStuck
	}
}

// once runs an activity. It rejects sub-handlers, because nothing would keep their progress.
func once(ctx context.Context, h *dsl.Handler, request *dsl.Request, end time.Time, span *transport.Span) error {
	err := attempt.Run(ctx, h, h.Func, request, end, span)
	if err == nil && request.Parts.Any() {
		return dsl.Permanent(fmt.Errorf("it declares sub-handlers, which %s does not have", h.Causes[0]))
	}
	return err
}

func (x *Hooks) log(h *dsl.Handler) logr.Logger {
	return x.set.Log.WithValues("activity", string(h.Causes[0]), "handler", h.ID)
}

func (x *Hooks) request(h *dsl.Handler, n int, span *transport.Span) *dsl.Request {
	children := apply.NoChildren(errNoObject)
	out := &dsl.Request{
		Subject: dsl.Subject{
			Object: &unstructured.Unstructured{Object: map[string]any{}}, Handler: h.ID, Cause: h.Causes[0], Attempt: n, Now: time.Now(),
			Log: x.log(h).WithValues("attempt", n), Children: children, Related: Nothing{}, Secrets: x.set.Operator.Secrets(),
		},
		Patch: dsl.NewPatch(), Children: children, Targets: apply.NoTargets(errNoObject), Client: x.set.Clients.Unnoted(span), Memo: x.set.Memo, OperatorMemo: x.set.Memo,
	}
	if out.Indexes = x.set.Indexes; h.Causes[0] == dsl.Startup {
		out.Indexes = x.set.Unwatched
	}
	out.Events = events.Log{Log: out.Log, Attempt: span, Recorder: x.set.Events, Handler: h.ID}
	return out
}

// Nothing are the related objects of an activity, which has no object.
type Nothing struct{}

// Get returns an error.
func (Nothing) Get(name string) ([]*unstructured.Unstructured, error) {
	return nil, dsl.Permanent(fmt.Errorf("reading related objects of %s: %w", name, errNoObject))
}

// Relations returns nil.
func (Nothing) Relations() []dsl.Relation { return nil }

// Absent returns an empty string.
func (Nothing) Absent(string) string { return "" }

func (x *Hooks) say(now string) {
	x.mu.Lock()
	x.now = now
	x.mu.Unlock()
}

// Startup returns the startup that runs, with its last error; empty once they are through.
func (x *Hooks) Startup() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.begun {
		return ""
	}
	return x.now
}

// Checks calls the probes of a cause, all at the same time, and returns their checks. Before the startups are through,
// it calls no probe; for readiness it returns the startup that runs.
func (x *Hooks) Checks(c dsl.Cause) []ops.Check {
	x.mu.Lock()
	begun, now := x.begun, x.now
	x.mu.Unlock()
	if !begun {
		if c == dsl.ReadyProbe && now != "" {
			return []ops.Check{{Name: "startup", State: ops.Fail, Message: now}}
		}
		return nil
	}
	probes := slices.DeleteFunc(slices.Clone(x.probes), func(p *probe) bool { return p.h.Causes[0] != c })
	out := make([]ops.Check, len(probes))
	var all sync.WaitGroup
	for i, p := range probes {
		all.Go(func() { out[i] = p.check() })
	}
	all.Wait()
	return out
}
