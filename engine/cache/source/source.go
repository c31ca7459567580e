// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package source brings in the objects of one resource. A [Source] finds the resource that the API server serves under a
// name (its [Location]). It checks the rights that the engine needs for it (access), and keeps one informer for each
// namespace in scope (informers). Others read these (its [Reader]). A source recovers without a restart when a CRD is
// created, a right is granted or another version is served. A fault stays within its source.
//
// A [Factory] creates the sources of an operator, and watches namespaces and CRDs for them when one of them needs that.
// A [Scope] is the set of namespaces that the operator works in. A [Health] keeps the state of a source, and logs once
// when it becomes degraded and once when it is well again.
package source

import (
	"context"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
)

// Cluster has the dependencies that the sources of an operator share.
type Cluster struct {
	// Catalog knows what is served and allowed. Metadata reads CRDs, Watches has the informers, and Scope the
	// namespaces.
	Catalog  *discovery.Catalog
	Metadata metadata.Interface
	Watches  *watch.Set
	Scope    *Scope
	// CRDs is asked to watch CRDs when a resource is not served. It must be quick.
	CRDs interface{ WantCRDs() }
	// Outages knows whether the log has that the API server is away.
	Outages *transport.Outages
}

// Settings configure one source. All are required unless marked optional.
type Settings struct {
	// Name is the resource as it was declared. If Kind is set, it is a name for people.
	Name dsl.ResourceName
	// Kind is the kind that was declared in the place of a name. Optional.
	Kind schema.GroupVersionKind
	// Source has the common settings of the informers. The source fills in GVR, Kind, Namespace and, for Object,
	// FieldSelector.
	Source watch.Source
	// Namespace and Object limit the source to one namespace of the scope and to the object of that name. Empty means all.
	Namespace, Object string
	// Handler gets the events.
	Handler Handler
	// Steps is called with each step of the source. Optional.
	Steps Steps
	// Log gets the beginning and the end of each time for which the source is degraded. Optional.
	Log logr.Logger

	// Patches is true if the engine itself writes to the objects. Gets is true if it reads single objects, for example
	// to confirm deletions. Requests of handlers do not count. Default to false.
	Patches, Gets bool
}

// Handler handles the events of a source; events of one object come in order. It must be quick and must not wait for the
// source.
type Handler interface {
	watch.Handler
	// Grant is called when the reason that kept objects out is gone, and they are listed.
	Grant()
}

// Steps follows the steps of a source. The source's own goroutine calls the methods.
type Steps interface {
	// Listed is called with each step once the handler has got all objects of the first listings. The source runs if well is
	// true. Listed reports whether to call it again soon.
	Listed(ctx context.Context, well bool) (again bool)
	// Absent is called with each step while the resource has no CRD.
	Absent(ctx context.Context)
}

// Source brings in the objects of one resource. [Source.Run] does the work; the other methods may be called at any time
// by any number of goroutines.
type Source struct {
	*Location
	*Reader
	access *access
	runner *runner
}

// New returns a source that is not running yet.
func New(c Cluster, s Settings) *Source {
	if s.Object != "" {
		s.Source.FieldSelector = fields.OneTermEqualSelector("metadata.name", s.Object).String()
	}
	wake, at, health := make(chan struct{}, 1), &Location{name: s.Name, kind: s.Kind}, newHealth(s.Log)
	opened := &informers{at: at, watches: c.Watches, source: s.Source, handler: s.Handler, by: map[string]*informer{}}
	f := &Source{
		Location: at,
		Reader:   &Reader{at: at, informers: opened, health: health, scope: extent{c.Scope, s.Namespace}},
		access:   newAccess(at, opened, c.Catalog, s, wake),
	}
	f.runner = &runner{
		Reader: f.Reader, settings: s, access: f.access, wake: wake, cluster: c,
		locator: &locator{at: at, catalog: c.Catalog},
		crd:     &definition{of: at, metadata: c.Metadata},
	}
	return f
}

// Run keeps the source going until ctx ends, and closes its informers then.
func (f *Source) Run(ctx context.Context) { f.runner.run(ctx) }

// Nudge makes the source look again soon. It never blocks.
func (f *Source) Nudge() { signal(f.runner.wake) }

// signal sends to a channel unless that is full.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// WatchChanged handles a change of the state of an informer of this resource: if it may be the source's, the source takes a step. It
// never blocks.
func (f *Source) WatchChanged(gvr schema.GroupVersionResource) {
	if f.Serves(gvr) || f.Known() && f.informers.awaits(gvr) {
		f.Nudge()
	}
}

// CRDChanged handles an event of any CRD: other resources may be served now, so the source takes a step. It never blocks.
func (f *Source) CRDChanged(ev watch.Event) {
	f.runner.crd.seen(ev)
	f.Nudge()
}

// Suspect must be called when a request of the engine for an object of the namespace was rejected. The source checks its
// rights, shows the missing ones, and finds out when they are granted. Further rejections cause no check for a moment:
// there may be one for each object.
func (f *Source) Suspect(namespace string) {
	if of, watched := f.informers.covers(namespace); watched && f.access.suspect(of) {
		f.Nudge()
	}
}

// Verbs returns the verbs that the engine itself uses on the resource, such as "list".
func (f *Source) Verbs() []string { return slices.Clone(f.access.verbs) }

// Asks reports whether the source itself checks a right. The empty namespace stands for all in scope. A source of one
// object checks rights on that object alone.
func (f *Source) Asks(r rbac.Rule) bool {
	verb := strings.TrimSpace(r.Verb + " " + r.Subresource)
	if !f.Known() || f.Resource().GVR.GroupResource() != (schema.GroupResource{Group: r.Group, Resource: r.Resource}) || !slices.Contains(f.Verbs(), verb) {
		return false
	}
	if f.access.object != "" && f.access.object != r.Name {
		return false
	}
	if r.Namespace == "" {
		return f.scope.namespace == "" || !f.Resource().Namespaced
	}
	return f.Resource().Namespaced && f.scope.Has(r.Namespace)
}
