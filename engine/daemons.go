// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/children"
	"github.com/handwerk-dev/handwerk/engine/children/apply"
	"github.com/handwerk-dev/handwerk/engine/daemon"
	"github.com/handwerk-dev/handwerk/engine/inbox"
	"github.com/handwerk-dev/handwerk/engine/ops"
	"github.com/handwerk-dev/handwerk/engine/pass"
	"github.com/handwerk-dev/handwerk/engine/patch"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// newCrew prepares the daemons of a resource.
func (r *resource) newCrew() *daemon.Crew {
	e := r.engine
	var handlers []*dsl.Handler
	for _, d := range r.rules.Daemons {
		handlers = append(handlers, d.Handler)
	}
	return daemon.New(daemon.Settings{
		Resource: r.name, Handlers: handlers, Grace: e.grace(), Find: r.own.Get, Tree: r.own.Tree, Keys: r.spec.Cache == dsl.CacheLive,
		View: func(h *dsl.Handler, o *unstructured.Unstructured) string {
			return book.NewLook(o.Object).Digest(r.daemon(h).View)
		},
		Shown: r.shown, Look: r.box.Look, Equip: r.equip, Send: r.sendFor, Held: e.held, Said: e.said, Handled: e.metrics.Handled,
		Warn: func(o *unstructured.Unstructured, handler, reason, note string) {
			e.events.Warn(o, handler, reason, note)
		},
		Texts: r.texts, Log: r.log,
	})
}

// seen takes an event of the resource's own objects.
func (r *resource) seen(ev watch.Event) {
	r.engine.indexes.Shown(r.own, ev)
	if r.engine.own.has(r.own.Resource().GVR.GroupResource(), ev.Key) {
		return // what the operator keeps for itself is handled by no handler
	}
	r.box.Seen(ev)
	r.crew.Seen(ev)
}

// ends is why a term ends that is about to.
func (e *Engine) ends() dsl.Stop {
	switch {
	case e.leaving.Load():
		return dsl.StopShutdown
	case e.started.Load():
		return dsl.StopResource
	}
	return dsl.StopLeadership
}

// tend tells the object's daemons what the pass sees of it. Once the pass is through, those are started that are to run:
// the finalizer is there before.
func (p *run) tend(starts bool) {
	if len(p.r.rules.Daemons) == 0 || p.gone || p.resourceWide() {
		return
	}
	object := p.object
	if p.left != nil {
		object = p.r.shown(p.left)
	}
	p.r.crew.Tend(daemon.Sight{
		Key: p.key, UID: p.object.GetUID(), Object: object, Deleting: p.deletion != "", Starts: starts,
		Sees: func(h *dsl.Handler) (holds, known bool) {
			a := p.sees(p.r.daemon(h), dsl.Running)
			return a.Holds, a.Err == nil
		},
		About: func(h *dsl.Handler) *dsl.Subject {
			return p.subject(p.r.daemon(h), dsl.Running, book.Record{}, p.family.Reader(), p.indexes.For(h.ID, dsl.Running))
		},
		Memo: p.memory.Share,
	})
}

// daemon is a daemon's reader.
func (r *resource) daemon(h *dsl.Handler) book.Reader {
	for _, d := range r.rules.Daemons {
		if d.Handler == h {
			return d
		}
	}
	return book.Reader{Handler: h}
}

// wantsEnd reports whether the object's deletion is to wait for a daemon to end.
func (p *run) wantsEnd(d book.Reader) bool {
	if d.NoFinalizer {
		return false
	}
	a := p.sees(d, dsl.Running)
	return p.r.crew.Wants(p.key, p.object.GetUID(), d.Handler, a.Holds || a.Err != nil && p.finalizer())
}

// daemonsEnd reports whether the deletion waits for daemons to end. Delete handlers run then.
func (p *run) daemonsEnd() bool {
	return p.deletion != "" && !p.gone && p.r.crew.Holds(p.key, p.object.GetUID())
}

// equip gives a run of a daemon what it reads and acts with.
func (r *resource) equip(run daemon.Run, to *dsl.DaemonRequest) {
	e := r.engine
	told := func(deed apply.Deed, what string) {
		e.metrics.Written(r.name, ops.Other)
		run.Log.Info(string(deed) + " " + what)
	}
	to.Kept = r.spec.Kept()
	to.Children = children.Children{Family: r.family, Key: run.Key, Owner: run.Newest, Log: run.Log}
	to.Indexes, to.OperatorMemo, to.Events = e.indexes.Live(), &e.memo, e.events.Reporter(run.Object, run.Handler.ID, run.Span.Over)
	to.Client = e.others.For(pass.Client{
		Span: run.Span,
		Wrote: func(deed apply.Deed, gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
			r.announce(inbox.Key{}, gvr, o)
			told(deed, apply.PlaceOf(o).People())
		},
		Deleted: func(kind string, _ schema.GroupVersionResource, key cache.ObjectName) {
			told(apply.Deleted, kind+" "+key.String())
		},
	})
}

// sendFor sends what a daemon wants of its object, on the way of what handlers want. Passes wait until the cache shows it.
func (r *resource) sendFor(ctx context.Context, w daemon.Write) (sent daemon.Sent, err error) {
	wants, err := r.conditions.Offered(ctx, w.Patch, nil)
	if err != nil {
		return sent, err
	}
	base := w.Object
	if r.rules.Ledger.Partial || len(wants.Retired) > 0 || len(wants.Transforms) > 0 && !r.form.Whole() {
		if base, err = r.live(ctx, w.Key, w.Object.GetUID()); err != nil {
			return sent, err
		}
	}
	target := r.target(base, r.own.Resource().Generation(w.Object), time.Now())
	target.Ignored = w.Ignored
	var wrong error
	sent.Result, err = patch.Write(ctx, target, func(live *unstructured.Unstructured) (made *dsl.Patch, _ patch.Marks) {
		sent.On, sent.Contended = live, sent.Contended || live != base
		made, wrong = patch.ResolveMost(live, wants, target.Generation, target.Now)
		return made, patch.Marks{Locked: true}
	})
	if err == nil {
		err = wrong
	}
	r.wrote(sent.Result)
	r.dropped(func() logr.Logger { return w.Log }, sent.Result)
	return sent, err
}

// wrote counts a write to an object of the resource that no pass has made, and has the next pass over it wait for it.
func (r *resource) wrote(result patch.Result) {
	r.engine.metrics.Wrote(r.name, result.Status, result.Whole)
	if o := result.Object; result.Status || result.Whole {
		r.box.Expect(inbox.Write{Cache: r.own, Key: cache.MetaObjectToName(o), UID: o.GetUID(), Version: o.GetResourceVersion(), Own: true})
		r.announce(cache.MetaObjectToName(o), r.own.Resource().GVR, o)
	}
}
