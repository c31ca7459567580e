// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/shape"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// Rules are what a resource's handlers ask for, worked out once: what is kept on its objects and
// whether they need the finalizer.
type Rules struct {
	// Operator and Spec are what the rules are worked out from, and Resource is the resource's name.
	Operator *dsl.Operator
	Spec     *dsl.Resource
	Resource string
	// Readers are the handlers that run for objects, as progress know them, Timers those of them that run by
	// time, and AtTimes those that run at a time from their object.
	Readers, Timers, AtTimes []progress.Handler
	// Daemons are the handlers that run all the time. They have no entry in progress.
	Daemons []progress.Handler
	// Handlers are those of the readers.
	Handlers []*dsl.Handler
	// Ledger is what progress of objects are about, Schedules what those are about of handlers that run for the resource
	// as a whole.
	Ledger, Schedules progress.Rules
	// Told are the readers whose outcomes others read, and Hears those that read them.
	Told, Hears []progress.Handler
	// Relates are the handlers that run for related objects.
	Relates []*dsl.Handler
	// All is the view of all of an object.
	All progress.View
	// Deletes: there are handlers, or daemons, that want to hear of deletions, or that patch other objects.
	Deletes bool
	// Events: there are handlers that hear of every event.
	Events bool
	// Finalizes: some delete handler, or some daemon, holds its object.
	Finalizes bool
	// Digests: handlers leave digests of Secrets, which have a key.
	Digests bool
	// KeepsReady: the engine keeps the condition Ready. SetsGeneration: it sets status.observedGeneration, if the CRD has it.
	KeepsReady, SetsGeneration bool
	// Echoes: the events of own writes may start no reconcile. It is not so where something has to see each state of an object, or goes on
	// with it beside the handlers' views.
	Echoes bool
	// Finalizer is the operator's, Prefix that of its annotations, and Retry the one with which a person has handlers run.
	Finalizer, Prefix, Retry string
	// Earlier are the operator's finalizers under its earlier names.
	Earlier []string
	// Held are the parts of objects that the cache holds. Kept are those that handlers may change, and that their transformations see;
	// nil means all. In tests the cache may hold more.
	Held dsl.Held
	Kept *shape.Kept
	// Names are the operator's name and its earlier ones, which are its field managers, too.
	Names []string
}

// NewRules works them out. Key is that of digests of Secrets. Missed, when set, is called for each field that a handler reads
// and does not list in dsl.Reads.
func NewRules(op *dsl.Operator, r *dsl.Resource, key *progress.Key, missed func(handler string, field []string)) Rules {
	out := Rules{Operator: op, Spec: r, Held: op.Held(r), Resource: r.Name.String(), Digests: r.DigestsSecrets(), KeepsReady: r.KeepsReady(), SetsGeneration: r.SetsObservedGeneration(), Finalizer: op.Finalizer(), Prefix: op.Prefix(), Retry: op.RetryAnnotation(), Names: []string{op.Name}}
	out.Kept = keptOf(r, out.Held)
	for _, earlier := range op.Earlier() {
		out.Earlier, out.Names = append(out.Earlier, earlier.Finalizer()), append(out.Names, earlier.Name)
	}
	own := progress.Own{Annotations: []string{op.StateAnnotation(), op.ChildrenAnnotation(), op.PausedAnnotation(), op.PausedDeletionsAnnotation(), op.RetryAnnotation()}, Finalizer: out.Finalizer}
	secret := r.OfSecrets()
	if secret {
		own.Key = key
	}
	out.All = progress.NewView(dsl.View{Beside: []dsl.Path{{"metadata"}, {"status"}}}, own)
	for _, h := range r.Handlers() {
		reader := progress.Handler{
			Handler: h, View: progress.NewView(op.View(h), own),
			Old:     progress.WantsOld(h) && !secret, // values of a Secret are never copied into annotations
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
	out.Told, out.Hears = outcomeReaders(out.Readers)
	chooses := r.LabelSelector != "" || r.FieldSelector != ""
	out.Deletes = out.Deletes || chooses && len(r.Machines()) > 0 // of an object that leaves the selector the progress is taken off
	out.Ledger.Handlers, out.Ledger.Annotation = out.Readers, op.StateAnnotation()
	out.Ledger.Partial = r.Cache == dsl.CacheMetadata || len(r.Keep) > 0
	out.Echoes = out.echoes()
	return out
}

// echoes works out Echoes.
func (r *Rules) echoes() bool {
	beside := len(r.Timers) + len(r.AtTimes) + len(r.Daemons) + len(r.Spec.Relations()) + len(r.Spec.Machines())
	return !r.Events && beside == 0 && r.Spec.Cache != dsl.CacheLive && !r.KeepsReady && len(r.Operator.Earlier()) == 0
}

// watched is what a handler sees, with missed called for other fields.
func (r *Rules) watched(h progress.Handler, missed func(handler string, field []string)) *shape.Kept {
	if len(r.Spec.Keep) == 0 {
		r.Held = dsl.Held{} // so that it is known which fields there are
	}
	sees := *h.Sees
	sees.Missed = func(field []string) { missed(h.ID, field) }
	return &sees
}

// Resolve returns a handler's patch without transformations, but with their changes of the kept part of an object. The error is that
// of a transformation, or says which fields the patch changes that are not kept; then the handler fails for good, and the patch is empty.
func (r *Rules) Resolve(o *unstructured.Unstructured, handler string, wants *dsl.Patch, generation int64, now time.Time) (*dsl.Patch, error) {
	if r.Kept == nil {
		return patch.ResolveMost(o, wants, generation, now)
	}
	kept := *r.Kept
	if r.Spec.Kept() == nil {
		kept.Reader = handler
	}
	made, err := wants, wants.LeftOut(&kept)
	if err == nil && len(wants.Transforms) > 0 {
		if made, err = patch.ResolveMost(dsl.Shown(o, &kept), wants, generation, now); err != nil {
			return made, err
		}
		err = made.LeftOut(&kept)
	}
	if err != nil {
		return dsl.NewPatch(), dsl.Permanent(fmt.Errorf("changing the object: %w", err))
	}
	return made, nil
}

// keptOf returns which parts of a resource's objects are kept; nil means all.
func keptOf(r *dsl.Resource, held dsl.Held) *shape.Kept {
	if kept := r.Kept(); kept != nil || len(held.Fields) == 0 {
		return kept
	}
	out := &shape.Kept{}
	for _, field := range held.Fields {
		out.Fields = append(out.Fields, field)
	}
	return out
}

func (r *Rules) add(h progress.Handler) {
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

// Daemon is a daemon as progress would know it.
func (r *Rules) Daemon(h *dsl.Handler) progress.Handler {
	for _, d := range r.Daemons {
		if d.Handler == h {
			return d
		}
	}
	return progress.Handler{Handler: h}
}
