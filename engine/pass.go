// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/claim"
	"github.com/handwerk-dev/handwerk/engine/inbox"
	"github.com/handwerk-dev/handwerk/engine/patch"
	"github.com/handwerk-dev/handwerk/engine/queue"
	"github.com/handwerk-dev/handwerk/engine/related"
	"github.com/handwerk-dev/handwerk/engine/timer"
)

// pass is one run over one object. What it works out is kept only when its write has succeeded;
// otherwise the next pass begins from the same book.
type pass struct {
	r      *resource
	key    cache.ObjectName
	object *unstructured.Unstructured
	gone   bool
	// whole: the pass is over the resource as a whole, and object has no more than its kind.
	whole bool
	// generation: what was handled is kept in status.observedGeneration.
	generation bool
	memory     *memory
	now        time.Time
	// fresh: the object appeared after the first listing. Deletion is the moment at which it was deleted,
	// empty while it lives.
	fresh    bool
	deletion string

	text string // the state annotation as the object has it
	book book.Book
	// stored is the mark of what was stored of it when the pass began, marked when it ends. Outcomes is
	// that of the outcomes among it.
	stored, marked, outcomes string
	// current is the object as handlers see it: with what those before them want of it.
	current *unstructured.Unstructured
	// sight is a look at it.
	sight *book.Look
	// secured: the finalizer is there if it must be.
	secured bool

	mu      sync.Mutex // guards writes, content, applied, writers and memory.settled: a handler may use goroutines
	patch   *dsl.Patch
	jobs    []*job
	writes  []inbox.Write
	content uint32 // tells what was written from other things; see breaker
	applied map[childID]*unstructured.Unstructured
	// writers are the handlers that wrote children, each with how many jobs there were then.
	writers map[string]int
	// others are the handlers that wrote to other objects than children.
	others map[string]bool
	// stirred are handlers that the next pass runs for what others have written to children in this one.
	stirred []string
	ties    enrolment
	claims  *claim.Claims[childID]
	next    due
	resync  bool
	// ticks are the object's timers as this pass leaves them, nil when it has none.
	ticks []timer.Tick
	// answers are what handlers' filters have said in this pass.
	answers map[question]answer
	// behind: a handler has not seen what others have done to the object after it.
	behind bool
	// held: a handler keeps the object from being deleted, and will not let it go by itself.
	held bool
	// unsure: whether a handler that holds the object sees it cannot be told.
	unsure bool
	// related is what this pass sees of related objects.
	related *related.View
}

// pass handles one key once. It reads, decides, runs handlers, writes, and says when the key is
// due next.
func (r *resource) pass(ctx context.Context, key cache.ObjectName) (due, error) {
	if h := r.scheduled(key); h != nil {
		return r.wholePass(ctx, key, *h)
	}
	t := r.box.Take(key)
	defer t.Close()
	t.Memory = t.Memory.expecting(t.Expected)
	next, err := r.finalizeDeleted(ctx, key, t)
	if err != nil {
		return due{}, err
	}
	current := r.caughtUp(ctx, t.Memory) // asked before the read, which is then no older than that
	object, err := r.read(ctx, key)
	if err != nil {
		return due{}, err
	}
	if object == nil {
		r.goneBy(key, t)
		return next, nil
	}
	if current {
		t.Unpark()
	}
	m := t.Memory
	if m == nil || m.uid != object.GetUID() {
		m, current = newMemory(object.GetUID()), true
	}
	t.Keep(m)
	if !current {
		return next, park(t, m)
	}
	p := r.newPass(key, object, m, false)
	if wait := m.breaker.Wait(p.now); wait > 0 && p.deletion == "" {
		return next.sooner(wait, queue.Due), nil
	}
	p.next = next
	if err := p.run(ctx, changes{Changes: t.Changes}); err != nil {
		t.Event = ""                          // handlers that are not through with it have it in mind
		t.Related = &inbox.Related{All: true} // what the object asks for now may be noted, and not handled
		return due{}, err
	}
	t.Handled()
	return p.next, nil
}

// park puts a key aside until the cache has caught up.
func park(t *turn, m *memory) error {
	if t.Park(&m.writes) {
		return errParked
	}
	return errCaughtUp
}

