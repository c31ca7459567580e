// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/access"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/catalog"
	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/feeds"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// newFeeds prepares what makes the feeds.
func (e *Engine) newFeeds() *feeds.Factory {
	common := feed.Settings{Catalog: e.catalog, Watches: e.watches, Metadata: e.clients.Metadata, Outages: e.outages, Log: e.log}
	common.Source.Manager, common.Source.Vouches, common.Source.Vouched = e.op.Name, e.op.StateAnnotation(), book.UnsignedMark
	return feeds.New(feeds.Settings{
		Common: common, Namespaces: e.op.Scope.Namespaces, CRDSeen: e.crdSeen, ScopeChanged: func() { e.access.Wake() },
		Working: func() (out []*feed.Feed) {
			for r := range e.resources.All {
				out = append(out, r.Feeds()...)
			}
			return out
		},
	})
}

// crdSeen takes an event of a CRD.
func (e *Engine) crdSeen(ev watch.Event) {
	for r := range e.resources.All {
		if !ev.Initial && r.own.Resource().GVR.GroupResource().String() == ev.Key.Name {
			r.schemas.Add(1)
		}
	}
	e.access.Wake()
	e.recheck.CRDChanged()
}

// watchChanged is called when an informer's state has changed: perhaps what it watches has come.
func (e *Engine) watchChanged(src watch.Source, state watch.State) {
	e.feeds.WatchChanged(src.GVR)
	for r := range e.resources.All {
		if state.Blind {
			r.box.WakeAll()
		}
		if state.Synced {
			r.related.Listed(src.GVR)
		}
	}
	e.access.Wake()
	e.recheck.Wake()
}

// watched returns a feed whose cache has every object of the resource in the namespace, whole;
// nil when there is none.
func (e *Engine) watched(gvr schema.GroupVersionResource, namespace string) *feed.Feed {
	for r := range e.resources.All {
		for _, f := range r.Feeds() {
			if f.Whole(gvr, namespace) {
				return f
			}
		}
	}
	return nil
}

// checked yields what is served of the resources of which expressions speak that can be checked, by the names
// that the operator has for them.
func (e *Engine) checked(yield func(dsl.ResourceName, catalog.Resource) bool) {
	for r := range e.resources.All {
		if !r.spec.Checked() {
			continue
		}
		for _, f := range r.Feeds() {
			if f.Known() && !yield(f.Name(), f.Resource()) {
				return
			}
		}
	}
}

// newAccess prepares what asks for the rights that feeds do not ask for themselves.
func (e *Engine) newAccess() *access.Monitor {
	s := access.Settings{
		Operator: e.op, Resources: e.specs, Catalog: e.catalog, Reviews: e.clients.Kubernetes.AuthenticationV1(), Log: e.log,
		Askers: func(yield func(access.Asker) bool) {
			for _, f := range e.feeds.All() {
				if !yield(f) {
					return
				}
			}
		},
		Given: func() {
			for r := range e.resources.All {
				r.box.Grant()
			}
		},
	}
	if in := e.feeds.Scope(); in.Live() {
		s.Namespaces = func() []string {
			names, _ := in.Names(true)
			return names
		}
	}
	return access.New(s)
}
