// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/cache/related"
	"github.com/handwerk-dev/handwerk/engine/children"
	"github.com/handwerk-dev/handwerk/engine/decide/breaker"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/reconcile/attempt"
)

// openObject moves marks of earlier names of the operator, and opens a reconcile over an object that has passed the
// gates. The run is nil if the object is deleted meanwhile.
func (s *Controller) openObject(ctx context.Context, a arrival) (*run, State, error) {
	m := a.memory
	if m.Halt != nil {
		s.resumed(a.key, m)
	}
	object, err := s.renamed(ctx, a.key, a.tree(), m)
	if err != nil || object == nil {
		return nil, State{}, err
	}
	if object, err = s.takenOver(ctx, a.key, object, m); err != nil || object == nil {
		return nil, State{}, err
	}
	object = s.renewed(ctx, a.key, object, m)
	p, st := s.open(Input{
		Key: a.key, Object: object, Version: a.version, Deletion: progress.Deletion(object, false), Now: a.now, Changes: a.changes, Share: a.share,
	}.traced(ctx, s.Tracer), m, opening{rules: &s.Rules.Progress, records: true, wakes: true})
	s.Machines.Note(a.key, object)
	return p, st, nil
}

// opening has the settings in which the kinds of run differ.
type opening struct {
	// rules are the rules of the progress.
	rules *progress.Rules
	// records: reads of indexes are recorded, so that a change of a key wakes the object.
	records bool
	// wakes: the run is on the trail, which finds loops across objects.
	wakes bool
}

// open opens a run over an object: its progress, and views of its children, related objects and indexes. It returns the
// state in which the run begins.
func (s *Controller) open(in Input, m *ObjectState, o opening) (*run, State) {
	p := &run{Controller: s, Input: in, memory: m}
	st := State{Draft: draftOf(in.Object), Known: in.Object}
	p.progress = progress.Open(o.rules, &m.Progress, progress.Subject{
		Object: in.Object, Deletion: in.Deletion, First: !m.Seen, Fresh: in.Changes.Fresh,
		StatusCounts: !s.Own.Resource().Status, Now: in.Now,
	}, st.Look, p)
	if !in.resourceWide() && len(p.Rules.OutcomeSources) > 0 {
		st = p.recall(st)
	}
	p.bareDraft = st.Draft
	p.related = s.Relations.View(related.Owner{Key: in.Key, Object: in.Object, Gone: in.Gone, Now: in.Now})
	p.indexes = s.Indexes.View(in.Key, !m.Seen, o.records)
	if o.wakes {
		p.walk = p.woken()
	}
	p.family = s.Family.Begin(children.Input{
		Key: in.Key, Object: in.Object, Gone: in.Gone, Deleting: in.Deletion != "", Now: in.Now, Share: in.Share, Logger: p,
		Memory: &m.Children, Prune: &m.Prune, Awaits: &m.Writes, Walk: p.walk, Done: p.progress.DeleteDone(),
	})
	return p, st
}

// awaitsChild reports whether the reconcile has to wait for a child that the server has and no cache shows yet.
func (p *run) awaitsChild(ctx context.Context) (bool, error) {
	found, err := p.family.Find(ctx)
	if note := p.heldNote(err); note != nil {
		p.Observer.say(p, *note)
	}
	return err == nil && found && !p.memory.Writes.Shown(), err
}

// hasFinalizer reports whether the object has the operator's finalizer.
func (p *run) hasFinalizer() bool {
	return slices.ContainsFunc(p.Object.GetFinalizers(), p.isOwnFinalizer)
}

// isOwnFinalizer reports whether a finalizer is the operator's, under its present name or an earlier one.
func (p *run) isOwnFinalizer(f string) bool {
	return f == p.Rules.Finalizer || slices.Contains(p.Rules.Earlier, f)
}

// Log returns a log with the object's key.
func (p *run) Log() logr.Logger { return p.logOf(p.Input, attempt.About{}) }

// woken puts the reconcile on the trail, with the writes that woke it.
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

// The memory of a reconcile, as multiples of the size of its object's JSON: for the trees, and for what handlers make
// before this has been measured.
const (
	asTrees   = 8
	asUnknown = 32
)

// logOf returns the log for messages about an object or an attempt.
func (s *Controller) logOf(in Input, about attempt.About) logr.Logger {
	if !in.resourceWide() {
		about.Key = in.Key
	}
	log := about.Log(s.Observer.Log)
	if in.Trace != "" {
		log = log.WithValues("trace", in.Trace, "span", in.Span)
	}
	return log
}

// budgetKey returns the name of an object in the budget.
func (s *Controller) budgetKey(key cache.ObjectName) children.Who {
	return children.Who{Resource: s.Rules.Resource, Namespace: key.Namespace, Name: key.Name}
}

// bytes estimates how much memory a reconcile over the object takes.
func (a arrival) bytes() int {
	if a.memory.Seen {
		return asTrees*a.version.Length() + a.memory.Grown
	}
	return asUnknown * a.version.Length()
}

// noteRequest notes how a request of the reconcile itself ended.
func (s *Controller) noteRequest(key cache.ObjectName, err error) {
	s.Host.Refused(key, Itself, err)
}
