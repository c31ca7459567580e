// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/cluster/access"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
	"github.com/handwerk-dev/handwerk/engine/cluster/leader"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
)

// connect makes the clients and the elector.
func (e *Engine) connect() error {
	if e.settings.Config == nil {
		return errors.New("connecting: no config is given")
	}
	fenced, err := transport.NewFence(e.settings.Config, leadership{e})
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	e.clients, err = transport.Dial(transport.Settings{Config: e.settings.Config, Operator: e.op, Fence: fenced, Metrics: e.metrics, Outages: e.outages})
	if err != nil {
		return err
	}
	election := e.op.Settings.LeaderElection
	election.Name, election.Namespace = e.op.LeaderLock(), e.settings.Namespace
	e.elector, err = leader.New(leader.Settings{
		LeaderElection: election, Earlier: e.names.locks(), Scope: scopeOf(e.op), Identity: e.settings.Identity, PodName: e.settings.PodName,
		Client: e.clients.Lock, Watcher: e.clients.Kubernetes, Log: transport.Quiet(e.log, e.faults), Metrics: e.metrics,
	})
	e.metrics.Leader(election.Name, false) // a process that never leads has the metric, too
	return err
}

// scopeOf returns the operator's scope in the form of its lock.
func scopeOf(op *dsl.Operator) leader.Scope {
	return leader.Scope{Key: op.ScopeAnnotation(), Text: source.EncodeScope(op.Scope), Overlaps: func(text string) bool {
		return source.ScopesOverlap(op.Scope, source.DecodeScope(text))
	}}
}

// serverBack handles the end of an outage of the API server: waiting requests are sent at once, without their back-off.
func (e *Engine) serverBack() {
	for r := range e.resources.All {
		r.inbox.Grant()
	}
	e.watches.RetryAll()
	for _, f := range e.sources.All() {
		f.Nudge()
	}
	e.register.OnGranted()
	e.access.Retry()
	e.recheck.Wake()
}

// newFeeds returns the factory of sources.
func (e *Engine) newFeeds() *source.Factory {
	form := cached.Form{Made: e.op.AppliedAnnotation(), Own: strings.Join(e.names.managers(), ",")}
	stores := func(r *dsl.Resource) bool { return slices.ContainsFunc(r.Handlers(), (*dsl.Handler).Stores) }
	if slices.ContainsFunc(e.op.Resources(), stores) {
		form.Markers = strings.Join(e.names.markers(), ",")
	}
	return source.NewFactory(source.FactorySettings{
		Cluster: source.Cluster{Catalog: e.catalog, Watches: e.watches, Metadata: e.clients.Metadata, Outages: e.outages},
		Form:    form, Scope: e.op.Scope, Owner: sourceOwner{e}, Log: e.log,
	})
}

// watchChanged handles a change of an informer's state: awaited objects may have come.
func (e *Engine) watchChanged(src watch.Source, state watch.State) {
	e.sources.WatchChanged(src.GVR)
	e.pauses.watchChanged(src, state)
	if state.Synced {
		e.indexes.Listed(src.GVR)
	}
	for r := range e.resources.All {
		if state.Blind {
			r.inbox.WakeAll()
		}
		if state.Synced {
			r.related.Listed(src.GVR)
		}
	}
	e.access.Wake()
	e.recheck.Wake()
}

// checked yields the served resources that expressions name and whose schemas can be checked, by the names that the
// operator uses.
func (e *Engine) checked(yield func(dsl.ResourceName, discovery.Resource) bool) {
	feeds := e.indexes.Sources()
	for r := range e.resources.All {
		if len(r.spec.Checks) > 0 {
			feeds = append(feeds, r.Sources()...)
		}
	}
	for _, f := range feeds {
		if f.Known() && !yield(f.Name(), f.Resource()) {
			return
		}
	}
}

// newAccess returns the monitor of rights, also for rights that sources do not check themselves.
func (e *Engine) newAccess() *access.Monitor {
	return access.New(access.Settings{
		Operator: e.op, Owner: accessOwner{e}, Namespace: e.settings.Namespace, Catalog: e.catalog, Reviews: e.clients.Kubernetes.AuthenticationV1(), Log: e.log,
		Askers: func(yield func(access.Asker) bool) {
			for _, f := range e.sources.All() {
				if !yield(f) {
					return
				}
			}
		},
	})
}
