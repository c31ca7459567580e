// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/child"
	"github.com/handwerk-dev/handwerk/engine/client"
	"github.com/handwerk-dev/handwerk/engine/fence"
	"github.com/handwerk-dev/handwerk/engine/gone"
	"github.com/handwerk-dev/handwerk/engine/lease"
	"github.com/handwerk-dev/handwerk/engine/outage"
)

// clients are the ways to the API server that an engine uses.
type clients struct {
	// dynamic reads and writes objects, metadata watches where metadata is enough.
	dynamic  dynamic.Interface
	metadata metadata.Interface
	// kubernetes sends Events and asks for access.
	kubernetes kubernetes.Interface
	// lock holds the leader's lock. It has a connection and a timeout of its own, so that a slow
	// request of a handler cannot cost the lease.
	lock kubernetes.Interface
	// discovery tells what is served.
	discovery discovery.DiscoveryInterfaceWithContext
}

// connect makes the clients and the elector.
func (e *Engine) connect() error {
	if e.settings.Config == nil {
		return errors.New("connecting: no config is given")
	}
	var err error
	if e.clients, err = e.dial(e.settings.Config); err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	election := e.op.Settings.LeaderElection
	election.Name = e.op.LeaderLock()
	e.elector, err = lease.New(lease.Settings{
		LeaderElection: election, Identity: e.settings.Identity, PodName: e.settings.PodName,
		Client: e.clients.lock, Watcher: e.clients.kubernetes, Log: outage.Quiet(e.log, e.said),
		Changed: func(leading bool) { e.metrics.Leader(election.Name, leading) },
	})
	return err
}

// dial makes clients for a real API server: one connection for work, with the deadline, the fence
// and the metrics in its way, and one for the lock.
func (e *Engine) dial(given *rest.Config) (*clients, error) {
	config := rest.CopyConfig(given)
	if config.UserAgent == "" {
		config.UserAgent = "handwerk/" + e.op.Name
	}
	lock := rest.CopyConfig(config)
	config.QPS, config.Burst = -1, 0
	if limit := e.op.Settings.QPS; limit > 0 {
		config.QPS, config.Burst = limit, e.op.Settings.Burst
		if config.Burst == 0 {
			config.Burst = int(2*limit) + 1
		}
	}
	fenced, err := fence.New(config, e.held, func() { e.elector.Doubt() })
	if err != nil {
		return nil, err
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return fenced(e.outages.Transport(e.metrics.Transport(next)))
	})
	config = outage.WithDeadline(config)
	lock.Wrap(e.outages.Transport)
	lock.Timeout = lockTimeout(e.op.Settings.LeaderElection.RenewDeadline)
	lock.QPS = -1
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	c := &clients{}
	if c.dynamic, err = dynamic.NewForConfigAndClient(config, httpClient); err != nil {
		return nil, err
	}
	if c.metadata, err = metadata.NewForConfigAndClient(metadata.ConfigFor(config), httpClient); err != nil {
		return nil, err
	}
	typed, err := kubernetes.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	c.kubernetes, c.discovery = typed, typed.DiscoveryClient
	c.lock, err = kubernetes.NewForConfig(lock)
	return c, err
}

// lockTimeout leaves time for a second try within the deadline for renewing.
func lockTimeout(renewDeadline time.Duration) time.Duration {
	if renewDeadline == 0 {
		renewDeadline = lease.DefaultRenewDeadline
	}
	return max(renewDeadline/2, time.Second)
}

// writer reaches a resource, in a namespace unless that is empty.
func (e *Engine) writer(gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	return e.access.Client(e.clients.dynamic.Resource(gvr).Namespace(namespace))
}

// reader reads one object from the server, nil when the answer says that it is gone: a 404 that does
// not name the object is an error like any other.
func (e *Engine) reader(ctx context.Context, gvr schema.GroupVersionResource, key cache.ObjectName) (*unstructured.Unstructured, error) {
	o, err := e.writer(gvr, key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if gone.Says(err, gvr.GroupResource(), key.Name) {
		return nil, nil
	}
	return o, err
}

// client is what a handler reads and writes other objects with.
func (p *pass) client(h *dsl.Handler, s *fence.Span) dsl.Client {
	e := p.r.engine
	common := client.Settings{Manager: e.op.Name, Catalog: e.catalog, Resource: e.writer, Watched: e.watched}
	return common.For(client.Attempt{
		Span: s,
		Wrote: func(deed child.Deed, gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
			p.family.WroteOther(h.ID, deed, gvr, o)
		},
		Deleted: func(kind string, gvr schema.GroupVersionResource, key cache.ObjectName) {
			p.family.DeletedOther(h.ID, kind, gvr, key)
		},
	})
}
