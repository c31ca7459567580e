// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// calls has the methods that packages below call on the engine. They are not methods of [Engine] because that type is exported.
type calls struct{ *Engine }

// VersionsWentBack implements [watch.Listener]: the register may have changed, and the versions of own writes may be those of
// other writes now.
func (e calls) VersionsWentBack() {
	e.register.Doubt()
	for r := range e.resources.All {
		r.box.ForgetEchoes()
	}
}

// Feeds implements [feed.Owner].
func (e calls) Feeds() (out []*feed.Feed) {
	for r := range e.resources.All {
		out = append(append(out, r.Feeds()...), r.family.Retired.Feeds()...)
	}
	return append(out, e.indexes.Feeds()...)
}

// ScopeChanged implements [feed.Owner]: rights are needed in other namespaces.
func (e calls) ScopeChanged() { e.access.Wake() }

// CRDSeen implements [feed.Owner]: the schema may have changed.
func (e calls) CRDSeen(ev watch.Event) {
	for r := range e.resources.All {
		if !ev.Initial && r.own.Resource().GVR.GroupResource().String() == ev.Key.Name {
			r.schemas.Add(1)
		}
	}
	e.access.Wake()
	e.recheck.CRDChanged()
}

// Resources implements [access.Owner] and [preflight.Operator].
func (e calls) Resources() []*dsl.Resource {
	out := []*dsl.Resource{}
	for r := range e.resources.All {
		out = append(out, r.spec)
	}
	return out
}

// Namespaces implements [access.Owner].
func (e calls) Namespaces() (names []string, known bool) {
	in := e.feeds.Scope()
	if !in.Live() {
		return nil, false
	}
	names, _ = in.Names(true)
	return names, true
}

// Given implements [access.Owner]: requests that were refused are sent again.
func (e calls) Given() {
	e.register.Granted()
	for r := range e.resources.All {
		r.box.Grant()
	}
}

// Sure implements [transport.Leadership].
func (e calls) Sure(ctx context.Context) bool { return e.held(ctx) }

// Conflict implements [transport.Leadership].
func (e calls) Conflict(ctx context.Context) { e.elector.Conflict(ctx) }

// Await implements [controllers.Owner].
func (e calls) Await(ctx context.Context) { e.indexes.Settled(ctx) }

// Working implements [controllers.Owner].
func (e calls) Working(ctx context.Context, on bool) {
	e.started.Store(on)
	e.leaving.Store(!on && ctx.Err() != nil)
}

// lookups answers the questions of a resource's tombstones; see [tombstone.Resource].
type lookups struct{ *resource }

// Read implements [tombstone.Resource], as the other methods do.
func (r lookups) Read(ctx context.Context, key cache.ObjectName) (*unstructured.Unstructured, error) {
	return r.engine.Read(ctx, r.own.Resource().GVR, key)
}

func (r lookups) List(ctx context.Context, namespace string, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	return r.engine.Client(r.own.Resource().GVR, namespace).List(ctx, options)
}

func (r lookups) Absent() bool { return r.own.Absent() }

func (r lookups) Lacks(namespace string) bool { return r.engine.feeds.Scope().Lacks(namespace) }

func (r lookups) NamespaceGone(ctx context.Context, namespace string) (bool, error) {
	return r.engine.feeds.NamespaceGone(ctx, namespace)
}
