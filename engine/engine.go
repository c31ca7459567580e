// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/access"
	"github.com/handwerk-dev/handwerk/engine/catalog"
	"github.com/handwerk-dev/handwerk/engine/dial"
	"github.com/handwerk-dev/handwerk/engine/events"
	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/lease"
	"github.com/handwerk-dev/handwerk/engine/ops"
	"github.com/handwerk-dev/handwerk/engine/outage"
	"github.com/handwerk-dev/handwerk/engine/preflight"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// stuck is how long Run waits, after the grace period, for handlers that do not heed the end of
// their context.
const stuck = 5 * time.Second

// Settings are what an engine needs to run an operator.
type Settings struct {
	// Config reaches the API server. Required.
	Config *rest.Config
	// Log gets everything the engine has to say. The zero value discards it.
	Log logr.Logger
	// Metrics count what happens. Nil means new ones that nobody serves.
	Metrics *ops.Metrics
	// PodName is the name of this process's pod. Required for LeaderLife.
	PodName string
	// Identity names this process in the leader's lock. Defaults to the host name and a random
	// part.
	Identity string
}

// Engine runs one operator.
type Engine struct {
	op        *dsl.Operator
	settings  Settings
	log       logr.Logger
	metrics   *ops.Metrics
	clients   *dial.Clients
	catalog   *catalog.Catalog
	watches   *watch.Set
	feeds     *feed.Factory
	events    *events.Recorder
	elector   *lease.Elector
	resources set
	recheck   *preflight.Recheck
	outages   *outage.Watch
	access    *access.Monitor

	started atomic.Bool
	leaving atomic.Bool
}

// New prepares an engine. It talks to nobody yet. The error says what is wrong with the operator
// or with the settings.
func New(op *dsl.Operator, s Settings) (*Engine, error) {
	if err := op.Validate(); err != nil {
		return nil, fmt.Errorf("checking operator: %w", err)
	}
	e := &Engine{op: op, settings: s, log: s.Log, metrics: s.Metrics, outages: outage.New(s.Log)}
	if e.metrics == nil {
		e.metrics = ops.NewMetrics()
	}
	if err := e.connect(); err != nil {
		return nil, err
	}
	e.catalog = catalog.New(e.clients.Discovery, e.clients.Dynamic, e.clients.Kubernetes.AuthorizationV1())
	e.watches = watch.New(watch.Settings{Dynamic: e.clients.Dynamic, Metadata: e.clients.Metadata, OwnerLabel: op.OwnerLabel(), Log: e.log, Changed: e.watchChanged})
	e.feeds = e.newFeeds()
	e.access = e.newAccess()
	e.events = events.New(events.Settings{
		Client: e.clients.Kubernetes, Operator: op.Name, Log: e.log, Dropped: e.metrics.EventDropped, Failed: e.access.Refused,
	})
	e.recheck = preflight.NewRecheck(e.resources.specs, e.catalog, e.checked, e.log)
	for _, spec := range op.Resources() {
		if err := e.start(spec); err != nil {
			return nil, err
		}
	}
	e.metrics.Resources(e.stats)
	e.metrics.MissingRights(e.access.Missing)
	return e, nil
}

