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
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// Run is one attempt of a machine's handler. Its results are set when the attempt has ended.
type Run struct {
	// Of is the handler, and Others are the other machines of its resource.
	Of     *dsl.Handler
	Others []*dsl.Machine
	// Prefix is the prefix of the operator's annotations.
	Prefix string
	// Early: the attempt is made before it is due, so a failure does not count.
	Early bool
	// Gone: the object is out of sight, and its state cannot be written any more. Known and Sent have what is known
	// of it.
	Gone bool
	// Told: for all handlers of the resource, the conditions that they set are known.
	Told bool
	// Full returns the whole object at the beginning of the attempt, for actions that transform it; nil if it is
	// not known. It may ask the API server. Full itself is nil if the cache holds whole objects.
	Full interface {
		Object() (*unstructured.Unstructured, error)
	}
	// Known has what an earlier attempt has done and not written.
	Known Done
	// Before is the previous attempt in the same pass, whose patch the server has refused, see [Run.Blame]; or nil.
	Before *Run

	// Moves are the transitions in the patch. They are taken when it is written.
	Moves []Move
	// Done is what was done whether or not the patch is written, and Sent what is done when it is written; the next
	// attempt must get it as Known.
	Done, Sent Done

	machine *dsl.Machine
	request *dsl.Request
	object  *unstructured.Unstructured // with the changes so far

	Book
	state   *dsl.State // nil for an undeclared state
	history []any
	told    bool // the history must be written
	acts    []*act
	// outside: an action that has succeeded changes the object outside its status; enters: so does Enter.
	outside, enters bool
	// err is the error of an action or a condition, with its reason; waits is the wait of an action. Idle: an
	// action waits.
	err, waits error
	reason     string
	idle       bool
	// then is the state to go to after outside changes are written, and why; empty if the transitions decide.
	then, why string
}

// Done records work in a state. The time is when its Enter had succeeded; zero if it has not, or there is none.
// Since distinguishes stays in the state. Put: the actions' changes outside the status were sent. looked: no action
// has failed or waits, and During asks for another run at a time, or zero. then: the object goes there next, with a
// reason. Book is the state of an object that is out of sight, or was when it came back.
type Done struct {
	State     string
	Since, At time.Time
	Put       bool
	looked    bool
	again     time.Time
	then, why string
	Book      *Book
}

// Handler returns a handler that runs the attempt.
func (x *Run) Handler() *dsl.Handler {
	out := *x.Of
	out.Func, out.Timeout = x.run, 0 // each action has its own timeout
	return &out
}

// run runs the attempt.
func (x *Run) run(ctx context.Context, r *dsl.Request) error {
	x.machine, x.request, x.object = x.Of.Machine, r, r.Object
	x.retire()
	x.open()
	x.arrive()
	again := false
	switch {
	case x.state == nil:
		x.hold()
	case x.hand():
		again = true
	default:
		again = x.work(ctx)
	}
	if x.Gone {
		b := x.Book
		x.Sent.Book = &b
	}
	x.write()
	x.say()
	return x.outcome(again)
}

// deleting reports whether the object is being deleted.
func (x *Run) deleting() bool { return x.request.Cause == dsl.Delete }

// now returns the time in whole seconds.
func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// of reports whether d is about the same stay in a state as a book.
func (d Done) of(b Book) bool { return d.State == b.State && d.Since.Equal(b.Since) }

// open reads the book, or starts one.
func (x *Run) open() {
	var found bool
	if x.Known.Book != nil && x.Gone {
		x.Book = *x.Known.Book
		return
	}
	back := x.Known.Book != nil && !x.deleting() // it was in states of deletion, and starts over
	if x.Book, found = Read(x.machine, x.object); found && !back {
		x.history = historyOf(x.machine, x.object)
		return
	}
	x.told = true
	x.Book = Book{State: x.machine.First(x.deleting()).Name, Since: now()}
	if x.Known.State == x.State {
		x.Since = x.Known.Since
	}
	_, _ = x.show(&dsl.Patch{Status: x.status()}) // so that actions see it in the first state, too
}

// arrive finds the state in the book, or for an unknown one the state in Migrate.
func (x *Run) arrive() {
	if x.Since.IsZero() { // it is missing or invalid: the time counts from now
		x.Since = now()
	}
	var deletion bool
	x.state, deletion = x.machine.State(x.State)
	if to, renamed := x.machine.Migrate[x.State]; renamed && x.state == nil {
		if _, of := x.machine.State(to); of == x.deleting() {
			x.move(to, "the machine has no state "+x.State+" any more")
			return
		}
	}
	switch {
	case x.deleting() && (x.state == nil || !deletion):
		x.move(x.machine.First(true).Name, "the object is being deleted")
	case deletion && !x.deleting():
		x.state = nil
	case x.state != nil && x.state.Enter != nil && x.Entered.IsZero() && x.Known.of(x.Book):
		x.Entered = x.Known.At
	}
}

