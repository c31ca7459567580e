// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/attempt"
	"github.com/handwerk-dev/handwerk/engine/cached"
	"github.com/handwerk-dev/handwerk/engine/children"
	"github.com/handwerk-dev/handwerk/engine/daemon"
	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/inbox"
	"github.com/handwerk-dev/handwerk/engine/index"
	"github.com/handwerk-dev/handwerk/engine/pass"
	"github.com/handwerk-dev/handwerk/engine/queue"
	"github.com/handwerk-dev/handwerk/engine/related"
	"github.com/handwerk-dev/handwerk/engine/tombstone"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// resource is one watched resource at work: its feeds, its queue and what it remembers of its
// objects. Resources share nothing but informers, so a slow one starves nobody.
type resource struct {
	engine *Engine
	spec   *dsl.Resource
	name   string
	rules  pass.Rules
	log    logr.Logger
	own    *feed.Feed
	form   cached.Form
	// shown returns an object of the server as the form shows it.
	shown   func(*unstructured.Unstructured) *unstructured.Unstructured
	family  *children.Family
	related *related.Index
	indexes *index.Readers
	busy    *pass.Running
	// conditions knows whether the resource has any.
	conditions *pass.ConditionsSchema
	// schemas counts changes of the resource's CRD, as far as CRDs are watched.
	schemas atomic.Int64
	// ready: the engine keeps the condition Ready. readyTold and readyForeign: what the log says of that once was said.
	ready                   bool
	readyTold, readyForeign atomic.Bool

	// box keeps what comes up for objects between passes.
	box *inbox.Box[pass.Memory]
	// fates finds out what became of objects that nobody saw go; departed sees them off.
	fates    *tombstone.Finder
	departed pass.Departures
	// crew runs the daemons.
	crew *daemon.Crew
	// machines are those that the resource has.
	machines *pass.Machines
	parts    attempt.SubhandlerSettings
	// texts are those with which objects fail, as far as the log has them.
	texts *attempt.Texts
}

// newResource prepares a resource; nothing runs yet.
func newResource(e *Engine, spec *dsl.Resource) *resource {
	r := &resource{
		engine: e, spec: spec, name: spec.Name.String(), rules: pass.NewRules(e.op, spec, e.digests),
		log: e.log.WithValues("resource", spec.Name.String()), ready: spec.KeepsReady(),
	}
	r.texts = attempt.NewTexts(r.log)
	r.form = cached.FormOf(spec.Cache, e.op.Held(spec))
	r.shown = r.form.Shows()
	r.box = inbox.New[pass.Memory](r.tombstone, r.sayWait)
	r.own = e.feeds.New(feed.Settings{
		Name: spec.Name, Log: r.log, On: r.seen, Granted: r.box.Grant,
		Source: watch.Source{
			LabelSelector: spec.LabelSelector, FieldSelector: spec.FieldSelector,
			Form: r.form,
		},
		Patches: r.rules.Finalizes || r.rules.Ledger.Stores, ObservedGeneration: spec.KeepsGeneration(),
		Gets: r.rules.Deletes,
	})
	r.family = children.New(children.Settings{
		Operator: e.op, Resource: spec, Handlers: r.rules.Handlers, Log: r.log, Metrics: e.metrics, Events: e.events, Catalog: e.catalog,
		Box: r.box, Own: r.own, NewFeed: e.feeds.New, Borrow: e.feeds.Borrow, Feeds: r.Feeds, Client: e.writer, Read: e.reader, Announce: r.announce, Register: e.register, Ending: &e.ending,
		Extinct: e.feeds.Extinct, Refuses: e.own.refusal,
	})
	r.indexes = e.indexes.Readers(r.box.IndexSeen)
	r.related = related.New(related.Settings{
		Resource: spec, Own: r.own, NewFeed: e.feeds.New, Inbox: r.box, All: r.rules.All, Log: r.log,
	})
	r.fates = tombstone.New(tombstone.Settings{
		LabelSelector: spec.LabelSelector, FieldSelector: spec.FieldSelector, Log: r.log,
		Read: func(ctx context.Context, key cache.ObjectName) (*unstructured.Unstructured, error) {
			return e.reader(ctx, r.own.Resource().GVR, key)
		},
		List: func(ctx context.Context, namespace string, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
			return e.writer(r.own.Resource().GVR, namespace).List(ctx, options)
		},
		Absent: r.own.Absent, Lacks: e.feeds.Scope().Lacks, NamespaceGone: e.feeds.NamespaceGone,
	})
	r.crew = r.newCrew()
	r.departed = pass.Departures{DepartedSettings: pass.DepartedSettings{
		Deletes: r.rules.Deletes, Events: r.rules.Events, Own: r.own, Fates: r.fates, Family: r.family, Related: r.related, Indexes: r.indexes,
		Gone: r.crew.Gone, Refused: r.passRefused, Pass: r.passGone,
	}}
	r.machines = pass.NewMachines(e.op, spec, e.metrics, e.events)
	r.parts = attempt.SubhandlerSettings{Resource: r.name, Handled: e.metrics.Handled, Said: e.said, Unreached: e.unreached, Texts: r.texts}
	r.busy = pass.NewRunning(r.log)
	r.conditions = pass.NewConditionsSchema(r.log, func(ctx context.Context) (bool, error) {
		return e.catalog.Conditions(ctx, r.own.Resource())
	}, e.outages.Away)
	return r
}

