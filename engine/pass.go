// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/attempt"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/breaker"
	"github.com/handwerk-dev/handwerk/engine/children"
	"github.com/handwerk-dev/handwerk/engine/daemon"
	"github.com/handwerk-dev/handwerk/engine/filter"
	"github.com/handwerk-dev/handwerk/engine/inbox"
	"github.com/handwerk-dev/handwerk/engine/index"
	"github.com/handwerk-dev/handwerk/engine/pass"
	"github.com/handwerk-dev/handwerk/engine/patch"
	"github.com/handwerk-dev/handwerk/engine/queue"
	"github.com/handwerk-dev/handwerk/engine/related"
)

// facts are what a pass works with from its beginning to its end.
type facts struct {
	key cache.ObjectName
	// object is the object as the pass has read it. Where a pass is over the resource as a whole, it has no more than
	// its kind.
	object *unstructured.Unstructured
	// gone: the cache does not show it any more.
	gone bool
	// deletion is the moment at which it was deleted, empty while it lives.
	deletion string
	// number is status.observedGeneration.
	number book.Number
	now    time.Time
	// share is the memory that the pass may take; nil for any.
	share *children.Share
}

// resourceWide reports whether the pass is over the resource as a whole.
func (f facts) resourceWide() bool { return f.object.GetName() == "" }

// run is one run over one object. What it works out is kept only when its write has succeeded; otherwise the next
// pass begins from the same book.
type run struct {
	facts
	pass.Draft
	r      *resource
	memory *pass.Memory
	ledger *book.Ledger
	// filters are what handlers' filters have said.
	filters filter.Answers
	// filtered is what handlers say of filters that keep them from acting. Explicit are the conditions that handlers set
	// themselves: what is offered does not take their place.
	filtered []*dsl.Patch
	explicit []metav1.Condition
	// family knows what the pass has written, and the object's children. Related is what it sees of related objects, and
	// indexes of the operator's.
	family  *children.Session
	related *related.View
	indexes *index.View
	// asking is held while handlers are asked whether they want a child.
	asking sync.Mutex
	// walk knows what woke the pass, and notes its writes.
	walk *breaker.Walk
	// jobs are the handlers that have something to do, as far as the pass has come.
	jobs pass.Jobs
	// come is what has come up.
	come changes
	// left is the object as the pass has written it, nil before it does.
	left *unstructured.Unstructured
	// known is the object as its handlers saw it, with the pass's own writes since then and no others, as the cache shows it.
	// Entire is the whole object where the cache shows a part; nil until it is read.
	known, entire *unstructured.Unstructured
	// marks: some handler that leaves a book on objects sees this one; nil before that is asked.
	marks    *bool
	searched bool // what is to be known for a deletion of children that no handler has any more is known
	// next is when the next pass is due.
	next queue.Next
}

// pass handles one key once. It reads, decides, runs handlers, writes, and says when the key is due next.
func (r *resource) pass(ctx context.Context, key cache.ObjectName) (queue.Next, error) {
	if h := r.scheduleOf(key); h != nil {
		return r.resourcePass(ctx, key, *h)
	}
	if err := r.keyed(ctx); err != nil {
		return queue.Next{}, err
	}
	t := r.box.Take(key)
	defer t.Close()
	if r.isKey(key.Namespace, key.Name) {
		t.Handled()
		return queue.Next{}, nil
	}
	t.Memory = t.Memory.Wake().Expecting(t.Expected)
	defer t.Memory.Sleep()
	next, late := r.departed.Finalize(ctx, key, t)
	if ctx.Err() != nil {
		return queue.Next{}, late
	}
	next, err := r.passSharing(ctx, key, t, next)
	if err == nil {
		err = late // what is there does not wait for what was there before it
	}
	return next, err
}

// passSharing is passLiving with a share of the memory, once there is one.
func (r *resource) passSharing(ctx context.Context, key cache.ObjectName, t *pass.Turn, next queue.Next) (queue.Next, error) {
	share := r.share(key, t.Memory)
	if share == nil {
		return next, pass.ErrShort
	}
	defer share.Return()
	return r.passLiving(ctx, key, t, next, share)
}

