// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/attempt"
	"github.com/handwerk-dev/handwerk/engine/patch"
)

// errParts is the error for actions that declare sub-handlers.
var errParts = errors.New("declaring sub-handlers: actions of a machine have none (want states)")

// enter runs the state's Enter unless it has succeeded before, and reports whether it has succeeded.
func (x *Run) enter(ctx context.Context) bool {
	if x.state.Enter == nil || !x.Entered.IsZero() {
		return true
	}
	wanted, err := x.do(ctx, "enter", x.state.Enter)
	if err != nil {
		x.fail(err, "enter", EnterFailed)
		return false
	}
	x.Entered, x.enters, x.request.Step = now(), x.outside, 0
	if !wanted {
		x.Done = Done{State: x.State, Since: x.Since, At: x.Entered, Book: x.Known.Book}
	}
	return true
}

// during runs the state's During, and reports whether the object is still in that state.
func (x *Run) during(ctx context.Context) bool {
	if b := x.state.Retries; b != nil && x.Failures > int64(b.AtMost) { // and the transition was not written
		x.spend(fmt.Sprintf("during failed %s", times(x.Failures)))
		return false
	}
	if x.state.During == nil {
		return true
	}
	moves := len(x.Moves)
	if _, err := x.do(ctx, "during", x.state.During); err != nil {
		x.fail(err, "during", DuringFailed)
		return len(x.Moves) == moves
	}
	x.request.Step = 0
	return true
}

// act is the result of an action.
type act struct {
	name  string // enter or during
	wants *dsl.Patch
	err   error
	step  int
	again *time.Duration
	// void: its changes are dropped.
	void bool
	// refused is the server's refusal of the action's changes; nil if the action is not known to be the cause.
	refused error
}

// do runs an action, unless the previous attempt in the pass has, and adds its changes. It reports whether there
// are any.
func (x *Run) do(ctx context.Context, name string, action dsl.Func) (wanted bool, err error) {
	a := x.Before.did(name)
	if a == nil {
		a = x.call(ctx, name, action)
	}
	x.acts = append(x.acts, a)
	switch {
	case a.refused != nil:
		return false, fmt.Errorf("changing the object: %w", a.refused)
	case a.void:
		return false, a.err
	}
	if x.request.Step = a.step; a.again != nil {
		x.request.RunAgain(*a.again)
	}
	outside, wrong := x.show(a.wants)
	if err = a.err; wrong != nil { // a transformation failed
		a.wants.Transforms, err = nil, wrong
	}
	x.outside = x.outside || outside && err == nil
	x.request.Patch.Join(a.wants)
	return !a.wants.Empty(), err
}

// call calls an action.
func (x *Run) call(ctx context.Context, name string, action dsl.Func) *act {
	r := *x.request
	r.Patch, r.Object, r.Parts, r.Again = dsl.NewPatch(), x.object.DeepCopy(), &dsl.Parts{}, nil
	err := attempt.Part(ctx, &dsl.Handler{ID: x.Of.ID, Timeout: x.Of.Timeout}, action, &r, time.Time{})
	void := attempt.Void(err)
	if void {
		err, void = attempt.Contained(err), !r.Patch.Finished
	}
	if parts, _ := r.Parts.Declared(); len(parts) > 0 && !void {
		err = dsl.Permanent(errParts)
	}
	return &act{name: name, wants: r.Patch, err: err, step: r.Step, again: r.Again, void: void}
}

// did returns the result of an action in the attempt; nil if it did not run, or there was no attempt.
func (x *Run) did(name string) *act {
	if x == nil {
		return nil
	}
	i := slices.IndexFunc(x.acts, func(a *act) bool { return a.name == name })
	if i < 0 {
		return nil
	}
	return x.acts[i]
}

// Wishes returns the attempt's changes without the machine's own; if there are none, all changes. If the server
// refuses the attempt, it refuses these, and the machine's own are then not written with them.
func (x *Run) Wishes(all *dsl.Patch) *dsl.Patch {
	if x == nil {
		return all
	}
	out := dsl.NewPatch()
	for _, a := range x.acts {
		if a.refused == nil && !a.void {
			out.Join(a.wants)
		}
	}
	if out.Empty() {
		return all
	}
	return out
}