// tombstone reports whether an object that is gone gets a pass: handlers or daemons need it, or the object had the finalizer, by
// which the engine holds owners until their children are deleted or released, or a record of children. A live cache shows neither,
// so there each owner gets the pass.
func (r *resource) tombstone(o *cached.Object) bool {
	return r.rules.Deletes || r.spec.Owner() && (r.spec.Cache == dsl.CacheLive || slices.Contains(o.GetFinalizers(), r.rules.Finalizer) || r.family.Recorded(o))
}

// Name is the resource as its operator declares it. With the methods that follow, it takes part in the roster; see
// [controllers.Resource].
func (r *resource) Name() string { return r.name }

// Feeds are the resource's feeds, its own first, but for those of kinds that it does not own any more.
func (r *resource) Feeds() []*feed.Feed {
	out := append([]*feed.Feed{r.own}, r.family.Kinds()...)
	for _, f := range r.related.Feeds {
		out = append(out, f)
	}
	return out
}

// Begin begins a term of leadership: every object that is there is looked at. What an earlier term remembered is void,
// for another process may have worked since.
func (r *resource) Begin() (workers int, work func(context.Context)) {
	r.family.Clear()
	r.fates.Clear()
	r.related.Clear()
	r.indexes.Clear()
	r.machines.Begin()
	r.texts.Begin()
	q := queue.New(r.name, r.engine.metrics.Queues(), func(key cache.ObjectName) string { return key.Namespace })
	r.box.Begin(q)
	for _, h := range r.rules.Schedules.Readers {
		q.Add(scheduleKey(h.ID), queue.Due)
	}
	for _, o := range r.own.Objects("") {
		q.Add(cache.MetaObjectToName(o), queue.Backlog)
	}
	w := pass.Worker{
		Pass: r.pass, Passed: r.engine.trim.Passed, Busy: r.busy, Box: r.box, Refused: r.passRefused, Said: r.engine.said,
		Texts: r.texts, Log: r.log,
	}
	return cmp.Or(max(r.spec.Workers, 0), dsl.DefaultWorkers), func(ctx context.Context) {
		r.family.Retired.Begin(ctx)
		r.crew.Begin(ctx)
		w.Work(ctx, q)
		r.crew.Wait()
	}
}

// End ends the term: no key is taken any more.
func (r *resource) End() {
	r.crew.End(r.engine.ends())
	r.box.End()
	r.texts.End()
	r.engine.budget.Drop(r.name)
	r.machines.End()
	r.family.Retired.End()
}

// Busy names the handlers that run at this moment, with their objects.
func (r *resource) Busy() []string { return append(r.busy.List(), r.crew.Busy()...) }

// How many times as much memory as its object's JSON a pass takes: as trees, and for what handlers may make of it where that is
// not known yet.
const (
	asTrees   = 8
	asUnknown = 32
)

// share takes the memory that a pass over a key's object takes, nil where others hold it: the key is queued when they have
// returned it.
func (r *resource) share(key cache.ObjectName, m *pass.Memory) *children.Share {
	bytes := 0
	if o, found := r.own.Get(key); found {
		if bytes = asUnknown * o.Length(); m != nil && m.Seen {
			bytes = asTrees*o.Length() + m.Grown
		}
	}
	who := children.Who{Resource: r.name, Namespace: key.Namespace, Name: key.Name}
	return r.engine.budget.Take(who, bytes, func() { r.box.Look(key) })
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

// announce makes the passes over an object that the operator handles, too, wait for what one over another has
// written to it.
func (r *resource) announce(by inbox.Key, gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
	key := cache.MetaObjectToName(o)
	for other := range r.engine.resources.All {
		if other == r && key == by || !other.own.Serves(gvr) {
			continue
		}
		if h := other.own.Informer(key.Namespace); h != nil && h.Selects(key, o.GetLabels()) {
			other.box.Expect(inbox.Write{Cache: other.own, Key: key, UID: o.GetUID(), Version: o.GetResourceVersion(), Own: true})
		}
	}
}
