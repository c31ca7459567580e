// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/reconcile/daemon"
)

// Found is what a reconcile has found to have come up, beside what the inbox kept for it.
type Found struct {
	// Named are handlers that are to look again though others are not: as if a child had changed, or at the next resync.
	Named []string
	// Resync: the object's resync period has passed.
	Resync bool
	// Clock are the object's timers, nil where there are none.
	Clock *Clock
}

// observe finds out what has come up for the object's handlers. Next is when its key is due for others.
func (p *run) observe(ctx context.Context, next queue.Next) (State, error) {
	st := p.opening
	st.Due = next
	p.begun()
	if ids, asked := p.retryAsked(); asked {
		st = p.retry(st, ids)
	}
	if len(p.Rules.Daemons) > 0 {
		p.syncDaemons(st, false)
	}
	var again time.Duration
	if st.Found, again = p.found(st); again > 0 {
		st.Due = st.Due.Sooner(again, queue.Resync)
	}
	if again := p.indexes.Refresh(); again > 0 {
		st.Due = st.Due.Sooner(again, queue.Resync)
	}
	p.family.Claims.Blind(func(at int) bool { // asks those that do not see it, too
		r := p.Rules.Readers[at]
		return p.askFilters(st.Draft, r, askFor(r.Handler)).Keeps()
	})
	st.Found.Named = p.named()
	if err := p.family.Rename(ctx); err != nil {
		return st, err
	}
	p.family.Sight(ctx)
	return st, nil
}

// begun has filters asked anew, and wakes handlers of events.
func (p *run) begun() {
	p.memory.Filters.Begin()
	p.noteEvent(p.Changes.Event)
}

// found returns what has come up by time and among related objects, and when to look at these again; zero for never.
func (p *run) found(st State) (out Found, again time.Duration) {
	if len(p.Rules.Timers) > 0 && p.Deletion == "" {
		out.Clock = p.startClock(st.Draft)
	}
	out.Resync = p.memory.Resync != nil && !p.Now.Before(*p.memory.Resync)
	return out, p.related.Refresh(p.memory.Related, p.Changes.Related)
}

// named are the handlers that are to look again though others are not.
func (p *run) named() []string { return slices.Concat(p.memory.Rerun, p.family.Claims.Asked()) }

// noteEvent makes handlers of events run for what the watch has shown. It is in their entries from there on, so those alone that
// are not through with it run for it again.
func (p *run) noteEvent(event apiwatch.EventType) {
	if event == "" && !p.memory.Ledger.Known() {
		event = apiwatch.Added // to this process
	}
	if event == "" || !p.Rules.Events {
		return
	}
	p.memory.Event = event
	for _, r := range p.Rules.Readers {
		if r.On(dsl.Event) {
			p.ledger.Put(r, p.ledger.Entry(r).WakeFor(dsl.Event))
		}
	}
}

// syncDaemons shows the object's daemons what the reconcile sees of it. Once the reconcile is through, those are started that are to run:
// the finalizer is there before.
func (p *run) syncDaemons(st State, starts bool) {
	if p.Gone || p.resourceWide() {
		return
	}
	object := p.Object
	if written := st.written(); written != nil {
		object = p.Writer.Shown(written)
	}
	p.Daemons.Reconcile(daemon.Sight{
		Key: p.Key, UID: p.Object.GetUID(), Object: object, Deleting: p.Deletion != "", Starts: starts, Pass: view{p, st.Draft},
	})
}

// view answers for a reconcile what is asked about daemons.
type view struct {
	pass *run
	at   Draft
}

// Matches asks the filters of a daemon, and reports whether they have an answer.
func (s view) Matches(h *dsl.Handler) (holds, known bool) {
	a := s.pass.askFilters(s.at, s.pass.Rules.Daemon(h), dsl.Running)
	return a.Holds, a.Err == nil
}

// About is what a daemon is asked about.
func (s view) About(h *dsl.Handler) *dsl.Subject {
	p := s.pass
	return p.subject(s.at, p.Rules.Daemon(h), dsl.Running, progress.Record{}, p.family.Reader(), p.indexes.For(h.ID, dsl.Running))
}

// Memo is the object's, which is kept from then on.
func (s view) Memo() *dsl.Memo { return s.pass.memory.Share() }

// wantsEnd reports whether the object's deletion is to wait for a daemon to end.
func (p *run) wantsEnd(at Draft, d progress.Handler) bool {
	if d.NoFinalizer {
		return false
	}
	a := p.askFilters(at, d, dsl.Running)
	return p.Daemons.Wants(p.Key, p.Object.GetUID(), d.Handler, a.Holds || a.Err != nil && p.finalizer())
}

// daemonsEnd reports whether the deletion waits for daemons to end. Delete handlers run then.
func (p *run) daemonsEnd() bool {
	return p.Deletion != "" && !p.Gone && p.Daemons.Holds(p.Key, p.Object.GetUID())
}

// forget drops what is remembered of a key that has no object, and ends the daemons of an object that is known to be gone.
func (s *Controller) forget(key inbox.Key, t *Batch) {
	t.Memory.Gone()
	gone := s.forgetGone(key, t)
	s.Observer.History.Forget(s.Observer.id(key))
	if s.Machines.Note(key, nil); gone {
		s.Daemons.Reconcile(daemon.Sight{Key: key})
	}
}

// foreseen returns the object as handlers have left it, without the marks of the engine.
func (p *run) foreseen(st State) *unstructured.Unstructured {
	return draftOf(p.Object).With(st.Patch, p.generation(), p.Now).Current
}
