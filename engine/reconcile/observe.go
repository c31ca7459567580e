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

// Found has the triggers that a reconcile has found itself, beside the changes from the inbox.
type Found struct {
	// Named are handlers that run in any case, as if a child had changed or the resync period had passed.
	Named []string
	// Resync: the object's resync period has passed.
	Resync bool
	// Clock has the object's timers; nil if it has none.
	Clock *Clock
}

// observe finds the triggers for the object's handlers.
func (p *run) observe(ctx context.Context, st State) (State, error) {
	p.begun()
	if ids, asked := p.retryAsked(); asked {
		st = p.retry(st, ids)
	}
	p.syncDaemons(st, false)
	return p.lookAround(ctx, st)
}

// lookAround finds triggers by time, and among related objects, indexes and children.
func (p *run) lookAround(ctx context.Context, st State) (State, error) {
	var again time.Duration
	if st.Found, again = p.found(st); again > 0 {
		st.Due = st.Due.Sooner(again, queue.Resync)
	}
	if again := p.indexes.Refresh(); again > 0 {
		st.Due = st.Due.Sooner(again, queue.Resync)
	}
	for _, at := range p.family.Claims.Holders() {
		if r := p.Rules.Readers[at]; !p.askFilters(st.Draft, r, askFor(r.Handler)).Keeps() {
			p.family.Claims.Ask(at) // its filters exclude the object, so it does not run by itself
		}
	}
	st.Found.Named = p.named()
	if err := p.family.Rename(ctx); err != nil {
		return st, err
	}
	p.family.RegisterKinds(ctx)
	return st, nil
}

// begun forgets answers of filters, and wakes handlers of events.
func (p *run) begun() {
	p.memory.Filters.Begin()
	p.noteEvent(p.Changes.Event)
}

// found returns the triggers by time, and reads related objects. Again is the time until related objects must be read
// again; zero for never.
func (p *run) found(st State) (out Found, again time.Duration) {
	if len(p.Rules.Timers) > 0 && p.Deletion == "" {
		out.Clock = p.startClock(st.Draft)
	}
	out.Resync = p.memory.Resync != nil && !p.Now.Before(*p.memory.Resync)
	return out, p.related.Refresh(p.memory.Related, p.Changes.Related)
}

// named returns the handlers that run although no others need to.
func (p *run) named() []string { return slices.Concat(p.memory.Rerun, p.family.Claims.Asked()) }

// noteEvent wakes the handlers of events for the watch's event. From here on their entries have it, so only unfinished
// handlers run for it again.
func (p *run) noteEvent(event apiwatch.EventType) {
	if event == "" && !p.memory.Progress.Known() {
		event = apiwatch.Added // the event is new to this process
	}
	if event == "" || !p.Rules.Events {
		return
	}
	p.memory.Event = event
	for _, r := range p.Rules.Readers {
		if r.On(dsl.Event) {
			p.progress.Put(r, p.progress.Entry(r).WakeFor(dsl.Event))
		}
	}
}

// syncDaemons shows the object's daemons what the reconcile sees. Daemons start only at the end of the reconcile, when
// the object has the finalizer.
func (p *run) syncDaemons(st State, starts bool) {
	if len(p.Rules.Daemons) == 0 {
		return
	}
	object := p.Object
	if written := st.written(); written != nil {
		object = p.Writer.Shown(written)
	}
	p.Daemons.Reconcile(daemon.Input{
		Key: p.Key, UID: p.Object.GetUID(), Object: object, Deleting: p.Deletion != "", Starts: starts, Reconcile: view{p, st.Draft},
	})
}

// view answers the questions of daemons for a reconcile.
type view struct {
	run *run
	at  Draft
}

// Matches evaluates the filters of a daemon. Known is false if a filter failed.
func (s view) Matches(h *dsl.Handler) (holds, known bool) {
	a := s.run.askFilters(s.at, s.run.Rules.Daemon(h), dsl.Running)
	return a.Holds, a.Err == nil
}

// About returns the subject for a daemon.
func (s view) About(h *dsl.Handler) *dsl.Subject {
	p := s.run
	return p.subject(s.at, p.Rules.Daemon(h), dsl.Running, progress.Record{}, p.family.Reader(), p.indexes.For(h.ID, dsl.Running))
}

// Memo returns the object's memo, and keeps it from then on.
func (s view) Memo() *dsl.Memo { return s.run.memory.Share() }

// wantsEnd reports whether the object's deletion has to wait for a daemon to end.
func (p *run) wantsEnd(at Draft, d progress.Handler) bool {
	if d.NoFinalizer {
		return false
	}
	a := p.askFilters(at, d, dsl.Running)
	return p.Daemons.Wants(p.Key, p.Object.GetUID(), d.Handler, a.Holds || a.Err != nil && p.hasFinalizer())
}

// daemonsEnd reports whether the deletion waits for daemons. Delete handlers run after them.
func (p *run) daemonsEnd() bool {
	return p.Deletion != "" && !p.Gone && p.Daemons.Holds(p.Key, p.Object.GetUID())
}

// forget drops the state of a key that has no object, and stops the daemons of an object that is gone for certain.
func (s *Controller) forget(key inbox.Key, t *Batch, memory *ObjectState) {
	memory.Troubles.Gone()
	gone := s.forgetGone(key, t, memory)
	s.Observer.History.Forget(s.Observer.id(key))
	if s.Machines.Note(key, nil); gone {
		s.Daemons.Reconcile(daemon.Input{Key: key})
	}
}

// foreseen returns the object as handlers have left it, without the marks of the engine.
func (p *run) foreseen(st State) *unstructured.Unstructured {
	return draftOf(p.Object).With(st.Patch, p.generation(), p.Now).Current
}
