// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/shape"
	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/children"
	"github.com/handwerk-dev/handwerk/engine/children/apply"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/reconcile"
	"github.com/handwerk-dev/handwerk/engine/reconcile/daemon"
)

// newDaemons returns the manager of a resource's daemons.
func (r *resource) newDaemons(s *reconcile.Controller) *daemon.Manager {
	e := r.engine
	var handlers []*dsl.Handler
	for _, d := range s.Rules.Daemons {
		handlers = append(handlers, d.Handler)
	}
	return daemon.New(daemon.Settings{
		Resource: r.name, Handlers: handlers, Grace: e.grace(), Cache: r.own, Keys: r.spec.Cache == dsl.CacheLive, Host: daemonHost{r, s},
		Paused: func(o metav1.Object) bool { return s.Pauses.Of(o) != nil },
		Texts:  r.texts, Metrics: e.metrics, Events: e.events, Log: r.log,
	})
}

// daemonHost implements [daemon.Host].
type daemonHost struct {
	resource   *resource
	controller *reconcile.Controller
}

// Shown returns a written object in the form of the cache.
func (h daemonHost) Shown(o *unstructured.Unstructured) *unstructured.Unstructured {
	return h.controller.Writer.Shown(o)
}

// View returns a digest of a daemon's view of an object.
func (h daemonHost) View(of *dsl.Handler, o *unstructured.Unstructured) string {
	return progress.NewSnapshot(o.Object).Digest(h.controller.Rules.Daemon(of).View)
}

// Enqueue queues an object for a reconcile.
func (h daemonHost) Enqueue(key cache.ObjectName) { h.resource.inbox.Enqueue(key) }

// Held reports whether this process may write.
func (h daemonHost) Held(ctx context.Context) bool { return h.resource.Held(ctx) }

// Logged reports whether one line of the log stands for all errors of this kind.
func (h daemonHost) Logged(err error) bool { return h.resource.Logged(err) }

// OnEvent handles an event of the resource's own objects.
func (r *resource) OnEvent(ev watch.Event) {
	r.engine.indexes.OnEvent(r.own, ev)
	if r.engine.server.own.has(r.own.Resource().GVR.GroupResource(), ev.Key) {
		return // no handler gets objects that the operator keeps for itself
	}
	r.inbox.OnEvent(ev)
	r.daemons.OnEvent(ev)
}

// Grant implements [source.Handler].
func (r *resource) Grant() { r.inbox.Grant() }

// Equip adds children, indexes, Events and a client to the request of a daemon's run.
func (h daemonHost) Equip(run daemon.Run, to *dsl.DaemonRequest) {
	r := h.resource
	e := r.engine
	to.Kept = r.spec.Kept()
	if sees := h.controller.Rules.Daemon(run.Handler).Sees; sees != nil {
		to.Kept, to.Object, to.Live = sees, dsl.Shown(to.Object, sees), limitedLive{to.Live, sees}
	}
	to.Children = children.Children{Family: r.family, Key: run.Key, Owner: run.Daemon, Log: run.Log}
	to.Indexes, to.OperatorMemo, to.Events = e.indexes.Live(), &e.memo, e.events.Reporter(run.Object, run.Handler.ID, run.Span)
	to.Client = e.others.For(run.Span, daemonWrites{r, run.Log})
}

// limitedLive limits a daemon's view of its object to the fields that it declares.
type limitedLive struct {
	dsl.Live
	sees *shape.Kept
}

// Current returns these fields.
func (s limitedLive) Current() *unstructured.Unstructured { return dsl.Shown(s.Live.Current(), s.sees) }

// daemonWrites notes what a daemon writes with its client.
type daemonWrites struct {
	r   *resource
	log logr.Logger
}

// Wrote notes a write.
func (d daemonWrites) Wrote(operation apply.Operation, gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
	d.r.OnWrite(inbox.Key{}, gvr, o)
	d.say(operation, ownership.PlaceOf(o).Describe())
}

// Deleted notes a deletion.
func (d daemonWrites) Deleted(kind string, _ schema.GroupVersionResource, key cache.ObjectName) {
	d.say(apply.Deleted, kind+" "+key.String())
}

func (d daemonWrites) say(operation apply.Operation, what string) {
	d.r.engine.metrics.Written(d.r.name, ops.Other)
	d.log.Info(string(operation) + " " + what)
}

// Send sends a daemon's changes of its object, as handlers' changes are sent. Reconciles wait until the cache shows the
// write.
func (h daemonHost) Send(ctx context.Context, w daemon.Write) (sent daemon.Sent, err error) {
	r, writer := h.resource, h.controller.Writer
	wants, err := writer.Conditions.Offered(ctx, w.Patch, nil)
	if err != nil {
		return sent, err
	}
	base := w.Object
	if len(wants.Retired) > 0 { // managedFields, which caches lack, say who set them
		if base, err = writer.Live(ctx, w.Key, w.Object.GetUID()); err != nil {
			return sent, err
		}
	}
	target := writer.Target(base, r.own.Resource().Generation(w.Object), time.Now())
	target.Ignored = w.Ignored
	for {
		made, wrong := writer.Rules.Resolve(target.Object, w.Handler, wants, target.Generation, target.Now)
		sent.On = target.Object
		if sent.Result, err = patch.Write(ctx, target, made, patch.Marks{}); err == nil {
			err = wrong
		}
		if sent.Conflict == nil {
			break
		}
		target, sent.Contended = target.After(sent.Result), true
	}
	r.wrote(sent.Result)
	if len(sent.Dropped) > 0 {
		writer.Dropped(sent.Result).Log(w.Log)
	}
	return sent, err
}

// wrote counts a write that no reconcile has made, and makes the object's next reconcile wait for its event.
func (r *resource) wrote(result patch.Result) {
	r.engine.metrics.Wrote(r.name, result.Status, result.Whole)
	if o := result.Object; result.Status || result.Whole {
		r.inbox.Expect(inbox.Write{Cache: r.own, Key: cache.MetaObjectToName(o), UID: o.GetUID(), Version: o.GetResourceVersion(), Own: true})
		r.OnWrite(cache.MetaObjectToName(o), r.own.Resource().GVR, o)
	}
}
