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
	"github.com/handwerk-dev/handwerk/dsl/expiry"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/reconcile/attempt"
)

// The names of actions.
const (
	enterName  = "enter"
	duringName = "during"
)

// errParts is the error for actions that declare sub-handlers.
var errParts = errors.New("declaring sub-handlers: actions of a machine have none (want states)")

// act is an action that has run, and its result.
type act struct {
	name  string // enter or during
	wants *dsl.Patch
	err   error
	step  int
	again *time.Duration
	// void: its changes are dropped.
	void bool
	// rejected is the error with which the server rejects the action's changes; nil if the action is not known to be the
	// cause.
	rejected error
	// outside: it has succeeded, and changes the object outside its status.
	outside bool
}

// did returns the result of an action, if it has run.
func did(acts []act, name string) (_ act, found bool) {
	for _, a := range acts {
		if a.name == name {
			return a, true
		}
	}
	return act{}, false
}

// outside reports whether actions that have succeeded change the object outside its status.
func outside(acts []act) bool {
	return slices.ContainsFunc(acts, func(a act) bool { return a.outside })
}

// counts reports whether the action's changes are part of the patch.
func (a act) counts() bool { return a.rejected == nil && !a.void }

// act runs Enter, and During once Enter has succeeded.
func (x run) act(ctx context.Context, s state) state {
	moves := len(s.moves)
	if s = x.enter(ctx, s); len(s.moves) > moves || !s.entered() {
		return s
	}
	return x.during(ctx, s)
}

// enter runs the state's Enter unless it has succeeded before.
func (x run) enter(ctx context.Context, s state) state {
	if s.entered() {
		return s
	}
	s, wanted, err := x.do(ctx, s, enterName, s.declared.Enter)
	if err != nil {
		return x.fail(s, err, enterName, EnterFailed)
	}
	s.Entered, x.request.Step = now(), 0
	if !wanted {
		s.done = Done{State: s.State, Since: s.Since, At: s.Entered, Book: x.Known.Book}
	}
	return s
}

// during runs the state's During.
func (x run) during(ctx context.Context, s state) state {
	if s.spent() { // and the transition was not written
		return x.spend(s, fmt.Sprintf("during failed %s", times(s.Failures)))
	}
	if s.declared.During == nil {
		return s
	}
	s, _, err := x.do(ctx, s, duringName, s.declared.During)
	if err != nil {
		return x.fail(s, err, duringName, DuringFailed)
	}
	x.request.Step = 0
	return s
}

// do runs an action, unless the previous attempt in the reconcile has, and adds its changes. It reports whether there
// are any.
func (x run) do(ctx context.Context, s state, name string, action dsl.Func) (_ state, wanted bool, err error) {
	a, done := act{}, false
	if x.Before != nil {
		a, done = did(x.Before.acts, name)
	}
	if !done {
		a = x.call(ctx, s, name, action)
	}
	a.outside = false
	switch {
	case a.rejected != nil:
		err = fmt.Errorf("changing the object: %w", a.rejected)
	case a.void:
		err = a.err
	default:
		s, a.outside, err = x.take(s, a)
		wanted = !a.wants.Empty()
	}
	s.acts = append(slices.Clip(s.acts), a)
	return s, wanted, err
}

// call calls an action.
func (x run) call(ctx context.Context, s state, name string, action dsl.Func) act {
	r := *x.request
	r.Patch, r.Object, r.Parts, r.Again = dsl.NewPatch(), s.object.DeepCopy(), &dsl.Parts{}, nil
	err := attempt.Part(expiry.Restoring(ctx, name == duringName), &dsl.Handler{ID: x.Handler.ID, Timeout: x.Handler.Timeout}, action, &r, time.Time{})
	void := attempt.Void(err)
	if void {
		err, void = attempt.Contained(err), !r.Patch.Finished
	}
	if parts, _ := r.Parts.Declared(); len(parts) > 0 && !void {
		err = dsl.Permanent(errParts)
	}
	return act{name: name, wants: r.Patch, err: err, step: r.Step, again: r.Again, void: void}
}

// take adds an action's changes to the patch and to the object. It reports whether the action has succeeded and they
// include changes outside the status.
func (x run) take(s state, a act) (_ state, outside bool, err error) {
	if x.request.Step = a.step; a.again != nil {
		x.request.RunAgain(*a.again)
	}
	made, wrong := x.resolve(s, a.wants)
	if err = a.err; wrong == nil {
		s, outside = x.show(s, made)
	} else {
		*a.wants, err = *made, wrong
	}
	x.request.Patch.Join(a.wants)
	return s, outside && err == nil, err
}

// resolve returns an action's patch without transformations. The error says why the patch, or a part of it, is dropped.
func (x run) resolve(s state, p *dsl.Patch) (*dsl.Patch, error) {
	if x.Resolve == nil {
		return patch.ResolveMost(s.object, p, x.request.Object.GetGeneration(), time.Now())
	}
	return x.Resolve(s.object, p)
}

// show applies changes to the object, so that later actions see them. It reports whether they include changes outside
// the status.
func (x run) show(s state, p *dsl.Patch) (_ state, outside bool) {
	shown := *p
	shown.Conditions = slices.Concat(p.Conditions, p.Offered)
	laid, change, _, _ := patch.Apply(s.object, &shown, x.request.Object.GetGeneration(), time.Now()) // there are no transformations
	s.object = laid
	delete(change, "status")
	return s, len(change) > 0
}

// showBook applies the progress to the object, so that actions see it.
func (x run) showBook(s state) state {
	s, _ = x.show(s, x.book(s))
	return s
}

// book returns the progress of the object as a patch of its status.
func (x run) book(s state) *dsl.Patch {
	return &dsl.Patch{Status: s.status(x.machine, x.request.Object.GetUID())}
}

// Wishes returns the attempt's changes without the machine's own. If there are none, it returns all changes. If the
// server rejects an attempt, it is for these changes, and the machine's own are not written with them then.
func (x *Result) Wishes(all *dsl.Patch) *dsl.Patch {
	if x == nil {
		return all
	}
	out := dsl.NewPatch()
	for _, a := range x.acts {
		if a.counts() {
			out.Join(a.wants)
		}
	}
	if out.Empty() {
		return all
	}
	return out
}

// Blame notes that the server rejects the attempt's changes. The last action with changes that has not been blamed yet
// has failed. Another attempt, with this one as Before, decides what follows, and the reconcile writes that. It reports
// whether there is such an action.
func (x *Result) Blame(refusal error) bool {
	if x == nil {
		return false
	}
	for i, a := range slices.Backward(x.acts) {
		if a.counts() && !a.wants.Empty() {
			x.acts[i].rejected = refusal
			return true
		}
	}
	return false
}
