// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/inbox"
	"github.com/handwerk-dev/handwerk/engine/ops"
)

// wrote notes a child as it was written: the next pass waits for it, and its event is no news. That
// of an unowned one never is. There is no feed for a child of a kind that is not declared.
func (p *pass) wrote(f *feed.Feed, gvr schema.GroupVersionResource, result *unstructured.Unstructured) {
	p.hold(idOf(gvr, nameOf(result)), result)
	p.r.engine.metrics.Written(p.r.name, ops.Child)
	p.announce(gvr, result)
	if f == nil {
		p.awaitShown(gvr, result)
		return
	}
	p.await(f, result)
	if !p.owner().Forgets(result) {
		p.r.box.Echo(p.key, result.GetUID(), result.GetResourceVersion())
	}
}

// wroteOther notes a write to an object that is no child; the next pass waits for it where the
// resource's own informers show it.
func (p *pass) wroteOther(gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
	p.r.engine.metrics.Written(p.r.name, ops.Other)
	p.announce(gvr, o)
	p.awaitShown(gvr, o)
}

// announce makes the passes over an object that the operator handles, too, wait for what this one wrote to it.
func (p *pass) announce(gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
	for _, r := range p.r.engine.resources {
		key := nameOf(o)
		if r == p.r && key == p.key || !r.own.Serves(gvr) {
			continue
		}
		if h := r.own.Informer(key.Namespace); h != nil && h.Selects(key, o.GetLabels()) {
			r.box.Expect(inbox.Write{Cache: r.own, Key: key, UID: o.GetUID(), Version: o.GetResourceVersion(), Own: true})
		}
	}
}

// awaitShown is await for an object that the resource's informers may show.
func (p *pass) awaitShown(gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
	for _, f := range p.r.feeds() {
		h := f.Informer(o.GetNamespace())
		if f.Resource().GVR == gvr && h != nil && h.Selects(nameOf(o), o.GetLabels()) {
			p.await(f, o)
		}
	}
}

// deletedOther is wroteOther for a deletion: what the cache still has is waited for.
func (p *pass) deletedOther(gvr schema.GroupVersionResource, key cache.ObjectName) {
	p.r.engine.metrics.Written(p.r.name, ops.Other)
	for _, f := range p.r.feeds() {
		if o, found := f.Get(key); found && f.Resource().GVR == gvr {
			p.awaitGone(f, key, o.GetUID())
		}
	}
}
