// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Input is the input of an attempt. Nothing changes it.
type Input struct {
	// Handler is the machine's handler, and Others are the other machines of its resource.
	Handler *dsl.Handler
	Others  []*dsl.Machine
	// Prefix is the prefix of the operator's annotations.
	Prefix string
	// Early: the attempt is made before it is due, so a failure does not count.
	Early bool
	// Gone: the cache does not show the object, and its state cannot be written. Known has its state.
	Gone bool
	// Declared: all handlers of the resource declare the conditions that they set.
	Declared bool
	// Resolve, if not nil, returns an action's patch without transformations, for the object after the action. The error
	// says why the patch, or a part of it, is dropped.
	Resolve func(o *unstructured.Unstructured, p *dsl.Patch) (*dsl.Patch, error)
	// Known has the work of an earlier attempt that is not written yet.
	Known Done
	// Before is the result of the previous attempt in the same reconcile, if the server has rejected its patch, see
	// [Result.Blame]; or nil.
	Before *Result
}

// Result is the result of an attempt, beside its patch and its error.
type Result struct {
	// Moves are the transitions in the patch. They are taken when it is written.
	Moves []Move
	// Done is the work that is done even if the patch is not written. Sent is the work that is done once it is written.
	// The next attempt gets it as Known.
	Done, Sent Done

	acts []act
}

// Done records work in a state. At is when its Enter succeeded; zero if it has not, or there is none. Since
// distinguishes stays in the state. Put: the actions' changes outside the status were sent. looked: no action has failed
// or waits. again is when During asks for another run, or zero. goal: the object goes there next. Book is the state of
// an object that the cache does not show, or did not until now.
type Done struct {
	State     string
	Since, At time.Time
	Put       bool
	looked    bool
	again     time.Time
	goal      goal
	Book      *Book
}

// of reports whether d is about the stay in a state that b records.
func (d Done) of(b Book) bool { return d.State == b.State && d.Since.Equal(b.Since) }

// goal is a state that an object goes to, and why. Without a state, the transitions decide.
type goal struct{ to, why string }

// run has the inputs of an attempt's steps. The changes of the attempt go into the request's patch.
type run struct {
	Input
	machine *dsl.Machine
	request *dsl.Request
}

// state is the state of an attempt. Each step returns the next one.
type state struct {
	place
	problem
	// object is the object with the changes so far.
	object *unstructured.Unstructured
	// acts are the actions that have run, in their order.
	acts []act
	// done and sent become those of the result.
	done, sent Done
	// goal is the next state, once the actions' changes outside the status are written.
	goal goal
}

// problem is why an attempt fails, or leaves its object not ready.
type problem struct {
	// err is the error of an action or a condition, and reason is its reason in conditions.
	err    error
	reason string
	// waits is the wait of an action or a condition. idle: an action waits.
	waits error
	idle  bool
}

// Run makes an attempt of a machine's handler. The changes are added to the request's patch.
func Run(ctx context.Context, in Input, r *dsl.Request) (Result, error) {
	x := run{Input: in, machine: in.Handler.Machine, request: r}
	x.retire()
	s, again := x.arrive(x.open()), false
	to, asked := x.asked()
	switch {
	case s.declared == nil:
		s = x.hold(s)
	case asked:
		s, again = x.goTo(s, to), true
	default:
		s, again = x.work(ctx, s)
	}
	if in.Gone {
		b := s.Book
		s.sent.Book = &b
	}
	x.write(s)
	return Result{Moves: s.moves, Done: s.done, Sent: s.sent, acts: s.acts}, x.outcome(s, again)
}

// deleting reports whether the object is being deleted.
func (x run) deleting() bool { return x.request.Cause == dsl.Delete }

// open reads where the object is, or makes it begin.
func (x run) open() state {
	s := state{object: x.request.Object}
	if x.Known.Book != nil && x.Gone {
		s.Book = *x.Known.Book
		return s
	}
	back := x.Known.Book != nil && !x.deleting() // it was in states of deletion, and starts over
	if p, found := placeOf(x.machine, s.object); found && !back {
		s.place = p
		return s
	}
	s.place = begin(x.machine, x.deleting(), x.Known)
	return x.showBook(s) // so that actions see it in the first state, too
}