// passLiving is the pass over the object that the cache has under the key. Next is when the key is due for others.
func (r *resource) passLiving(ctx context.Context, key cache.ObjectName, t *pass.Turn, next queue.Next, share *children.Share) (queue.Next, error) {
	current := t.Memory.CaughtUp(ctx, r.engine.reader) // asked before the read, which is then no older than that
	object, err := r.read(ctx, key)
	if err != nil {
		return queue.Next{}, err
	}
	if object == nil {
		r.forget(key, t)
		return next, nil
	}
	if current {
		t.Unpark()
	}
	m := t.Memory
	if m == nil || m.UID != object.GetUID() {
		m.Gone()
		m, current = pass.NewMemory(object.GetUID()), true
	}
	defer m.Sleep()
	defer func() { m.Grown = share.Grown() }()
	t.Keep(m)
	if !current {
		return next, pass.Park(t, m)
	}
	now := time.Now()
	if wait := m.Breaker.Wait(now); wait > 0 && object.GetDeletionTimestamp() == nil {
		return next.Sooner(wait, queue.Due), nil
	}
	if object, err = r.renamed(ctx, key, object, m); err != nil || object == nil {
		return next, err
	}
	number, err := r.observed(ctx, key, object, m)
	if err != nil {
		return queue.Next{}, err
	}
	p := r.newPass(facts{key: key, object: object, deletion: book.Deletion(object, false), number: number, now: now, share: share}, m, t.Changes)
	p.next = next
	r.machines.Note(key, object)
	if awaits, err := p.awaitsChild(ctx); err != nil {
		return queue.Next{}, err
	} else if awaits {
		return next, pass.Park(t, m)
	}
	if err := p.run(ctx, t.Changes); err != nil {
		t.Event = ""                          // handlers that are not through with it have it in mind
		t.Related = &inbox.Related{All: true} // what the object asks for now may be noted, and not handled
		return queue.Next{}, err
	}
	t.Handled()
	return p.next, nil
}

// forget drops what is remembered of a key that has no object, and ends the daemons of an object that is known to be gone.
func (r *resource) forget(key cache.ObjectName, t *pass.Turn) {
	t.Memory.Gone()
	gone := r.departed.Forget(key, t)
	if r.machines.Note(key, nil); gone {
		r.crew.Tend(daemon.Sight{Key: key})
	}
}

// awaitsChild reports whether the pass has to wait for a child that is on the server, and that no cache shows.
func (p *run) awaitsChild(ctx context.Context) (bool, error) {
	found, err := p.family.Find(ctx)
	if err != nil {
		p.held(err)
	}
	return err == nil && found && !p.memory.Writes.Shown(), err
}

// observed returns what status.observedGeneration says. Where this version keeps elsewhere what was handled, the field is asked
// once, and read from the server where the cache lacks it.
func (r *resource) observed(ctx context.Context, key cache.ObjectName, object *unstructured.Unstructured, m *pass.Memory) (n book.Number, err error) {
	keeps := r.own.KeepsGeneration()
	if !r.rules.Ledger.Stores || !keeps && (m.Ledger.Known() || !book.HasMarker(object, r.engine.markers())) {
		return n, nil
	}
	if r.spec.Cache == dsl.CacheMetadata {
		if object, err = r.live(ctx, key, object.GetUID()); err != nil {
			return n, err
		}
	}
	n.Value, _, _ = unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	n.Own = n.Value > 0 && (book.HasMarker(object, r.engine.markers()) || keeps && book.Inherited(object, r.engine.managers()))
	return n, nil
}

