// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/child"
	"github.com/handwerk-dev/handwerk/engine/client"
	"github.com/handwerk-dev/handwerk/engine/dial"
	"github.com/handwerk-dev/handwerk/engine/fence"
	"github.com/handwerk-dev/handwerk/engine/gone"
	"github.com/handwerk-dev/handwerk/engine/lease"
	"github.com/handwerk-dev/handwerk/engine/outage"
)

// connect makes the clients and the elector.
func (e *Engine) connect() error {
	if e.settings.Config == nil {
		return errors.New("connecting: no config is given")
	}
	fenced, err := fence.New(e.settings.Config, e.held, func() { e.elector.Doubt() })
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	e.clients, err = dial.New(dial.Settings{Config: e.settings.Config, Operator: e.op, Fence: fenced, Metrics: e.metrics, Outages: e.outages})
	if err != nil {
		return err
	}
	election := e.op.Settings.LeaderElection
	election.Name = e.op.LeaderLock()
	e.elector, err = lease.New(lease.Settings{
		LeaderElection: election, Identity: e.settings.Identity, PodName: e.settings.PodName,
		Client: e.clients.Lock, Watcher: e.clients.Kubernetes, Log: outage.Quiet(e.log, e.said),
		Changed: func(leading bool) { e.metrics.Leader(election.Name, leading) },
	})
	return err
}

// writer reaches a resource, in a namespace unless that is empty.
func (e *Engine) writer(gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	return e.access.Client(e.clients.Dynamic.Resource(gvr).Namespace(namespace))
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
