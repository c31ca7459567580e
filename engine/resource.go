// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/cache/index"
	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/cache/related"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/cache/tombstone"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/children"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/reconcile"
	"github.com/handwerk-dev/handwerk/engine/reconcile/attempt"
	"github.com/handwerk-dev/handwerk/engine/reconcile/daemon"
	"github.com/handwerk-dev/handwerk/engine/reconcile/history"
)

// resource serves one watched resource: its sources, its queue and the state of its objects. Resources share only
// informers, so a slow one does not slow others.
type resource struct {
	engine *Engine
	spec   *dsl.Resource
	name   string
	log    logr.Logger
	// controller serves the resource's reconciles.
	controller *reconcile.Controller
	// own is the source of the objects. inbox keeps their changes between reconciles.
	own   *source.Source
	inbox *inbox.Inbox[reconcile.StoredState]
	// family, related, indexes and daemons serve objects with their children, related objects, indexes and daemons.
	// tombstones confirms the deletion of objects without a deletion event.
	family     *children.Family
	related    *related.Index
	indexes    *index.Readers
	tombstones *tombstone.Confirmer
	daemons    *daemon.Manager
	// schemas counts changes of the resource's CRD, if CRDs are watched.
	schemas atomic.Int64
	// texts bounds the log of errors that many objects share.
	texts *attempt.Texts
}

// newResource returns a resource. Nothing runs yet.
func newResource(e *Engine, spec *dsl.Resource) *resource {
	r := &resource{engine: e, spec: spec, name: spec.Name.String(), log: e.log.WithValues("resource", spec.Name.String())}
	rules := reconcile.NewRules(e.op, spec, e.digests, e.missed(spec))
	form := cached.FormOf(spec.Cache, rules.Held)
	r.texts = attempt.NewTexts(r.log)
	r.inbox = inbox.New[reconcile.StoredState](r)
	r.own = e.sources.New(source.Settings{
		Name: spec.Name, Log: r.log, Handler: r,
		Source:  watch.Source{LabelSelector: spec.LabelSelector, FieldSelector: spec.FieldSelector, Form: form},
		Patches: rules.Finalizes || rules.Progress.Stores, Gets: rules.Deletes,
	})
	r.family = children.New(children.Settings{
		Operator: e.op, Resource: spec, Handlers: rules.Handlers, Log: r.log, Metrics: e.metrics, Events: e.events, Catalog: e.catalog, Renewer: e.others.Renewer,
		Inbox: r.inbox, Register: e.register, Limits: e.limits.of(spec), Ending: &e.ending, Own: r.own, Sources: e.sources, Host: r,
	})
	r.indexes = e.indexes.Readers(r.inbox)
	r.related = related.New(related.Settings{
		Resource: spec, Own: r.own, Sources: e.sources, Inbox: r.inbox, All: rules.All, Log: r.log,
	})
	r.tombstones = tombstone.New(tombstone.Settings{
		LabelSelector: spec.LabelSelector, FieldSelector: spec.FieldSelector, Log: r.log, Resource: lookups{r},
	})
	r.controller = r.newController(rules, form)
	return r
}

// missed returns the callback for fields that handlers read and do not list; nil outside of tests.
func (e *Engine) missed(spec *dsl.Resource) func(handler string, field []string) {
	if e.settings.Missed == nil {
		return nil
	}
	return func(handler string, field []string) {
		e.settings.Missed(spec.Name.String(), handler, dsl.Path(field).String())
	}
}