// passGone is the pass over an object that is gone already.
func (r *resource) passGone(ctx context.Context, one pass.Departed, news inbox.Changes) (queue.Next, error) {
	last := one.Last
	if r.engine.renamer.Finds(last) {
		last = r.engine.renamer.Renamed(last)
	}
	p := r.newPass(facts{key: one.Key, object: last, gone: true, deletion: book.Deletion(last, true), now: time.Now()}, one.Memory, inbox.Changes{})
	err := p.run(ctx, news)
	if err == nil && (p.memory.Finalized || p.next.After <= 0) {
		p.memory.Gone()
	}
	return p.next, err
}

// newPass begins a pass: it opens the object's book, and what is known of its children and related objects.
func (r *resource) newPass(f facts, m *pass.Memory, news inbox.Changes) *run {
	p := &run{facts: f, known: f.object, Draft: pass.DraftOf(f.object), r: r, memory: m}
	rules := &r.rules.Ledger
	if f.resourceWide() {
		rules = &r.rules.Schedules
	}
	p.ledger = book.Open(rules, &m.Ledger, book.Subject{
		Object: f.object, Deletion: f.deletion, First: !m.Seen, Fresh: news.Fresh, Generation: r.own.KeepsGeneration() && !f.resourceWide(), Number: f.number, Now: f.now,
	}, p.Look, p.log)
	p.related = r.related.View(related.Owner{Key: f.key, Object: f.object, Gone: f.gone, Now: f.now})
	p.indexes = r.indexes.View(f.key, !m.Seen, !f.gone && !f.resourceWide())
	p.walk = p.begin(news)
	p.family = r.family.Begin(children.Pass{
		Key: f.key, Object: f.object, Gone: f.gone, Deleting: f.deletion != "", Now: f.now, Log: p.log, Share: f.share,
		Memory: &m.Children, Sweep: &m.Sweep, Awaits: &m.Writes, Walk: p.walk, Done: p.ledger.DeleteDone(), Undecided: p.undecided,
	})
	return p
}

// run is the pass once its object is known: each handler in its order is planned, and run when it is
// due, then the pass writes and remembers.
func (p *run) run(ctx context.Context, news inbox.Changes) error {
	defer p.indexes.Keep(false)
	n := p.observe(news)
	p.come = n
	if err := p.family.Rename(ctx); err != nil {
		p.abandon()
		return err
	}
	p.family.Sight(ctx)
	if err := p.handle(ctx, n); errors.Is(err, patch.ErrGone) {
		return nil
	} else if err != nil {
		p.abandon()
		return err
	}
	if err := p.sweep(ctx, n.Child); err != nil {
		p.abandon()
		return err
	}
	p.restate()
	p.ownReady(ctx)
	s, err := p.write(ctx, p.settle())
	if err != nil && !errors.Is(err, patch.ErrGone) {
		p.abandon()
		p.refused(err)
		return err
	}
	p.remember(account{n, p.jobs, p.family.Writes(), s})
	p.tend(err == nil)
	return nil
}

// restate asks for conditions that are still true of a new generation.
func (p *run) restate() {
	if p.deletion == "" && p.r.own.Resource().Status { // without a subresource, each write would be another generation
		p.saying().Restate(p.Patch)
	}
}

// saying is what the pass knows of what is to be said in conditions.
func (p *run) saying() pass.Conditions {
	return pass.Conditions{
		Object: p.object, Current: p.Current, Look: p.Look, Wanted: p.Patch, Readers: p.r.rules.Readers, Jobs: p.jobs, Ledger: p.ledger, Memory: p.memory, Sees: p.sees,
	}
}

// finalizer reports whether the object has the operator's finalizer.
func (p *run) finalizer() bool {
	return slices.ContainsFunc(p.object.GetFinalizers(), func(f string) bool {
		return f == p.r.rules.Finalizer || slices.Contains(p.r.rules.Earlier, f)
	})
}

func (p *run) log() logr.Logger { return p.r.logOf(p.facts, attempt.About{}) }

// logOf returns the log for what happens to an object.
func (r *resource) logOf(f facts, about attempt.About) logr.Logger {
	if !f.resourceWide() {
		about.Key = f.key
	}
	return about.Log(r.log)
}
