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

// Run is one attempt of a handler that is a machine. What comes of it is there when the attempt has ended.
type Run struct {
	// Of is the handler, and Others are the other machines of its resource.
	Of     *dsl.Handler
	Others []*dsl.Machine
	// Prefix is that of the operator's annotations.
	Prefix string
	// Early: the attempt is made before it is due, so that a failure does not count.
	Early bool
	// Gone: the object is gone from sight, and where it is cannot be written any more. What is known of that is in Known and Sent.
	Gone bool
	// Told: which conditions handlers of the resource set is known of all of them.
	Told bool
	// Full has the object as it is when the attempt begins with all that its cache does not hold, for actions that transform
	// it; nil where nobody knows that. It may ask the API server. Full itself is nil where the cache holds all.
	Full interface {
		Object() (*unstructured.Unstructured, error)
	}
	// Known is what was done in an attempt before this one, and is not written down.
	Known Done
	// Before is the attempt before this one in the same pass, whose patch the server has refused, see [Run.Blame]; nil for none.
	Before *Run

	// Moves are the transitions that the patch tells of. They were taken when it is written.
	Moves []Move
	// Done is what was done whatever becomes of the patch, and Sent what was when it is written; the next attempt is to know it.
	Done, Sent Done

	machine *dsl.Machine
	request *dsl.Request
	object  *unstructured.Unstructured // with what was wanted so far

	Book
	state   *dsl.State // nil for one that is not declared
	history []any
	told    bool // the history is to be written
	acts    []*act
	// outside: an action that has succeeded wants something of the object beside its status; enters: so does Enter.
	outside, enters bool
	// err is why an action, or a condition, failed, with the reason to say; waits is what one waits for. Idle: an action waits.
	err, waits error
	reason     string
	idle       bool
	// then is where the object goes when what is outside is written, and why; empty for where its transitions say.
	then, why string
}

// Done says that the Enter of a state has succeeded, at a time that is zero where it has not, or that there is none. Since tells
// one time in the state from others. Put: what actions want of the object beside its status was sent; looked: none of them has
// failed, or waits, and During asks to be run again at a time, zero for none; then: the object goes there next, for a reason. Book
// is where the object is, of one that is gone, or was when it came back.
type Done struct {
	State     string
	Since, At time.Time
	Put       bool
	looked    bool
	again     time.Time
	then, why string
	Book      *Book
}

// Handler returns a handler whose function is the attempt.
func (x *Run) Handler() *dsl.Handler {
	out := *x.Of
	out.Func, out.Timeout = x.run, 0 // the time of each action is limited
	return &out
}

// run is the attempt.
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

// now is the time, in whole seconds.
func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// of reports whether it is about the time in a state that a book tells of.
func (d Done) of(b Book) bool { return d.State == b.State && d.Since.Equal(b.Since) }

// open reads the book, or begins one.
func (x *Run) open() {
	var found bool
	if x.Known.Book != nil && x.Gone {
		x.Book = *x.Known.Book
		return
	}
	back := x.Known.Book != nil && !x.deleting() // which went through states of deletion, and begins anew
	if x.Book, found = Read(x.machine, x.object); found && !back {
		x.history = historyOf(x.machine, x.object)
		return
	}
	x.told = true
	x.Book = Book{State: x.machine.First(x.deleting()).Name, Since: now()}
	if x.Known.State == x.State {
		x.Since = x.Known.Since
	}
	_, _ = x.show(&dsl.Patch{Status: x.status()}) // so that actions see it in the first state as in all others
}

// arrive finds the state that the book names, or where an object goes that is there no more.
func (x *Run) arrive() {
	if x.Since.IsZero() { // somebody has taken it away, or written nonsense: the state counts from when that is seen
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

// hand does what a person asks for with the annotation goto, and reports whether there is one. While there is, no other
// transition is taken: it may have been written to the status, and the annotation not have been taken off.
func (x *Run) hand() bool {
	key := x.machine.GotoKey(x.Prefix)
	to, asked := x.request.Object.GetAnnotations()[key]
	if !asked || x.Gone { // from an object that is gone from sight it could not be taken off
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
	_, _ = x.show(&dsl.Patch{Status: x.status()}) // which transforms nothing
}

// work does what is to be done in the state, and in those that it leads to, as far as nothing is to be done on entering
// them. It reports whether there is more to do at once.
func (x *Run) work(ctx context.Context) (again bool) {
	if x.Known.Put && x.Known.of(x.Book) && x.resume() {
		return false
	}
	for range len(x.machine.States) + len(x.machine.Deletion) {
		moves := len(x.Moves)
		if moves > 0 && (x.state.Enter != nil || x.state.During != nil) {
			return true // the transition is written down first
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

// puts reports whether what actions want of the object beside its status is to be written before anything else: the status is
// written first, and after a crash between the two it would say that what is not there was done. So no transition goes with it;
// the next attempt begins with that, see resume.
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

// resume goes on after an attempt that has put what its actions want on the object, and nothing else: the transition that it left
// is taken now, before actions run once more. So an action that wants something else each time keeps no object where it is, and
// what the server does not keep is put once. It reports whether that is all, because nothing has happened since.
func (x *Run) resume() (all bool) {
	x.Done = x.Known
	x.Done.Put = x.Known.then != "" // else the next attempt runs them
	switch {
	case x.Known.then != "":
		x.move(x.Known.then, x.Known.why)
	case x.state.Enter == nil || !x.Entered.IsZero():
		x.choose()
	}
	if len(x.Moves) == 0 {
		x.expire()
	}
	all = len(x.Moves) == 0 && x.Known.looked && (x.request.Cause == dsl.Again || x.deleting()) // which is tried again anyhow
	if all && !x.Known.again.IsZero() {
		x.request.RunAgain(time.Until(x.Known.again))
	}
	return all
}

// outcome is what the attempt comes to.
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

// failure is the error of an action. In a deletion it is final in a terminal state alone: else the deletion would be over, and
// its states are not.
func (x *Run) failure() error {
	if x.deleting() && !x.state.Terminal && dsl.IsPermanent(x.err) {
		return errors.New(x.err.Error())
	}
	return x.err
}

// ending is what a deletion comes to in which nothing has failed.
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
