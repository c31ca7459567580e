// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package source brings in the objects of one resource. A [Source] finds the resource that the API server serves under a name (its
// [Location]), checks the rights that the engine needs for it (access), and keeps one informer for each namespace in scope
// (informers), which others read (its [Reader]). It recovers without a restart when a CRD is created, a right is granted or
// another version is served. A fault stays within its feed.
//
// A [Factory] makes the feeds of an operator, and watches namespaces and CRDs for all of them where one needs that. A [Scope]
// is the set of namespaces that the operator works in. A [Health] keeps the state of a feed, and logs once when it becomes
// degraded and once when it is well again.
package source

import (
	"context"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
)

// Cluster is what the feeds of an operator share.
type Cluster struct {
	// Catalog says what is served and allowed, Metadata reads CRDs, Watches has the informers, and Scope
	// the namespaces.
	Catalog  *discovery.Catalog
	Metadata metadata.Interface
	Watches  *watch.Set
	Scope    *Scope
	// CRDs is asked to watch CRDs when a resource is not served. It must be quick.
	CRDs interface{ WantCRDs() }
	// Outages knows whether the log has that the API server is away.
	Outages *transport.Outages
}

// Settings configure one feed. All are required unless marked optional.
type Settings struct {
	// Name is the resource as it was declared, or as it is called for people where Kind is set.
	Name dsl.ResourceName
	// Kind is what was declared in the place of a name. Optional.
	Kind schema.GroupVersionKind
	// Source is what the informers have in common. The feed fills in GVR, Kind and Namespace.
	Source watch.Source
	// Handler gets the events.
	Handler Handler
	// Steps is called with each step of the feed. Optional.
	Steps Steps
	// Log gets when the feed begins to be degraded and when it is well again. Optional.
	Log logr.Logger

	// Patches is true if the engine itself writes to the objects, and Gets if it reads single objects, as to confirm
	// deletions. Requests of handlers do not count. Default to false.
	Patches, Gets bool
}

// Handler takes the events of a feed, those of one object in order. It must be quick and must not wait for the feed.
type Handler interface {
	watch.Handler
	// Grant is called when something that kept objects out is over, and they are listed.
	Grant()
}

// Steps follows the steps of a feed. The feed's own goroutine calls the methods.
type Steps interface {
	// Listed is called with each step once the handler has got all objects of the first listings. The feed runs if well is
	// true. Listed reports whether to call it again soon.
	Listed(ctx context.Context, well bool) (again bool)
	// Absent is called with each step while the resource has no CRD.
	Absent(ctx context.Context)
}

// Source brings the objects of one resource in. [Source.Run] does the work; the other methods may be called at
// any time by any number of goroutines.
type Source struct {
	*Location
	*Reader
	access *access
	runner *runner
}

// New returns a feed that is not running yet.
func New(c Cluster, s Settings) *Source {
	wake, at, health := make(chan struct{}, 1), &Location{name: s.Name, kind: s.Kind}, newHealth(s.Log)
	opened := &informers{at: at, watches: c.Watches, source: s.Source, handler: s.Handler, by: map[string]*informer{}}
	f := &Source{
		Location: at,
		Reader:   &Reader{at: at, informers: opened, health: health, scope: c.Scope},
		access:   newAccess(at, opened, c.Catalog, s, wake),
	}
	f.runner = &runner{
		Reader: f.Reader, settings: s, access: f.access, wake: wake, cluster: c,
		locator: &locator{at: at, catalog: c.Catalog},
		crd:     &definition{of: at, metadata: c.Metadata},
	}
	return f
}

// Run keeps the feed going until ctx ends, and closes its informers then.
func (f *Source) Run(ctx context.Context) { f.runner.run(ctx) }

// Nudge makes the feed look again soon. It never blocks.
func (f *Source) Nudge() { signal(f.runner.wake) }

// signal sends to a channel unless that is full.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// WatchChanged handles a change of the state of an informer of this resource: if it may be the feed's, the feed takes a step. It
// never blocks.
func (f *Source) WatchChanged(gvr schema.GroupVersionResource) {
	if f.Serves(gvr) || f.Known() && f.informers.awaits(gvr) {
		f.Nudge()
	}
}

// CRDChanged handles an event of any CRD: other resources may be served now, so the feed takes a step. It never blocks.
func (f *Source) CRDChanged(ev watch.Event) {
	f.runner.crd.seen(ev)
	f.Nudge()
}

// Suspect is called when a request of the engine for an object of the namespace was refused. The feed checks its rights, shows the
// missing ones, and finds out when they are granted. Further refusals cause no check for a moment: there may be one for each
// object.
func (f *Source) Suspect(namespace string) {
	if of, watched := f.informers.covers(namespace); watched && f.access.suspect(of) {
		f.Nudge()
	}
}

// Verbs are those that the engine itself uses on the resource, as in "list".
func (f *Source) Verbs() []string { return slices.Clone(f.access.verbs) }

// Asks reports whether the feed itself checks a right. The empty namespace stands for all in scope.
func (f *Source) Asks(r rbac.Rule) bool {
	verb := strings.TrimSpace(r.Verb + " " + r.Subresource)
	if !f.Known() || f.Resource().GVR.GroupResource() != (schema.GroupResource{Group: r.Group, Resource: r.Resource}) || !slices.Contains(f.Verbs(), verb) {
		return false
	}
	return r.Namespace == "" || f.Resource().Namespaced && f.scope.Has(r.Namespace)
}