// newController returns the controller of the resource.
func (r *resource) newController(rules reconcile.Rules, form cached.Form) *reconcile.Controller {
	e := r.engine
	s := &reconcile.Controller{
		Rules: rules, Host: r, Own: r.own, Inbox: r.inbox, Family: r.family, Relations: r.related, Indexes: r.indexes, Tombstones: r.tombstones,
		Machines: reconcile.NewMachines(e.op, r.spec, e.metrics), Running: reconcile.NewRunning(r.log), Others: &e.others,
		Trail: e.trail, Budget: e.budget, Pauses: e.pauses.board, Limits: e.limits.of(r.spec), Memo: &e.memo, Tracer: e.settings.Tracer,
		Observer: &reconcile.Observer{
			Resource: r.name, Log: r.log, Events: e.events, Metrics: e.metrics, Texts: r.texts, History: e.history, Questions: &reconcile.Questions{},
		},
		Subhandlers: attempt.SubhandlerSettings{Resource: r.name, Metrics: e.metrics, Errors: e.faults, Texts: r.texts},
	}
	s.Writer = reconcile.NewWriter(reconcile.Writer{
		Rules: &s.Rules, Host: r, Own: r.own, Form: form, Clients: e.server, Renamer: e.renamer, Managers: e.names.managers(), Markers: e.names.markers(), Feeds: e.sources,
		Schemas:    &r.schemas,
		Conditions: reconcile.NewConditionsSchema(r.log, e.catalog, r.own, e.outages, r.spec.Cache == dsl.CacheMetadata),
	})
	r.daemons = r.newDaemons(s)
	s.Daemons = r.daemons
	return s
}

// Keeps implements [inbox.Owner]. It reports whether an object that is gone needs a reconcile: if handlers or daemons
// need it, or if the object had the finalizer or an inventory of children. A live cache shows neither, so each owner of
// children gets one.
func (r *resource) Keeps(o *cached.Object) bool {
	rules := &r.controller.Rules
	return rules.Deletes || r.spec.Owner() && (r.spec.Cache == dsl.CacheLive || slices.Contains(o.GetFinalizers(), rules.Finalizer) || r.family.HasInventory(o))
}

// Leaves implements [inbox.Owner]. It reports whether an object only left the scope or a selector with the operator's
// finalizer on it: an object with a finalizer has a deletion time before it is deleted. A live cache does not show
// finalizers.
func (r *resource) Leaves(ev watch.Event) bool {
	rules := &r.controller.Rules
	if r.spec.Cache == dsl.CacheLive {
		return ev.Unseen && r.Keeps(ev.Object)
	}
	return (ev.Unseen || ev.Object.GetDeletionTimestamp() == nil) && slices.Contains(ev.Object.GetFinalizers(), rules.Finalizer)
}

// Sources returns the resource's sources, its own first, without those of kinds that it no longer owns. This and the
// following methods implement [controller].
func (r *resource) Sources() []*source.Source {
	out := append([]*source.Source{r.own}, r.family.Kinds()...)
	for _, f := range r.related.Sources {
		out = append(out, f)
	}
	return out
}

// Begin begins a term of leadership. Every object gets a reconcile. The state of an earlier term is dropped, because
// another process may have worked since.
func (r *resource) Begin() (workers int, work func(context.Context)) {
	r.family.Clear()
	r.tombstones.Clear()
	r.related.Clear()
	r.indexes.Clear()
	r.controller.Machines.Begin()
	r.texts.Begin()
	r.engine.history.Clear(r.name)
	q := queue.New(r.name, r.engine.metrics.Queues(), func(key cache.ObjectName) string { return key.Namespace })
	r.inbox.Begin(q)
	for _, h := range r.controller.Rules.Schedules.Handlers {
		q.Add(reconcile.ScheduleKey(h.ID), queue.Due)
	}
	for _, o := range r.own.Objects("") {
		q.Add(cache.MetaObjectToName(o), queue.Backlog)
	}
	var once sync.Once
	var looking sync.WaitGroup
	return r.workers(), func(ctx context.Context) {
		r.family.Retired.Begin(ctx)
		r.daemons.Begin(ctx)
		once.Do(func() {
			if r.spec.Cache != dsl.CacheMetadata { // a metadata cache does not show conditions, so the engine writes none
				looking.Go(func() { r.controller.Writer.Conditions.WarnOfMissing(ctx) })
			}
		})
		r.controller.Work(ctx, q)
		r.daemons.Wait()
		looking.Wait()
	}
}

// workers returns the number of workers in a term.
func (r *resource) workers() int { return cmp.Or(max(r.spec.Workers, 0), dsl.DefaultWorkers) }

