// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/access"
	"github.com/handwerk-dev/handwerk/engine/cached"
	"github.com/handwerk-dev/handwerk/engine/catalog"
	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/leader"
	"github.com/handwerk-dev/handwerk/engine/notfound"
	"github.com/handwerk-dev/handwerk/engine/patch"
	"github.com/handwerk-dev/handwerk/engine/transport"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// connect makes the clients and the elector.
func (e *Engine) connect() error {
	if e.settings.Config == nil {
		return errors.New("connecting: no config is given")
	}
	fenced, err := transport.NewFence(e.settings.Config, calls{e})
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	e.clients, err = transport.Dial(transport.Settings{Config: e.settings.Config, Operator: e.op, Fence: fenced, Metrics: e.metrics, Outages: e.outages})
	if err != nil {
		return err
	}
	election := e.op.Settings.LeaderElection
	election.Name = e.op.LeaderLock()
	var earlier []string
	for _, op := range e.op.Earlier() {
		if lock := op.LeaderLock(); lock != election.Name {
			earlier = append(earlier, lock)
		}
	}
	e.elector, err = leader.New(leader.Settings{
		LeaderElection: election, Earlier: earlier, Scope: scopeOf(e.op), Identity: e.settings.Identity, PodName: e.settings.PodName,
		Client: e.clients.Lock, Watcher: e.clients.Kubernetes, Log: transport.Quiet(e.log, e), Metrics: e.metrics,
	})
	e.metrics.Leader(election.Name, false) // a process that never leads says so, too
	return err
}

// scopeOf is the operator's scope as its lock has it.
func scopeOf(op *dsl.Operator) leader.Scope {
	return leader.Scope{Key: op.ScopeAnnotation(), Text: feed.Text(op.Scope.Namespaces), Overlaps: func(text string) bool {
		return feed.ScopesOverlap(op.Scope.Namespaces, feed.FromText(text))
	}}
}

// Client reaches a resource, in a namespace unless that is empty.
func (e *Engine) Client(gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	return e.reach(gvr, namespace).Client(e.clients.Dynamic.Resource(gvr).Namespace(namespace))
}

// keeper is Client for what the operator keeps for itself, which handlers cannot write.
func (e *Engine) keeper(gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	return e.reach(gvr, namespace).open(e.clients.Dynamic.Resource(gvr).Namespace(namespace))
}

// reach returns what wraps the engine's clients of a resource.
func (e *Engine) reach(gvr schema.GroupVersionResource, namespace string) reach {
	return reach{e, gvr, namespace}
}

// reach wraps clients of a resource in a namespace: it reports missing rights, compares answers with the caches, and keeps
// writes from the operator's own objects.
type reach struct {
	engine    *Engine
	gvr       schema.GroupVersionResource
	namespace string
}

// Client wraps a client.
func (r reach) Client(c dynamic.ResourceInterface) dynamic.ResourceInterface {
	return r.engine.own.guard(r.gvr, r.namespace, r.open(c))
}

// open is Client for the engine itself, which may write the operator's own objects.
func (r reach) open(c dynamic.ResourceInterface) dynamic.ResourceInterface {
	return r.engine.watches.Compare(r.gvr, r.namespace, r.engine.access.Client(c, r.gvr))
}

// Handled returns a client for the objects that handlers look at: answers to its writes lack managedFields.
func (e *Engine) Handled(gvr schema.GroupVersionResource, namespace string) patch.Client {
	return transport.Handled{Clients: e.clients, Access: e.reach(gvr, namespace), GVR: gvr, Namespace: namespace}
}

// serverBack is called when the API server answers again after an outage: what waits for it does not wait for its back-off.
func (e *Engine) serverBack() {
	for r := range e.resources.All {
		r.box.Grant()
	}
	e.watches.Hurry()
	for _, f := range e.feeds.All() {
		f.Nudge()
	}
	e.register.Granted()
	e.access.Retry()
	e.recheck.Wake()
}

// Read reads one object from the server, nil when the answer says that it is gone: a 404 that does
// not name the object is an error like any other.
func (e *Engine) Read(ctx context.Context, gvr schema.GroupVersionResource, key cache.ObjectName) (*unstructured.Unstructured, error) {
	o, err := e.Client(gvr, key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if notfound.Says(err, gvr.GroupResource(), key.Name) {
		return nil, nil
	}
	return o, err
}

// Logged reports whether the log has one line for all errors of this kind: no server answers, this process does not
// lead, a right is missing, to a feed or to others, or versions have gone back.
func (e *Engine) Logged(err error) bool {
	silent := transport.Unanswered(err) && e.outages.Logged()
	return silent || feed.Unread(err) || errors.Is(err, transport.ErrNotLeading) || e.access.Told(err) || e.outages.Covers(err) || watch.IsBack(err)
}

// Covered reports whether an error comes from an outage of the API server that the log names.
func (e *Engine) Covered(err error) bool { return e.outages.Covers(err) }

// Unreached reports whether an error is one of the outage that the log names: an attempt that ends so says nothing of the
// handler.
func (e *Engine) Unreached(err error) bool { return feed.Unanswered(err) && e.outages.Away() }

// markers are how the names of the field managers begin with which the operator has written status.observedGeneration, under all
// its names.
func (e *Engine) markers() []string {
	out := e.managers()
	for i, name := range out {
		out[i] = patch.Marker(name)
	}
	return out
}

// managers are the operator's field managers, under all its names.
func (e *Engine) managers() []string {
	out := []string{e.op.Name}
	for _, earlier := range e.op.Earlier() {
		out = append(out, earlier.Name)
	}
	return out
}

// newFeeds prepares what makes the feeds.
func (e *Engine) newFeeds() *feed.Factory {
	form := cached.Form{Made: e.op.AppliedAnnotation()}
	keeps := func(r *dsl.Resource) bool { return r.KeepsGeneration() || r.Recalls() }
	if slices.ContainsFunc(e.op.Resources(), keeps) {
		form.Markers = strings.Join(e.markers(), ",")
	}
	return feed.NewFactory(feed.FactorySettings{
		Cluster: feed.Cluster{Catalog: e.catalog, Watches: e.watches, Metadata: e.clients.Metadata, Outages: e.outages},
		Form:    form, Namespaces: e.op.Scope.Namespaces, Owner: calls{e}, Log: e.log,
	})
}

// watchChanged is called when an informer's state has changed: perhaps what it watches has come.
func (e *Engine) watchChanged(src watch.Source, state watch.State) {
	e.feeds.WatchChanged(src.GVR)
	if state.Synced {
		e.indexes.Listed(src.GVR)
	}
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

// checked yields what is served of the resources of which expressions speak that can be checked, by the names
// that the operator has for them.
func (e *Engine) checked(yield func(dsl.ResourceName, catalog.Resource) bool) {
	feeds := e.indexes.Feeds()
	for r := range e.resources.All {
		if len(r.spec.Checks) > 0 {
			feeds = append(feeds, r.Feeds()...)
		}
	}
	for _, f := range feeds {
		if f.Known() && !yield(f.Name(), f.Resource()) {
			return
		}
	}
}

// newAccess prepares what asks for the rights that feeds do not ask for themselves.
func (e *Engine) newAccess() *access.Monitor {
	return access.New(access.Settings{
		Operator: e.op, Owner: calls{e}, Namespace: e.settings.Namespace, Catalog: e.catalog, Reviews: e.clients.Kubernetes.AuthenticationV1(), Log: e.log,
		Askers: func(yield func(access.Asker) bool) {
			for _, f := range e.feeds.All() {
				if !yield(f) {
					return
				}
			}
		},
	})
}
