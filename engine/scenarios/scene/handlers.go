// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// ErrAgain is the error of handlers that fail.
var ErrAgain = errors.New("not yet")

// Soon and Late are waits before a retry. Progress is kept in memory alone until a retry that is due soon, and is stored until
// one that is due late.
const (
	Soon = 5 * time.Second
	Late = time.Minute
)

// Syncs declares one level-triggered handler, sync.
func Syncs(foo *dsl.Resource, j *kit.Journal) { foo.OnReconcile("sync", j.Note("sync")) }

// EachCause declares one handler for each cause.
func EachCause(foo *dsl.Resource, j *kit.Journal) {
	foo.OnCreate("made", j.Note("made"))
	foo.OnUpdate("changed", j.Note("changed"))
	foo.OnField("spec.size", "sized", j.Note("sized"))
	foo.OnResume("back", j.Note("back"))
	foo.OnDelete("left", j.Note("left"))
}

// CreateAndUpdate are the causes of a handler that runs for every change.
func CreateAndUpdate() []dsl.Cause { return []dsl.Cause{dsl.Create, dsl.Update} }

// AlsoFor adds causes to those that a handler is declared with.
func AlsoFor(causes ...dsl.Cause) dsl.Option {
	return func(h *dsl.Handler) { h.Causes = append(slices.Clone(h.Causes), causes...) }
}

// SizeOver returns a filter for objects with a larger spec.size.
func SizeOver(n int64) dsl.Predicate {
	return func(s *dsl.Subject) (bool, error) { return SizeOf(s.Object) > n, nil }
}

// Succeeds is a handler that does nothing.
func Succeeds(context.Context, *dsl.Request) error { return nil }

// TakesTime returns a handler that takes its time.
func TakesTime(d time.Duration) dsl.Func {
	return func(ctx context.Context, _ *dsl.Request) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Panics is a handler that panics.
func Panics(context.Context, *dsl.Request) error { panic("nil map") }

// Fails returns a handler that fails.
func Fails(err error) dsl.Func { return func(context.Context, *dsl.Request) error { return err } }

// RetriesAfter returns a handler that fails, and says when it is to be retried.
func RetriesAfter(after time.Duration) dsl.Func { return Fails(dsl.Temporary(ErrAgain, after)) }

// FailsOnce is a handler that fails at its first attempt, and is to be retried an hour later.
func FailsOnce(_ context.Context, r *dsl.Request) error {
	if r.Attempt > 1 {
		return nil
	}
	return dsl.Temporary(ErrAgain, time.Hour)
}

// FailsFirst returns a handler that fails at its first n calls.
func FailsFirst(n int, err error) dsl.Func {
	return func(context.Context, *dsl.Request) error {
		if n--; n >= 0 {
			return err
		}
		return nil
	}
}

// DeclaresSubHandlers returns a handler that declares sub-handlers of these names. Each notes its attempts, and does what then
// has for it.
func DeclaresSubHandlers(j *kit.Journal, then map[string]dsl.Func, options map[string][]dsl.Option, names ...string) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error {
		for _, name := range names {
			r.Handle(name, func(ctx context.Context, r *dsl.Request) error {
				j.Add(fmt.Sprintf("%s %s %d", r.Handler, r.Cause, r.Attempt))
				if do := then[name]; do != nil {
					return do(ctx, r)
				}
				return nil
			}, options[name]...)
		}
		return nil
	}
}

// NotesOld returns a handler that notes its old and diff.
func NotesOld(j *kit.Journal) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error {
		var changes []string
		for _, c := range r.Diff {
			changes = append(changes, fmt.Sprint(c.Op, " ", c.Path, " ", c.Old, " ", c.New))
		}
		j.Add(fmt.Sprint(r.Cause, " ", r.Old, " ", changes))
		return nil
	}
}

// SetsYes returns a handler that sets a field of the object.
func SetsYes(path string) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error {
		r.Patch.Set(path, "yes")
		return nil
	}
}

// DefaultColor sets spec.color if it is not set.
func DefaultColor(r *dsl.Request) {
	if ValueAt(r.Object, "spec.color") == nil {
		r.Patch.Set("spec.color", "white")
	}
}

// Reports is a handler that sets status.size and the condition Ready.
func Reports(_ context.Context, r *dsl.Request) error {
	r.Patch.SetStatus("size", ValueAt(r.Object, "spec.size"))
	r.Patch.SetCondition("Ready", "True", "Done", "All is well.")
	return nil
}

// ReportsSize is a handler that sets status.size.
func ReportsSize(_ context.Context, r *dsl.Request) error {
	r.Patch.SetStatus("size", ValueAt(r.Object, "spec.size"))
	return nil
}

// ReportsSeen is a handler that sets status.seen to spec.size.
func ReportsSeen(_ context.Context, r *dsl.Request) error {
	r.Patch.SetStatus("seen", SizeOf(r.Object))
	return nil
}

// ReportsEvents is a handler that sends an Event about each new size.
func ReportsEvents(_ context.Context, r *dsl.Request) error {
	size := ValueAt(r.Object, "spec.size")
	r.Events.Event(dsl.Normal, fmt.Sprint("Size", size), "The size is %v.", size)
	return nil
}

// Seconds returns durations.
func Seconds(all ...int) []time.Duration {
	var out []time.Duration
	for _, n := range all {
		out = append(out, time.Duration(n)*time.Second)
	}
	return out
}

// WithoutJitter returns a timing without jitter.
func WithoutJitter(t dsl.Timing) dsl.Timing {
	t.Jitter = -1
	return t
}

// Hourly returns a schedule at each full hour. Virtual time begins at a full hour.
func Hourly() dsl.Timing { return WithoutJitter(dsl.Timing{Cron: "@hourly"}) }