// goneBy is the pass of a key without an object.
func (r *resource) goneBy(key cache.ObjectName, t *turn) {
	if r.rules.deletes && t.Memory != nil && !told(t) {
		t.Keep(t.Memory) // the cache is ahead of what is told: the deletion is on its way
		t.Handled()
		return
	}
	if t.Forget() {
		r.records.put(key, nil)
	}
	if len(t.Left) == 0 { // what is left may come back
		r.related.Forget(key)
	}
}

// told reports whether the deletion of the object that is remembered was told.
func told(t *turn) bool {
	return slices.ContainsFunc(t.Gone, func(d *tombstone) bool {
		uid := d.Object.GetUID()
		return uid == t.Memory.uid || uid == "" // of one that nobody saw go, only the name may be known
	})
}

// run is the pass once its object is known: each handler in its order is planned, and run when it is
// due, then the pass writes and remembers.
func (p *pass) run(ctx context.Context, n changes) error {
	p.fresh = n.Fresh
	p.hear(n)
	p.tie()
	p.startTimers()
	if again := p.related.Refresh(p.memory.related, n.Related); again > 0 {
		p.next = p.next.sooner(again, queue.Resync)
	}
	p.reclaim()
	n.of = slices.Concat(p.memory.stirred, p.claims.Asked())
	p.resync = !p.memory.resync.IsZero() && !p.now.Before(p.memory.resync)
	parted := p.gone && p.memory.parted
	for _, r := range p.r.rules.readers {
		if parted && !r.On(dsl.Event) {
			continue
		}
		j := p.plan(r, n)
		if j == nil {
			continue
		}
		p.jobs = append(p.jobs, j)
		err := p.attempt(ctx, j)
		if errors.Is(err, patch.ErrGone) {
			return nil
		}
		if err != nil {
			p.keepOutcomes()
			return err
		}
	}
	p.restate()
	return p.close(ctx)
}

// hear makes handlers of events run for what the watch has told. It is in their entries from there on, so it is
// told again to those alone that are not through with it.
func (p *pass) hear(n changes) {
	if n.Event == "" && !p.memory.known {
		n.Event = apiwatch.Added // to this process
	}
	if n.Event == "" {
		return
	}
	p.memory.event = n.Event
	for _, r := range p.r.rules.readers {
		if r.On(dsl.Event) {
			p.put(r, p.entry(r).Wakes(dsl.Event))
		}
	}
}

// read returns the object, nil when it is gone.
func (r *resource) read(ctx context.Context, key cache.ObjectName) (*unstructured.Unstructured, error) {
	cached, found := r.own.Get(key)
	if !found {
		return nil, nil
	}
	if r.spec.Cache != dsl.CacheLive {
		return cached.Tree(), nil
	}
	object, err := r.engine.reader(ctx, r.own.Resource().GVR, key)
	if err != nil {
		return nil, fmt.Errorf("reading object: %w", err)
	}
	return object, nil
}

// newPass opens the object's book.
func (r *resource) newPass(key cache.ObjectName, object *unstructured.Unstructured, m *memory, gone bool) *pass {
	p := &pass{r: r, key: key, object: object, gone: gone, memory: m, now: time.Now(), patch: dsl.NewPatch(), applied: map[childID]*unstructured.Unstructured{}}
	p.related = r.related.View(related.Owner{Key: key, Object: object, Gone: gone, Now: p.now})
	p.ties.begin(p)
	p.current, p.sight = object, book.NewLook(object.Object)
	p.text = object.GetAnnotations()[r.engine.op.StateAnnotation()]
	p.deletion = deletionOf(object, gone)
	p.generation = r.own.KeepsGeneration()
	p.book = p.open()
	p.claims = claim.Begin(&m.claims, r.rules.handlers, p.now, p.parted())
	return p
}

// parted names the handlers that are through with the deletion, nil while the object lives.
func (p *pass) parted() map[string]bool {
	if p.deletion == "" {
		return nil
	}
	out := map[string]bool{}
	for _, r := range p.r.rules.readers {
		e := p.entry(r)
		out[r.ID] = e.Parted(p.deletion) && !e.Try.Failed
	}
	return out
}

// reclaim has handlers that do not see the object any more say once more whether they keep its children.
func (p *pass) reclaim() {
	p.claims.Blind(func(at int) bool {
		r := p.r.rules.readers[at]
		return p.answer(&job{reader: r, cause: causeOf(r.Handler)}).keeps()
	})
}

// finalizer reports whether the object has the operator's finalizer.
func (p *pass) finalizer() bool {
	return slices.Contains(p.object.GetFinalizers(), p.r.engine.op.Finalizer())
}
