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

// errParts is the error of actions that declare sub-handlers.
var errParts = errors.New("declaring sub-handlers: actions of a machine have none (want states)")

// enter runs the state's Enter unless that has succeeded, and reports whether it has.
func (x *Run) enter(ctx context.Context) bool {
	if x.state.Enter == nil || !x.Entered.IsZero() {
		return true
	}
	wanted, err := x.do(ctx, x.state.Enter)
	if err != nil {
		x.fail(err, "enter", EnterFailed)
		return false
	}
	x.Entered, x.enters, x.request.Step = now(), x.outside, 0
	if !wanted {
		x.Done = Done{State: x.State, Since: x.Since, At: x.Entered}
	}
	return true
}

// during runs the state's During, and reports whether the object is in that state still.
func (x *Run) during(ctx context.Context) bool {
	if x.state.During == nil {
		return true
	}
	moves := len(x.Moves)
	if _, err := x.do(ctx, x.state.During); err != nil {
		x.fail(err, "during", DuringFailed)
		return len(x.Moves) == moves
	}
	x.request.Step = 0
	return true
}

// do runs an action, and takes over what it wants of the object. It reports whether that is anything.
func (x *Run) do(ctx context.Context, action dsl.Func) (wanted bool, err error) {
	r := *x.request
	r.Patch, r.Object, r.Parts, r.Again = dsl.NewPatch(), x.object.DeepCopy(), &dsl.Parts{}, nil
	err = attempt.Part(ctx, &dsl.Handler{ID: x.Of.ID, Timeout: x.Of.Timeout}, action, &r, time.Time{})
	if attempt.Void(err) {
		return false, attempt.Contained(err)
	}
	if parts, _ := r.Parts.Declared(); len(parts) > 0 {
		err = dsl.Permanent(errParts)
	}
	x.request.Step = r.Step
	if r.Again != nil {
		x.request.RunAgain(*r.Again)
	}
	outside, wrong := x.show(r.Patch)
	if wrong != nil { // what transforms the object
		r.Patch.Transforms, err = nil, wrong
	}
	x.outside = x.outside || outside && err == nil
	x.request.Patch.Join(r.Patch)
	return !r.Patch.Empty(), err
}

// show makes what is wanted of the object a part of what is seen of it from here on. It reports whether that changes anything
// beside its status.
func (x *Run) show(p *dsl.Patch) (outside bool, wrong error) {
	shown := *p
	shown.Conditions = slices.Concat(p.Conditions, p.Offered)
	laid, change, _, err := patch.Lay(x.object, &shown, x.request.Object.GetGeneration(), time.Now())
	if err != nil {
		return false, err
	}
	x.object = laid
	delete(change, "status")
	return len(change) > 0, nil
}

// fail notes that an action has failed, or waits. An attempt too many takes the object to where the state's budget says.
func (x *Run) fail(err error, action, reason string) {
	if _, waits := attempt.Waits(err); waits {
		x.waits = err
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
	x.move(b.Then, fmt.Sprintf("%s failed %s: %v", action, times(x.Failures), err))
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// choose takes the first transition whose condition holds. One that cannot be asked may be it, so none behind it is taken.
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

// ends is when the object has been in the state for too long. Times are kept in whole seconds, so it is up to one too late,
// and never too early.
func (x *Run) ends() time.Time { return x.Since.Add(x.state.Stay.AtMost + time.Second) }

// expire takes an object away that has been in the state for too long.
func (x *Run) expire() {
	if x.state.Stay != nil && !time.Now().Before(x.ends()) {
		x.move(x.state.Stay.Then, fmt.Sprintf("it was in state %s for more than %s", x.State, x.state.Stay.AtMost))
	}
}
