// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/access"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/cached"
	"github.com/handwerk-dev/handwerk/engine/catalog"
	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/gone"
	"github.com/handwerk-dev/handwerk/engine/health"
	"github.com/handwerk-dev/handwerk/engine/rights"
	"github.com/handwerk-dev/handwerk/engine/scope"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// newFeed returns a feed that is not running yet, with what all feeds of the engine have in common.
func (e *Engine) newFeed(s feed.Settings) *feed.Feed {
	s.Catalog, s.Watches, s.Metadata = e.catalog, e.watches, e.clients.metadata
	if s.Scope == nil {
		s.Scope = e.scope
	}
	s.Source.Manager, s.Source.Vouches, s.Source.Vouched = e.op.Name, e.op.StateAnnotation(), book.UnsignedMark
	s.Unserved, s.Outages = e.wantCRDs, e.outages
	return feed.New(s)
}

// newScope returns the operator's scope. Globs are matched against what the feed of namespaces brings in.
func (e *Engine) newScope() *scope.Scope {
	return scope.New(scope.Settings{
		Patterns: e.op.Scope.Namespaces, Log: e.log.WithValues("resource", "namespaces"), Changed: e.nudge, Gone: e.namespaceGone,
		Fault: func() string {
			s := e.namespaces.Status()
			if s.Phase == health.Starting || s.Phase == health.Running {
				return ""
			}
			return "namespaces are " + string(s.Phase) + ": " + s.Message
		},
	})
}

// engineFeeds prepares the feeds of the engine itself. They watch metadata alone, cluster-wide.
func (e *Engine) engineFeeds() {
	metadata, everywhere := watch.Source{Form: cached.Form{Profile: dsl.CacheLive}}, scope.New(scope.Settings{})
	if e.scope.Live() {
		e.namespaces = e.newFeed(feed.Settings{
			Name: dsl.ResourceName{Resource: "namespaces", Version: "v1"}, Log: e.log.WithValues("resource", "namespaces"),
			On: e.namespaceSeen, Listed: e.scope.Listed, Source: metadata, Scope: everywhere,
		})
	}
	crds := dsl.ResourceName{Resource: "customresourcedefinitions", Version: "v1", Group: "apiextensions.k8s.io"}
	e.crds = e.newFeed(feed.Settings{
		Name: crds, Log: e.log.V(1).WithValues("resource", crds.String()), On: e.crdSeen, Source: metadata, Scope: everywhere,
	})
}

// namespaceSeen takes an event of a namespace.
func (e *Engine) namespaceSeen(ev watch.Event) {
	switch name := ev.Key.Name; {
	case ev.Kind != watch.Deleted:
		e.scope.Came(name)
	case ev.Unseen:
		e.scope.Lost(name)
		e.namespaces.Nudge()
	default:
		e.scope.Went(name)
	}
}

// crdSeen takes an event of a CRD.
func (e *Engine) crdSeen(ev watch.Event) {
	for _, r := range e.resources.list() {
		if !ev.Initial && r.own.Resource().GVR.GroupResource().String() == ev.Key.Name {
			r.schemas.Add(1)
		}
	}
	e.catalog.Invalidate()
	e.access.Wake()
	for _, f := range e.feeds() {
		f.CRDChanged(ev)
	}
	e.recheck.CRDChanged()
}

// feeds are all that run from the start.
func (e *Engine) feeds() []*feed.Feed {
	var out []*feed.Feed
	if e.namespaces != nil {
		out = append(out, e.namespaces)
	}
	for _, r := range e.resources.list() {
		out = append(out, r.feeds()...)
	}
	return out
}

// nudge makes every feed look again.
func (e *Engine) nudge() {
	for _, f := range e.feeds() {
		f.Nudge()
	}
	e.access.Wake()
}

// watchChanged is called when an informer's state has changed: perhaps what it watches has come.
func (e *Engine) watchChanged(src watch.Source, state watch.State) {
	for _, f := range append(e.feeds(), e.crds) {
		f.WatchChanged(src.GVR)
	}
	for _, r := range e.resources.list() {
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
		e.crds.Run(ctx)
	}
}

// watched returns a feed whose cache has every object of the resource in the namespace, whole;
// nil when there is none.
func (e *Engine) watched(gvr schema.GroupVersionResource, namespace string) *feed.Feed {
	for _, r := range e.resources.list() {
		for _, f := range r.feeds() {
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
	for _, r := range e.resources.list() {
		if !r.spec.Checked() {
			continue
		}
		for _, f := range r.feeds() {
			if f.Known() && !yield(f.Name(), f.Resource()) {
				return
			}
		}
	}
}

// newAccess prepares what asks for the rights that feeds do not ask for themselves.
func (e *Engine) newAccess() *access.Monitor {
	s := access.Settings{
		Operator: e.op, Resources: e.resources.specs, Catalog: e.catalog, Reviews: e.clients.kubernetes.AuthenticationV1(), Log: e.log,
		Elsewhere: func(r rights.Rule) bool {
			verb, resource := r.Verb, schema.GroupResource{Group: r.Group, Resource: r.Resource}
			if r.Subresource != "" {
				verb += " " + r.Subresource
			}
			return slices.ContainsFunc(e.feeds(), func(f *feed.Feed) bool { return f.Asks(resource, verb, r.Namespace) })
		},
		Given: func() {
			for _, r := range e.resources.list() {
				r.box.Grant()
			}
		},
	}
	if e.scope.Live() {
		s.Namespaces = func() []string {
			names, _ := e.scope.Names(true)
			return names
		}
	}
	return access.New(s)
}
