// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/cache/related"
	"github.com/handwerk-dev/handwerk/engine/children"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/decide/breaker"
	"github.com/handwerk-dev/handwerk/engine/decide/pause"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
	"github.com/handwerk-dev/handwerk/engine/reconcile/attempt"
)

// Run runs one reconcile over a key: it reads, decides, runs handlers, writes, and returns when the key is due next.
func (s *Controller) Run(ctx context.Context, key cache.ObjectName) (queue.Next, error) {
	if IsSchedule(key) {
		if h := s.scheduleOf(key); h != nil {
			return s.runSchedule(ctx, key, *h)
		}
	}
	halt := s.Pauses.Around(key.Namespace, true)
	whole := halt != nil && halt.By == pause.Operator
	if s.Rules.Digests && !whole {
		if err := s.Host.Keyed(ctx); err != nil {
			return queue.Next{}, err
		}
	}
	t := s.Inbox.Take(key)
	defer t.Close()
	if s.Host.IsKey(key.Namespace, key.Name) {
		t.Handled()
		return queue.Next{}, nil
	}
	t.Memory = t.Memory.expecting(t.Expected, t.Awaited)
	defer t.Memory.Sleep()
	var next queue.Next
	var late error
	if halt == nil {
		next, late = s.finalize(ctx, key, t)
	} else {
		holdGone(t)
	}
	if ctx.Err() != nil {
		return queue.Next{}, late
	}
	next, err := s.runLiving(ctx, key, t, halt, next)
	if errors.Is(err, errShort) {
		return next, cmp.Or(late, err) // what was there before does not wait for memory
	}
	s.Budget.Leave(s.who(key))     // it may have been woken for memory, and have stopped at another gate, or be gone
	return next, cmp.Or(err, late) // the living object does not wait for what was there before it
}

// runLiving is Run for the object that the cache has under the key. Next is when the key is due for objects that are gone.
func (s *Controller) runLiving(ctx context.Context, key cache.ObjectName, t *Batch, halt *pause.Pause, next queue.Next) (queue.Next, error) {
	a, err := s.arrive(ctx, key, t, halt)
	if err != nil {
		return queue.Next{}, err
	}
	if !a.exists() && !a.whole {
		s.forget(key, t)
		return next, nil
	}
	m := a.memory
	a.due = next
	if m != t.Memory {
		t.Memory.Gone()
	}
	defer m.Sleep()
	t.Keep(m)
	var share *children.Share
	a.short = func(bytes int) bool {
		share = s.Budget.Take(s.who(key), bytes, func() { s.Inbox.Look(key) })
		return share == nil
	}
	if g, w := s.closedGate(a); g != nil {
		return g.wait(ctx, s, a, t, w)
	}
	defer func() {
		m.Grown = share.Grown()
		share.Return()
	}()
	t.Unpark()
	in := Input{Key: key, Object: a.tree(), Version: a.version, Now: a.now, Changes: t.Changes, Share: share}
	if m.Halt != nil {
		s.resumed(key, m)
	}
	p, err := s.openLiving(ctx, in, m)
	if p == nil {
		return next, err
	}
	if awaits, err := p.awaitsChild(ctx); err != nil {
		return queue.Next{}, err
	} else if awaits {
		return awaitCache(ctx, s, a, t, Why{Reason: why.CacheBehind})
	}
	return p.finish(t, p.run(ctx, next))
}

// run runs the reconcile of an object that is known. Next is when its key is due for objects that are gone.
func (p *run) run(ctx context.Context, next queue.Next) Result {
	defer p.indexes.Keep(false)
	st, err := p.observe(ctx, next)
	if err == nil {
		st, err = p.handle(ctx, st)
	}
	if errors.Is(err, patch.ErrGone) {
		out := p.result(st, nil) // the next reconcile finds out what became of it
		out.Vanished = true
		return out
	}
	if err == nil {
		st, err = p.prune(ctx, st)
	}
	var v change
	if err == nil {
		st, v = p.settle(p.keepConditions(ctx, st))
		st, v, err = p.write(ctx, st, v)
	}
	if err != nil {
		return p.abandon(st, err)
	}
	return p.remember(st, v)
}

// finish ends the turn of a reconcile, and returns when the key is due next.
func (p *run) finish(t *Batch, out Result) (queue.Next, error) {
	p.Observer.Passed(p, out)
	if out.Err != nil {
		t.Event = ""                          // handlers that are not through with it have it in their entries
		t.Related = &inbox.Related{All: true} // what the object asks for now may be noted, and not handled
		return queue.Next{}, out.Err
	}
	if len(out.Echoes) > 0 {
		p.memory.Writes.Tidy() // events have come meanwhile
		t.Rest(inbox.Rest{UID: p.Object.GetUID(), Echoes: out.Echoes}, &p.memory.Writes)
	}
	t.Handled()
	return out.Due, nil
}

