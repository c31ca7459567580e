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

// Rules are derived once from a resource's handlers: what is stored on objects, and whether they need the finalizer.
type Rules struct {
	// Operator and Spec are the source of the rules. Resource is the resource's name.
	Operator *dsl.Operator
	Spec     *dsl.Resource
	Resource string
	// Readers are the handlers that run for objects. Among them, Timers are periodic; AtTimes have an `at` expression.
	Readers, Timers, AtTimes []progress.Handler
	// Daemons are the handlers that run all the time. They have no entry in the progress.
	Daemons []progress.Handler
	// Handlers are the handlers of the readers.
	Handlers []*dsl.Handler
	// Progress are the rules of the objects' progress. Schedules are those of handlers for the resource as a whole.
	Progress, Schedules progress.Rules
	// OutcomeSources are the handlers whose outcomes others read. OutcomeReaders are the handlers that read outcomes.
	OutcomeSources, OutcomeReaders []progress.Handler
	// Relates are the handlers that run for related objects.
	Relates []*dsl.Handler
	// All is the view of a whole object.
	All progress.View
	// Deletes: deletions need a reconcile, for handlers, daemons, machines or patched objects.
	Deletes bool
	// DeleteHandlers: some handler runs for a deletion. The limits count it.
	DeleteHandlers bool
	// Events: some handler runs for every event.
	Events bool
	// Finalizes: some delete handler or daemon holds its object.
	Finalizes bool
	// Digests: handlers store digests of Secrets, which need a key.
	Digests bool
	// KeepsReady: the engine keeps the condition Ready. SetsGeneration: it sets status.observedGeneration, if the CRD
	// has it.
	KeepsReady, SetsGeneration bool
	// Echoes: events of own writes need no reconcile. It is false if something must see each state of an object, or
	// reads more of it than the handlers' views.
	Echoes bool
	// Finalizer is the operator's finalizer. Prefix begins its annotations. Retry is the annotation with which a person
	// asks for a retry.
	Finalizer, Prefix, Retry string
	// Earlier are the operator's finalizers under its earlier names.
	Earlier []string
	// Held are the parts of objects in the cache. Kept are the parts that handlers may change and transformations see;
	// nil means all. In tests the cache may have more.
	Held dsl.Held
	Kept *shape.Kept
	// Names are the operator's name and its earlier ones, which are also its field managers.
	Names []string
}

// NewRules derives the rules. Key is the key of digests of Secrets. Missed, if not nil, is called for each field that a
// handler reads and does not list in dsl.Reads.
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
			out.Deletes = true // a daemon runs until its object is gone for certain
			out.Finalizes = out.Finalizes || h.Finalizes()
		case h.ResourceWide:
			out.Schedules.Handlers = append(out.Schedules.Handlers, reader)
		default:
			out.add(reader)
		}
	}
	out.OutcomeSources, out.OutcomeReaders = outcomeReaders(out.Readers)
	chooses := r.LabelSelector != "" || r.FieldSelector != ""
	out.Deletes = out.Deletes || chooses && len(r.Machines()) > 0 // the progress is removed from an object that leaves the selector
	out.Progress.Handlers, out.Progress.Annotation = out.Readers, op.StateAnnotation()
	out.Progress.Partial = r.Cache == dsl.CacheMetadata || len(r.Keep) > 0
	out.Echoes = out.echoes()
	return out
}

// echoes computes Echoes.
func (r *Rules) echoes() bool {
	beside := len(r.Timers) + len(r.AtTimes) + len(r.Daemons) + len(r.Spec.Relations()) + len(r.Spec.Machines())
	return !r.Events && beside == 0 && r.Spec.Cache != dsl.CacheLive && !r.KeepsReady && len(r.Operator.Earlier()) == 0
}

// watched returns the fields that a handler sees. Reads of other fields call missed.
func (r *Rules) watched(h progress.Handler, missed func(handler string, field []string)) *shape.Kept {
	if len(r.Spec.Keep) == 0 {
		r.Held = dsl.Held{} // so that missing fields can be told from fields that were dropped
	}
	sees := *h.Sees
	sees.Missed = func(field []string) { missed(h.ID, field) }
	return &sees
}

// Resolve returns a handler's patch with transformations replaced by their changes of the kept part of an object. It
// returns an error if a transformation fails. If the patch changes fields that are not kept, the error is permanent, and
// the patch is empty.
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
	r.Deletes = r.Deletes || r.Events || h.On(dsl.Delete) || len(h.Known.Patches) > 0 // fields of patched objects are released
	r.DeleteHandlers = r.DeleteHandlers || h.On(dsl.Delete)
	r.Finalizes = r.Finalizes || h.Finalizes()
	r.Progress.Stores = r.Progress.Stores || h.Marks()
}

// Daemon returns a daemon in the form of a handler with progress.
func (r *Rules) Daemon(h *dsl.Handler) progress.Handler {
	for _, d := range r.Daemons {
		if d.Handler == h {
			return d
		}
	}
	return progress.Handler{Handler: h}
}
