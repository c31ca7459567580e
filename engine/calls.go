// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
)

// Packages below call the engine through small interfaces. Small types implement them, because the type [Engine] is
// exported.

// listener implements [watch.Listener].
type listener struct{ engine *Engine }

// VersionsWentBack handles a restored API server: the register may have changed, and versions of own writes may now
// belong to other writes.
func (l listener) VersionsWentBack() {
	l.engine.register.Invalidate()
	for r := range l.engine.resources.All {
		r.inbox.ForgetEchoes()
	}
}

// sourceOwner implements [source.Owner].
type sourceOwner struct{ engine *Engine }

// Sources returns all sources.
func (o sourceOwner) Sources() (out []*source.Source) {
	for r := range o.engine.resources.All {
		out = append(append(out, r.Sources()...), r.family.Retired.Sources()...)
	}
	return append(out, o.engine.indexes.Sources()...)
}

// ScopeChanged asks for the rights in namespaces that the scope has now.
func (o sourceOwner) ScopeChanged() { o.engine.access.Wake() }

// OnCRDEvent handles an event of a CRD: the schema may have changed.
func (o sourceOwner) OnCRDEvent(ev watch.Event) {
	for r := range o.engine.resources.All {
		if !ev.Initial && r.own.Resource().GVR.GroupResource().String() == ev.Key.Name {
			r.schemas.Add(1)
		}
	}
	o.engine.access.Wake()
	o.engine.recheck.CRDChanged()
}

// accessOwner implements [access.Owner] and [preflight.Operator].
type accessOwner struct{ engine *Engine }

// Resources returns the resources that the operator works on.
func (o accessOwner) Resources() []*dsl.Resource {
	out := []*dsl.Resource{}
	for r := range o.engine.resources.All {
		out = append(out, r.spec)
	}
	return out
}

// Namespaces returns the namespaces of the scope, if they are known.
func (o accessOwner) Namespaces() (names []string, known bool) {
	in := o.engine.sources.Scope()
	if !in.Live() {
		return nil, false
	}
	names, _ = in.Names(true)
	return names, true
}

// OnGranted handles a new right: requests that failed for it are sent again.
func (o accessOwner) OnGranted() {
	o.engine.register.OnGranted()
	for r := range o.engine.resources.All {
		r.inbox.Grant()
	}
}

// leadership implements [transport.Leadership]. The elector is made after the clients that ask it.
type leadership struct{ engine *Engine }

// Sure reports whether this process may write, as a fence does. It waits while that is in doubt.
func (l leadership) Sure(ctx context.Context) bool { return l.engine.elector.Sure(ctx) }

// Conflict tells the elector that a write conflicted.
func (l leadership) Conflict(ctx context.Context) { l.engine.elector.Conflict(ctx) }

// lookups answers the questions of a resource's tombstones; see [tombstone.Resource].
type lookups struct{ *resource }

// Read implements [tombstone.Resource], as the other methods do.
func (r lookups) Read(ctx context.Context, key cache.ObjectName) (*unstructured.Unstructured, error) {
	return r.engine.server.Read(ctx, r.own.Resource().GVR, key)
}

func (r lookups) List(ctx context.Context, namespace string, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	return r.engine.server.Client(r.own.Resource().GVR, namespace).List(ctx, options)
}

func (r lookups) Absent() bool { return r.own.Absent() }

func (r lookups) Leaves(namespace string) bool { return r.own.Leaves(namespace) }

func (r lookups) NamespaceGone(ctx context.Context, namespace string) (bool, error) {
	return r.engine.sources.NamespaceGone(ctx, namespace)
}