// arrive finds the declaration of the state in the progress. An undeclared state is replaced by the state in Migrate.
func (x run) arrive(s state) state {
	var deletion bool
	s.place, deletion = s.find(x.machine)
	if to, renamed := x.machine.Migrate[s.State]; renamed && s.declared == nil {
		if _, of := x.machine.State(to); of == x.deleting() {
			return x.move(s, to, "the machine has no state "+s.State+" any more")
		}
	}
	switch {
	case x.deleting() && !deletion: // also in an undeclared state
		return x.move(s, x.machine.First(true).Name, "the object is being deleted")
	case deletion && !x.deleting():
		s.declared = nil
	case s.declared != nil && !s.entered() && x.Known.of(s.Book):
		s.Entered = x.Known.At
	}
	return s
}

// work runs the actions of the state, and then of following states as long as no transition leads to actions. It reports
// whether the handler must run again at once.
func (x run) work(ctx context.Context, s state) (_ state, again bool) {
	s = x.limit(s)
	if x.Known.Put && x.Known.of(s.Book) {
		var all bool
		if s, all = x.resume(s); all {
			return s, false
		}
	}
	for range len(x.machine.States) + len(x.machine.Deletion) {
		s = x.limit(s)
		if len(s.moves) > 0 && s.acting() {
			return s, true // the transition is written first
		}
		moves := len(s.moves)
		s = x.act(ctx, s)
		if len(s.moves) == moves && outside(s.acts) {
			return x.put(s), true
		}
		if len(s.moves) == moves && s.entered() {
			s = x.choose(s)
		}
		if len(s.moves) == moves {
			s = x.expire(s)
		}
		if len(s.moves) == moves {
			return s, false
		}
	}
	s.reason = Looping
	s.err = fmt.Errorf("the states go round in a circle: after %d transitions in one go it is in %s again", len(s.moves), s.State)
	return s, false
}

// put makes the reconcile write the actions' changes outside the status alone. The status is written first; after a
// crash between the two writes it would claim changes that were not made. So the next attempt takes the transition, see
// resume.
func (x run) put(s state) state {
	s.sent = Done{State: s.State, Since: s.Since, At: s.Entered, Put: true, looked: s.err == nil && s.waits == nil, goal: s.goal}
	if after := x.request.Again; after != nil {
		s.sent.again = time.Now().Add(*after)
	}
	if enter, found := did(s.acts, enterName); found && enter.outside {
		s.Entered = time.Time{}
	}
	return s
}

// resume continues after an attempt that has only written its actions' changes. It takes the transition before actions
// run once more. So an action with a different change each time does not keep the object in its state. A change that
// the server drops is sent only once. It reports whether that is all, because nothing has happened since.
func (x run) resume(s state) (_ state, all bool) {
	s.done = x.Known
	s.done.Put = x.Known.goal.to != "" // otherwise the next attempt runs them
	switch {
	case x.Known.goal.to != "":
		s = x.move(s, x.Known.goal.to, x.Known.goal.why)
	case s.entered():
		s = x.choose(s)
	}
	if len(s.moves) == 0 {
		s = x.expire(s)
	}
	all = len(s.moves) == 0 && x.Known.looked && (x.request.Cause == dsl.Again || x.deleting()) // it runs again anyway
	if all && !x.Known.again.IsZero() {
		x.request.RunAgain(time.Until(x.Known.again))
	}
	return s, all
}

// write adds the progress, unless the state is unknown, and the conditions to the patch.
func (x run) write(s state) {
	if s.declared != nil {
		x.request.Patch.Join(x.book(s))
	}
	for _, c := range x.conditions(s) {
		x.request.Patch.OfferCondition(c.Type, c.Status, c.Reason, c.Message)
	}
}

// outcome returns the error of the attempt, and asks for the next one.
func (x run) outcome(s state, again bool) error {
	switch {
	case s.declared == nil:
		return nil
	case again:
		x.request.RunAgain(0)
	case s.declared.Stay != nil:
		x.request.RunAgain(time.Until(s.ends()))
	}
	switch {
	case s.err != nil:
		return x.failure(s)
	case s.waits != nil:
		return s.waits
	case !x.deleting():
		return nil
	}
	return ending(s.place, again)
}

// failure returns the error of an action. In a deletion it is permanent only in a terminal state: otherwise the deletion
// would end before its states are through.
func (x run) failure(s state) error {
	if x.deleting() && !s.declared.Terminal && dsl.IsPermanent(s.err) {
		return errors.New(s.err.Error())
	}
	return s.err
}

// ending returns the error in a deletion without failures.
func ending(p place, again bool) error {
	switch {
	case again || !p.declared.Terminal || !p.entered():
		return dsl.Waiting("a terminal state: it is in "+p.State, 0)
	case p.declared.Failed:
		return dsl.Permanent(fmt.Errorf("ending in state %s", p.State))
	}
	return nil
}
