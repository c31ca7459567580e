// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pass

import (
	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/shape"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// Rules are what a resource's handlers ask for, worked out once: what is kept on its objects and
// whether they need the finalizer.
type Rules struct {
	// Operator and Spec are what the rules are worked out from, and Resource is the resource's name.
	Operator *dsl.Operator
	Spec     *dsl.Resource
	Resource string
	// Readers are the handlers that run for objects, as books know them, Timers those of them that run by
	// time, and AtTimes those that run at a time from their object.
	Readers, Timers, AtTimes []book.Handler
	// Daemons are the handlers that run all the time. They have no entry in a book.
	Daemons []book.Handler
	// Handlers are those of the readers.
	Handlers []*dsl.Handler
	// Ledger is what books of objects are about, Schedules what those are about of handlers that run for the resource
	// as a whole.
	Ledger, Schedules book.Rules
	// Told are the readers whose outcomes others read, and Hears those that read them.
	Told, Hears []book.Handler
	// Relates are the handlers that run for related objects.
	Relates []*dsl.Handler
	// All is the view of all of an object.
	All book.View
	// Deletes: there are handlers, or daemons, that want to hear of deletions, or that patch other objects.
	Deletes bool
	// Events: there are handlers that hear of every event.
	Events bool
	// Finalizes: some delete handler, or some daemon, holds its object.
	Finalizes bool
	// Digests: handlers leave digests of Secrets, which have a key.
	Digests bool
	// KeepsReady: the engine keeps the condition Ready.
	KeepsReady bool
	// Echoes: the events of own writes may start no pass. It is not so where something has to see each state of an object, or goes on
	// with it beside the handlers' views.
	Echoes bool
	// Finalizer is the operator's, Prefix that of its annotations, and Retry the one with which a person has handlers run.
	Finalizer, Prefix, Retry string
	// Earlier are the operator's finalizers under its earlier names.
	Earlier []string
	// Held are the parts of objects that the cache holds.
	Held dsl.Held
	// Names are the operator's name and its earlier ones, which are its field managers, too.
	Names []string
}

// NewRules works them out. Key is that of digests of Secrets. Missed, when set, is called for each field that a handler reads
// and does not list in dsl.Reads.
func NewRules(op *dsl.Operator, r *dsl.Resource, key *book.Key, missed func(handler string, field []string)) Rules {
	out := Rules{Operator: op, Spec: r, Held: op.Held(r), Resource: r.Name.String(), Digests: r.DigestsSecrets(), KeepsReady: r.KeepsReady(), Finalizer: op.Finalizer(), Prefix: op.Prefix(), Retry: op.RetryAnnotation(), Names: []string{op.Name}}
	for _, earlier := range op.Earlier() {
		out.Earlier, out.Names = append(out.Earlier, earlier.Finalizer()), append(out.Names, earlier.Name)
	}
	own := book.Own{Annotations: []string{op.StateAnnotation(), op.ChildrenAnnotation(), op.PausedAnnotation(), op.PausedDeletionsAnnotation(), op.RetryAnnotation()}, Finalizer: out.Finalizer}
	secret := r.OfSecrets()
	if secret {
		own.Key = key
	}
	out.All = book.NewView(dsl.View{Beside: []dsl.Path{{"metadata"}, {"status"}}}, own)
	for _, h := range r.Handlers() {
		reader := book.Handler{
			Handler: h, View: book.NewView(op.View(h), own),
			Old:     book.WantsOld(h) && !secret, // values of a Secret are never copied into annotations
			Secrets: r.Secrets(h), Sees: h.Sees(),
		}
		if reader.Sees != nil && missed != nil {
			reader.Sees = out.watched(reader, missed)
		}
		switch {
		case h.Daemon != nil:
			out.Daemons = append(out.Daemons, reader)
			out.Deletes = true // a daemon goes on until it is known that its object is gone
			out.Finalizes = out.Finalizes || h.Finalizes()
		case h.ResourceWide:
			out.Schedules.Handlers = append(out.Schedules.Handlers, reader)
		default:
			out.add(reader)
		}
	}
	out.Told, out.Hears = told(out.Readers)
	chooses := r.LabelSelector != "" || r.FieldSelector != ""
	out.Deletes = out.Deletes || chooses && len(r.Machines()) > 0 // of an object that leaves the selector the book is taken off
	out.Ledger.Handlers, out.Ledger.Annotation = out.Readers, op.StateAnnotation()
	out.Ledger.Partial = r.Cache == dsl.CacheMetadata || len(r.Keep) > 0
	out.Echoes = out.echoes()
	return out
}

// echoes works out Echoes.
func (r *Rules) echoes() bool {
	beside := len(r.Timers) + len(r.AtTimes) + len(r.Daemons) + len(r.Spec.Relations()) + len(r.Spec.Machines())
	return !r.Events && beside == 0 && r.Spec.Cache != dsl.CacheLive && !r.KeepsReady && !r.Spec.KeepsGeneration() && len(r.Operator.Earlier()) == 0
}

// watched is what a handler sees, with missed called for other fields.
func (r *Rules) watched(h book.Handler, missed func(handler string, field []string)) *shape.Kept {
	if len(r.Spec.Keep) == 0 {
		r.Held = dsl.Held{} // so that it is known which fields there are
	}
	sees := *h.Sees
	sees.Missed = func(field []string) { missed(h.ID, field) }
	return &sees
}

// Blind reports whether the cache may lack what a patch is to change.
func (r *Rules) Blind(p *dsl.Patch) bool { return r.Ledger.Partial || r.Held.Lacks(p) }

func (r *Rules) add(h book.Handler) {
	h.Place = len(r.Readers)
	r.Readers, r.Handlers = append(r.Readers, h), append(r.Handlers, h.Handler)
	switch {
	case h.AtTime():
		r.AtTimes = append(r.AtTimes, h)
	case h.On(dsl.Timer):
		r.Timers = append(r.Timers, h)
	}
	if h.On(dsl.RelatedChange) {
		r.Relates = append(r.Relates, h.Handler)
	}
	r.Events = r.Events || h.On(dsl.Event)
	r.Deletes = r.Deletes || r.Events || h.On(dsl.Delete) || len(h.Known.Patches) > 0 // what is patched is given back
	r.Finalizes = r.Finalizes || h.Finalizes()
	r.Ledger.Stores = r.Ledger.Stores || h.Marks()
}

// Daemon is a daemon as books would know it.
func (r *Rules) Daemon(h *dsl.Handler) book.Handler {
	for _, d := range r.Daemons {
		if d.Handler == h {
			return d
		}
	}
	return book.Handler{Handler: h}
}