// Run runs the operator until ctx ends. It starts from the outside in: Events, informers,
// leadership, workers; and stops in the order in which nothing is lost: keys are not taken any
// more, handlers get the grace period, Events are sent, informers stop, the lease is released.
//
// A missing CRD or permission is no error: the resource waits, visibly. The error is that of a
// lock that cannot be used, or names handlers that did not end in time.
func (e *Engine) Run(ctx context.Context) error {
	ctx = logr.NewContext(ctx, outage.Quiet(e.log, e.said)) // client-go logs with it
	outer, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	if err := e.events.Start(outer); err != nil {
		return err
	}
	feedsCtx, stopFeeds := context.WithCancel(outer)
	var feeds sync.WaitGroup
	endFeeds := func() {
		stopFeeds()
		feeds.Wait()
		for _, r := range e.resources.list() {
			r.feeding.Wait()
		}
		e.watches.Close()
	}
	feeds.Go(func() { e.feeds.Run(feedsCtx) })
	e.resources.run(feedsCtx)
	feeds.Go(func() { e.recheck.Run(feedsCtx) })
	feeds.Go(func() {
		if settled(feedsCtx, feedsCtx, e.feeds.Own()...) {
			e.resources.settled(feedsCtx)
			e.access.Run(feedsCtx)
		}
	})
	e.log.Info("operator starts", "operator", e.op.Name, "resources", e.names())

	err := e.elector.Run(ctx, func(term context.Context) error {
		leaveErr := e.lead(ctx, term)
		if ctx.Err() != nil {
			e.events.Stop()
			endFeeds()
		}
		return leaveErr
	})
	e.leaving.Store(true)
	endFeeds()
	e.events.Stop()
	e.log.Info("operator stopped", "operator", e.op.Name)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// lead works until ctx ends, with the grace period for handlers, or until the term ends by the loss
// of leadership, without; also when that happens in the grace period.
func (e *Engine) lead(ctx, term context.Context) error {
	// Requests that are cut off by a loss fail as cancelled ones do, which nobody logs.
	work, cancel := context.WithCancel(context.WithoutCancel(term))
	defer cancel()
	defer context.AfterFunc(term, cancel)()
	asked, stop := context.WithCancel(work)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	resources := e.resources.settled(asked) // so that the first passes find children in the cache
	if asked.Err() != nil {
		return nil
	}
	e.resources.begin(work, resources)
	e.started.Store(true)
	select {
	case <-ctx.Done():
	case <-term.Done():
	}
	e.started.Store(false)
	e.leaving.Store(ctx.Err() != nil)
	e.resources.end()
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		for _, r := range e.resources.list() {
			r.working.Wait()
		}
	}()
	if term.Err() == nil {
		e.log.Info("operator stops; handlers get the grace period", "grace", e.grace().String())
		wait(term, idle, e.grace())
	}
	cancel()
	if !wait(context.WithoutCancel(ctx), idle, stuck) && ctx.Err() != nil {
		return fmt.Errorf("stopping operator: handlers are still running: %s", strings.Join(e.busy(), ", "))
	}
	<-idle // another term must not begin beside handlers of this one
	return nil
}

// start has the engine work on a resource from here on: at once when it runs, and leads. The error says that the
// resource is started already.
func (e *Engine) start(spec *dsl.Resource) error {
	if err := e.resources.add(newResource(e, spec)); err != nil {
		return err
	}
	e.metrics.Declare(spec.Name.String())
	e.access.Wake()
	e.recheck.Wake()
	return nil
}

// stop is the opposite of start: what the process does for others of its resources goes on. Handlers get the grace
// period, or as long as ctx lasts. It returns when nothing of the resource runs any more, and nothing tells of it.
func (e *Engine) stop(ctx context.Context, r *resource) {
	r.log.Info("resource stops; handlers get the grace period", "grace", e.grace().String())
	e.resources.remove(ctx, r, e.grace())
	e.metrics.Forget(r.name)
	e.access.Wake()
	e.recheck.Wake()
	r.log.Info("resource stopped")
}

// settled waits until each of the feeds runs or is known to be at fault. It reports false when one of the contexts
// ended before.
func settled(ctx, life context.Context, feeds ...*feed.Feed) bool {
	for _, f := range feeds {
		select {
		case <-f.Settled():
		case <-ctx.Done():
			return false
		case <-life.Done():
			return false
		}
	}
	return true
}

func (e *Engine) grace() time.Duration {
	if e.op.Settings.GracePeriod > 0 {
		return e.op.Settings.GracePeriod
	}
	return dsl.DefaultGracePeriod
}

// held is the fence: whether writes may leave the process. While that is in doubt, it waits.
func (e *Engine) held(ctx context.Context) bool { return e.elector.Sure(ctx) }

func (e *Engine) names() []string {
	var out []string
	for _, r := range e.resources.list() {
		out = append(out, r.name)
	}
	return out
}

// wait reports whether done was closed before ctx ended or the time was over.
func wait(ctx context.Context, done <-chan struct{}, most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	case <-timer.C:
		return false
	}
}