// End ends the term. Workers take no new keys.
func (r *resource) End() {
	r.daemons.End(r.engine.phase.why())
	r.inbox.End()
	r.texts.End()
	r.engine.budget.Drop(r.name)
	r.controller.Machines.End()
	r.family.Retired.End()
}

// Busy returns the names of running handlers, with their objects.
func (r *resource) Busy() []string { return append(r.controller.Running.List(), r.daemons.Busy()...) }

// OnWrite makes reconciles of other resources wait until their caches show a write to an object that they handle, too.
func (r *resource) OnWrite(by inbox.Key, gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
	key := cache.MetaObjectToName(o)
	for other := range r.engine.resources.All {
		if other == r && key == by || !other.own.Serves(gvr) {
			continue
		}
		if h := other.own.Informer(key.Namespace); h != nil && h.Selects(key, o.GetLabels()) {
			other.inbox.Expect(inbox.Write{Cache: other.own, Key: key, UID: o.GetUID(), Version: o.GetResourceVersion(), Own: true})
		}
	}
}

// Held reports whether this process may write.
func (r *resource) Held(ctx context.Context) bool { return r.engine.elector.Sure(ctx) }

// Read reads an object from the API server.
func (r *resource) Read(ctx context.Context, gvr schema.GroupVersionResource, key cache.ObjectName) (*unstructured.Unstructured, error) {
	return r.engine.server.Read(ctx, gvr, key)
}

// Client reaches a resource, in a namespace unless that is empty.
func (r *resource) Client(gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	return r.engine.server.Client(gvr, namespace)
}

// Refusal returns the error for a write to one of the operator's own objects, nil for other objects.
func (r *resource) Refusal(gvr schema.GroupVersionResource, key cache.ObjectName) error {
	return r.engine.server.own.refusal(gvr, key)
}

// Logged reports whether one line of the log stands for all errors of this kind.
func (r *resource) Logged(err error) bool { return r.engine.faults.Logged(err) }

// Covered reports whether an error comes from an outage of the API server that the log names.
func (r *resource) Covered(err error) bool { return r.engine.faults.Covered(err) }

// Unreached reports whether an attempt failed because of such an outage.
func (r *resource) Unreached(err error) bool { return r.engine.faults.Unreached(err) }

// Keyed waits for the key of the digests that handlers store for Secrets. The error says why the key cannot be read or
// made. No reconcile begins then, because no state of a Secret is stored without a key.
func (r *resource) Keyed(ctx context.Context) error {
	return r.engine.key.Ready(ctx)
}

// IsKey reports whether an object is the Secret with that key, which no handler sees.
func (r *resource) IsKey(namespace, name string) bool {
	return r.spec.OfSecrets() && r.engine.key.Is(namespace, name)
}

// Refused notes how a handler, or a request of the reconcile itself, ended: with a missing right, without an answer, or
// otherwise.
func (r *resource) Refused(key cache.ObjectName, handler string, err error) {
	missing := err != nil && apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
	again := missing || source.IsUnanswered(err)
	if r.inbox.SetRejected(key, handler, again) && !again && r.engine.access.HasMissing() {
		r.engine.access.Retry()
	}
	if missing && handler == reconcile.Itself {
		r.own.Suspect(key.Namespace)
	}
}

// Echoed implements [inbox.Owner].
func (r *resource) Echoed(key inbox.Key, o *cached.Object) {
	r.engine.history.Left(history.ID{Resource: r.name, Key: key}, o)
}

// LogWait implements [inbox.Owner]. It runs beside reconciles.
func (r *resource) LogWait(w inbox.Wait) {
	log := r.log
	if !reconcile.IsSchedule(w.Key) {
		log = log.WithValues("namespace", w.Key.Namespace, "name", w.Key.Name)
	}
	if w.Handler != "" {
		log = log.WithValues("handler", w.Handler)
	}
	if w.Over {
		log.Info("no longer "+w.Reason, "lasted", w.Lasted.Round(time.Second).String())
		return
	}
	log.Info(w.Reason)
}