// hand handles the annotation goto, and reports whether there is one. While it exists, no other transition is
// taken: the transition may have been written to the status, and the annotation not have been removed yet.
func (x *Run) hand() bool {
	key := x.machine.GotoKey(x.Prefix)
	to, asked := x.request.Object.GetAnnotations()[key]
	if !asked || x.Gone { // it cannot be removed from an object that is out of sight
		return false
	}
	x.request.Patch.Remove(dsl.Path{"metadata", "annotations", key}.String())
	if to == x.State {
		return true
	}
	for _, w := range x.state.Ways() {
		if w.To == to {
			x.move(to, "a person asked for it")
			return true
		}
	}
	x.request.Events.Event(dsl.Warning, GotoRefused, "%s", refusal(x.state, key, to))
	return true
}

// move takes the object to a state.
func (x *Run) move(to, why string) {
	next, _ := x.machine.State(to)
	v := Move{From: x.State, To: to, At: now(), Why: plain.Short(why, whyMost), Failed: next.Failed}
	v.Stayed = max(0, v.At.Sub(x.Since))
	x.Moves, x.history, x.told = append(x.Moves, v), kept(x.machine, x.history, v), true
	x.Book, x.state = Book{State: to, Since: v.At}, next
	x.err, x.waits, x.idle, x.request.Step = nil, nil, false, 0
	_, _ = x.show(&dsl.Patch{Status: x.status()}) // it has no transformations
}

// work runs the actions of the state, and of the following states if they have no Enter. It reports whether there
// is more to do at once.
func (x *Run) work(ctx context.Context) (again bool) {
	if x.Known.Put && x.Known.of(x.Book) && x.resume() {
		return false
	}
	for range len(x.machine.States) + len(x.machine.Deletion) {
		moves := len(x.Moves)
		if moves > 0 && (x.state.Enter != nil || x.state.During != nil) {
			return true // the transition is written first
		}
		entered := x.enter(ctx) && x.during(ctx)
		if len(x.Moves) == moves && x.puts() {
			return true
		}
		if entered {
			x.choose()
		}
		if len(x.Moves) == moves {
			x.expire()
		}
		if len(x.Moves) == moves {
			return false
		}
	}
	x.reason = Looping
	x.err = fmt.Errorf("the states go round in a circle: after %d transitions in one go it is in %s again", len(x.Moves), x.State)
	return false
}

// puts reports whether the actions' changes outside the status must be written alone. The status is written first,
// and after a crash between the two writes it would claim changes that were not made. So no transition is written
// with them; the next attempt takes it, see resume.
func (x *Run) puts() bool {
	if !x.outside {
		return false
	}
	x.Sent = Done{State: x.State, Since: x.Since, At: x.Entered, Put: true, looked: x.err == nil && x.waits == nil, then: x.then, why: x.why}
	if after := x.request.Again; after != nil {
		x.Sent.again = time.Now().Add(*after)
	}
	if x.enters {
		x.Entered = time.Time{}
	}
	return true
}

// resume continues after an attempt that has only written its actions' changes: the transition is taken now, before
// actions run once more. So an action with a different change each time does not keep the object in its state, and
// a change that the server drops is sent once. It reports whether that is all, because nothing has happened since.
func (x *Run) resume() (all bool) {
	x.Done = x.Known
	x.Done.Put = x.Known.then != "" // otherwise the next attempt runs them
	switch {
	case x.Known.then != "":
		x.move(x.Known.then, x.Known.why)
	case x.state.Enter == nil || !x.Entered.IsZero():
		x.choose()
	}
	if len(x.Moves) == 0 {
		x.expire()
	}
	all = len(x.Moves) == 0 && x.Known.looked && (x.request.Cause == dsl.Again || x.deleting()) // it runs again anyway
	if all && !x.Known.again.IsZero() {
		x.request.RunAgain(time.Until(x.Known.again))
	}
	return all
}

// outcome returns the result of the attempt.
func (x *Run) outcome(again bool) error {
	switch {
	case x.state == nil:
		return nil
	case again:
		x.request.RunAgain(0)
	case x.state.Stay != nil:
		x.request.RunAgain(time.Until(x.ends()))
	}
	switch {
	case x.err != nil:
		return x.failure()
	case x.waits != nil:
		return x.waits
	case !x.deleting():
		return nil
	}
	return x.ending(again)
}

// failure returns the error of an action. In a deletion it is permanent only in a terminal state: otherwise the
// deletion would end before its states are through.
func (x *Run) failure() error {
	if x.deleting() && !x.state.Terminal && dsl.IsPermanent(x.err) {
		return errors.New(x.err.Error())
	}
	return x.err
}

// ending returns the result in a deletion without failures.
func (x *Run) ending(again bool) error {
	entered := x.state.Enter == nil || !x.Entered.IsZero()
	switch {
	case again || !x.state.Terminal || !entered:
		return dsl.Waiting("a terminal state: it is in "+x.State, 0)
	case x.state.Failed:
		return dsl.Permanent(fmt.Errorf("ending in state %s", x.State))
	}
	return nil
}