// openLiving opens the reconcile over an object that lives, once marks of earlier names are moved. The reconcile is nil where the object is
// gone meanwhile.
func (s *Controller) openLiving(ctx context.Context, in Input, m *ObjectState) (*run, error) {
	object, err := s.renamed(ctx, in.Key, in.Object, m)
	if err != nil || object == nil {
		return nil, err
	}
	if object, err = s.takenOver(ctx, in.Key, object, m); err != nil || object == nil {
		return nil, err
	}
	object = s.renewed(ctx, in.Key, object, m)
	in.Object, in.Deletion = object, progress.Deletion(object, false)
	p := s.open(in, m)
	s.Machines.Note(in.Key, object)
	return p, nil
}

// open opens a reconcile: the object's progress, and what is known of its children, related objects and indexes.
func (s *Controller) open(in Input, m *ObjectState) *run {
	p := &run{Controller: s, Input: in, memory: m}
	rules := &s.Rules.Ledger
	if in.resourceWide() {
		rules = &s.Rules.Schedules
	}
	st := p.begin()
	p.ledger = progress.Open(rules, &m.Ledger, progress.Subject{
		Object: in.Object, Deletion: in.Deletion, First: !m.Seen, Fresh: in.Changes.Fresh,
		StatusCounts: !s.Own.Resource().Status, Now: in.Now,
	}, st.Look, p)
	if !in.resourceWide() && len(p.Rules.Told) > 0 {
		st = p.recall(st)
	}
	p.opening = st
	p.related = s.Relations.View(related.Owner{Key: in.Key, Object: in.Object, Gone: in.Gone, Now: in.Now})
	p.indexes = s.Indexes.View(in.Key, !m.Seen, !in.Gone && !in.resourceWide() && !in.Asked)
	if !in.Asked {
		p.walk = p.woken()
	}
	p.family = s.Family.Begin(children.Pass{
		Key: in.Key, Object: in.Object, Gone: in.Gone, Deleting: in.Deletion != "", Now: in.Now, Share: in.Share, Logger: p,
		Memory: &m.Children, Sweep: &m.Sweep, Awaits: &m.Writes, Walk: p.walk, Done: p.ledger.DeleteDone(),
	})
	return p
}

// begin is the state in which a reconcile begins.
func (p *run) begin() State { return State{Draft: draftOf(p.Object), Known: p.Object} }

// result is what came of the reconcile. The error is why it could not be finished.
func (p *run) result(st State, err error) Result {
	due := st.Due
	if p.filters.due.After > 0 {
		due = due.Sooner(p.filters.due.After, p.filters.due.Class)
	}
	return Result{
		Input: p.Input, Due: due, Err: err, Jobs: st.Jobs, Attempts: st.Attempts, Notes: slices.Concat(p.filters.notes, st.Notes),
		Why: st.Why,
	}
}

// awaitsChild reports whether the reconcile has to wait for a child that is on the server, and that no cache shows.
func (p *run) awaitsChild(ctx context.Context) (bool, error) {
	found, err := p.family.Find(ctx)
	if note := p.heldNote(err); note != nil {
		p.Observer.say(p, *note)
	}
	return err == nil && found && !p.memory.Writes.Shown(), err
}

// finalizer reports whether the object has the operator's finalizer.
func (p *run) finalizer() bool { return slices.ContainsFunc(p.Object.GetFinalizers(), p.ownFinalizer) }

// ownFinalizer reports whether a finalizer is the operator's, under its name or an earlier one.
func (p *run) ownFinalizer(f string) bool {
	return f == p.Rules.Finalizer || slices.Contains(p.Rules.Earlier, f)
}

// Log returns the log for what happens to the object.
func (p *run) Log() logr.Logger { return p.logOf(p.Input, attempt.About{}) }

// woken begins the pass on the engine's trail, woken by what has come up.
func (p *run) woken() *breaker.Walk {
	m, uid := p.memory, p.Object.GetUID()
	m.Woken = m.Woken.Next(p.Changes.Woken)
	about := breaker.Subject{
		UID: uid, Resource: p.Rules.Resource, Key: types.NamespacedName{Namespace: p.Key.Namespace, Name: p.Key.Name}, Woken: m.Woken.Versions,
	}
	if p.Changes.Event != "" {
		about.Own = breaker.Version{UID: uid, Text: p.Object.GetResourceVersion()}
	}
	return p.Trail.Begin(about)
}

// How many times as much memory as its object's JSON a reconcile takes: as trees, and for what handlers may make of it where that is
// not known yet.
const (
	asTrees   = 8
	asUnknown = 32
)

// logOf returns the log for what happens to an object.
func (s *Controller) logOf(in Input, about attempt.About) logr.Logger {
	if !in.resourceWide() {
		about.Key = in.Key
	}
	return about.Log(s.Observer.Log)
}

// who names an object for the budget.
func (s *Controller) who(key cache.ObjectName) children.Who {
	return children.Who{Resource: s.Rules.Resource, Namespace: key.Namespace, Name: key.Name}
}

// bytes is how much memory a reconcile over the object takes, as far as that is known before.
func (a arrival) bytes() int {
	if a.memory.Seen {
		return asTrees*a.version.Length() + a.memory.Grown
	}
	return asUnknown * a.version.Length()
}

// passRefused notes how a request of the reconcile itself ended.
func (s *Controller) passRefused(key cache.ObjectName, err error) {
	s.Host.Refused(key, Itself, err)
}
