// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/access"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/catalog"
	"github.com/handwerk-dev/handwerk/engine/gone"
	"github.com/handwerk-dev/handwerk/engine/rights"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// newFeed returns a feed that is not running yet.
func (e *Engine) newFeed(name dsl.ResourceName, log logr.Logger, on func(watch.Event)) *feed {
	return &feed{
		name: name, on: on, log: log, catalog: e.catalog, watches: e.watches, scope: e.scope,
		metadata: e.clients.metadata, missing: e.wantCRDs, away: e.outages.Away, covers: e.outages.Covers, wake: make(chan struct{}, 1),
		handles: map[string]*watch.Handle{}, ledgers: map[string]*ledger{}, denials: map[string]*denial{}, owed: map[string]bool{},
		phase: phaseStarting, settled: make(chan struct{}),
		source: watch.Source{Manager: e.op.Name, Vouches: e.op.StateAnnotation(), Vouched: book.UnsignedMark},
	}
}

// engineFeeds prepares the feeds of the engine itself. They watch metadata alone, cluster-wide.
func (e *Engine) engineFeeds() {
	everywhere := newScope(nil)
	if e.scope.live {
		e.namespaces = e.newFeed(dsl.ResourceName{Resource: "namespaces", Version: "v1"}, e.log.WithValues("resource", "namespaces"), e.scope.seen)
		e.namespaces.source.Profile = dsl.CacheLive
		e.namespaces.scope = everywhere
		e.namespaces.ran, e.namespaces.also = e.scope.sync, e.scope.confirm
		e.scope.feed, e.scope.ask = e.namespaces, e.namespaceGone
	}
	crds := dsl.ResourceName{Resource: "customresourcedefinitions", Version: "v1", Group: "apiextensions.k8s.io"}
	e.crds = e.newFeed(crds, e.log.V(1).WithValues("resource", crds.String()), func(ev watch.Event) {
		e.crdChanged(ev)
		e.catalog.Invalidate()
		e.access.Wake()
		for _, f := range e.feeds() {
			if f.concerns(ev.Key.Name) {
				f.heard(ev)
			} else {
				f.nudge()
			}
		}
		e.recheck.CRDChanged()
	})
	e.crds.source.Profile = dsl.CacheLive
	e.crds.scope = everywhere
}

// crdChanged tells the resource whose CRD has changed.
func (e *Engine) crdChanged(ev watch.Event) {
	for _, r := range e.resources {
		if !ev.Initial && r.own.resource().GVR.GroupResource().String() == ev.Key.Name {
			r.schemas.Add(1)
		}
	}
}

// feeds are all that run from the start.
func (e *Engine) feeds() []*feed {
	var out []*feed
	if e.namespaces != nil {
		out = append(out, e.namespaces)
	}
	for _, r := range e.resources {
		out = append(out, r.feeds()...)
	}
	return out
}

// nudge makes every feed look again.
func (e *Engine) nudge() {
	for _, f := range e.feeds() {
		f.nudge()
	}
	e.access.Wake()
}

// watchChanged is called when an informer's state has changed: perhaps what it watches has come.
func (e *Engine) watchChanged(src watch.Source, state watch.State) {
	for _, f := range append(e.feeds(), e.crds) {
		if f.watching(src.GVR) {
			f.nudge()
		}
	}
	for _, r := range e.resources {
		if state.Blind {
			r.wakeAll()
		}
		if state.Synced {
			r.relatedListed(src.GVR)
		}
	}
	e.access.Wake()
	e.recheck.Wake()
}

// namespaceGone asks for a namespace and reports whether the answer says that it is gone, or else why
// that cannot be said; nil when it is there.
func (e *Engine) namespaceGone(ctx context.Context, name string) (bool, error) {
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	_, err := e.clients.metadata.Resource(namespaces).Get(ctx, name, metav1.GetOptions{})
	if gone.Says(err, namespaces.GroupResource(), name) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return false, nil
}

// wantCRDs asks for the watch of CRDs, which nobody needs until one is missing.
func (e *Engine) wantCRDs() {
	select {
	case e.needCRDs <- struct{}{}:
	default:
	}
}

// watchCRDs watches CRDs from the time when one is first missing, so that it is found at once when
// it comes. Without the right to, feeds find it by looking again.
func (e *Engine) watchCRDs(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-e.needCRDs:
		e.crds.run(ctx)
	}
}

// watched returns a feed whose cache has every object of the resource in the namespace, whole;
// nil when there is none.
func (e *Engine) watched(gvr schema.GroupVersionResource, namespace string) *feed {
	for _, r := range e.resources {
		for _, f := range r.feeds() {
			src := f.source
			whole := src.LabelSelector == "" && src.FieldSelector == "" && src.Keep == "" && (src.Profile == "" || src.Profile == dsl.CacheCompact)
			if !whole || f.resource().GVR != gvr {
				continue
			}
			if h := f.handle(namespace); h != nil && h.Synced() && !h.State().Blind {
				return f
			}
		}
	}
	return nil
}

// checked yields what is served of the resources of which expressions speak that can be checked, by the names
// that the operator has for them.
func (e *Engine) checked(yield func(dsl.ResourceName, catalog.Resource) bool) {
	for _, r := range e.resources {
		if !r.spec.Checked() {
			continue
		}
		for _, f := range r.feeds() {
			if f.isKnown() && !yield(f.name, f.resource()) {
				return
			}
		}
	}
}

// newAccess prepares what asks for the rights that feeds do not ask for themselves.
func (e *Engine) newAccess() *access.Monitor {
	s := access.Settings{
		Operator: e.op, Catalog: e.catalog, Reviews: e.clients.kubernetes.AuthenticationV1(), Log: e.log,
		Elsewhere: func(r rights.Rule) bool {
			return slices.ContainsFunc(e.feeds(), func(f *feed) bool { return f.asks(r) })
		},
		Given: func() {
			for _, r := range e.resources {
				r.granted()
			}
		},
	}
	if e.scope.live {
		s.Namespaces = func() []string {
			names, _ := e.scope.names(true)
			return names
		}
	}
	return access.New(s)
}