// Blame notes that the server refuses the attempt's changes. The last action with changes that was not blamed
// before has failed then. Another attempt, with this one as Before, decides what follows, and the pass writes it.
// It reports whether there is such an action.
func (x *Run) Blame(said error) bool {
	if x == nil {
		return false
	}
	for _, a := range slices.Backward(x.acts) {
		if a.refused == nil && !a.void && !a.wants.Empty() {
			a.refused = said
			return true
		}
	}
	return false
}

// show applies changes to the object as later actions see it. It reports whether they include changes outside the
// status.
func (x *Run) show(p *dsl.Patch) (outside bool, wrong error) {
	made, err := x.made(p)
	if err != nil {
		return false, err
	}
	shown := *made
	shown.Conditions = slices.Concat(made.Conditions, made.Offered)
	laid, change, _, err := patch.Lay(x.object, &shown, x.request.Object.GetGeneration(), time.Now())
	if err != nil {
		return false, err
	}
	x.object = laid
	delete(change, "status")
	return len(change) > 0, nil
}

// made returns changes with transformations replaced by their results on the whole object with the changes so far.
func (x *Run) made(p *dsl.Patch) (*dsl.Patch, error) {
	if len(p.Transforms) == 0 || x.Full == nil {
		return p, nil // Lay applies them to the visible object
	}
	full, err := x.Full.Object()
	if err == nil && full != nil {
		so := dsl.NewPatch()
		so.Join(x.request.Patch)
		so.Join(&dsl.Patch{Status: x.status()})
		full, _, _, err = patch.Lay(full, so, x.request.Object.GetGeneration(), time.Now())
	}
	if err != nil {
		return nil, err
	}
	return patch.ResolveMost(full, p, x.request.Object.GetGeneration(), time.Now())
}

// fail notes that an action has failed, or waits. A failure too many takes the object to the state of the budget.
func (x *Run) fail(err error, action, reason string) {
	if _, waits := attempt.Waits(err); waits {
		x.waits, x.idle = err, true
		return
	}
	x.err, x.reason = fmt.Errorf("%s of state %s: %w", action, x.State, err), reason
	b, final := x.state.Retries, dsl.IsPermanent(err)
	if b == nil || x.Early && !final {
		return
	}
	if x.Failures++; x.Failures <= int64(b.AtMost) && !final {
		return
	}
	x.request.Log.Info("action failed once too often", logmark.Warning, true, "state", x.State, "action", action, "failed", x.Failures, "error", err.Error())
	x.spend(fmt.Sprintf("%s failed %s: %v", action, times(x.Failures), err))
}

// spend leaves a state whose budget is used up.
func (x *Run) spend(why string) {
	b := x.state.Retries
	if x.outside { // by Enter, which has succeeded; see puts
		x.Failures = max(x.Failures, int64(b.AtMost)+1) // in case the process ends before the transition is written
		x.then, x.why = b.Then, why
		return
	}
	x.move(b.Then, why)
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// choose takes the first transition whose condition holds. If a condition fails, later transitions are not
// evaluated, because the failed one may hold.
func (x *Run) choose() {
	about := x.request.Subject
	about.Object = x.object.DeepCopy()
	for _, t := range x.state.Transitions {
		if t.Manual {
			continue
		}
		holds, err := true, error(nil)
		if t.When != nil {
			holds, err = attempt.Ask(t.When, &about)
		}
		_, waits := attempt.Waits(err)
		switch {
		case waits && x.waits == nil:
			x.waits = err
		case err != nil && !waits && x.err == nil:
			x.err, x.reason = attempt.Contained(fmt.Errorf("asking whether to go from %s to %s: %w", x.State, t.To, err)), WhenFailed
		case holds && err == nil:
			x.move(t.To, t.Why)
		}
		if err != nil || holds {
			return
		}
	}
}

// ends returns when the time limit of the state expires. Times are in whole seconds, so it is up to one second
// late, and never early.
func (x *Run) ends() time.Time { return x.Since.Add(x.state.Stay.AtMost + time.Second) }

// expire leaves a state whose time limit has expired.
func (x *Run) expire() {
	if x.state.Stay != nil && !time.Now().Before(x.ends()) {
		x.move(x.state.Stay.Then, fmt.Sprintf("it was in state %s for more than %s", x.State, x.state.Stay.AtMost))
	}
}
