// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/index"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/children"
	"github.com/handwerk-dev/handwerk/engine/children/apply"
	"github.com/handwerk-dev/handwerk/engine/children/prune"
	"github.com/handwerk-dev/handwerk/engine/cluster/access"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
	"github.com/handwerk-dev/handwerk/engine/cluster/events"
	"github.com/handwerk-dev/handwerk/engine/cluster/leader"
	"github.com/handwerk-dev/handwerk/engine/cluster/notfound"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
	"github.com/handwerk-dev/handwerk/engine/decide/breaker"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/observe/trace"
	"github.com/handwerk-dev/handwerk/engine/operate/activity"
	"github.com/handwerk-dev/handwerk/engine/operate/preflight"
	"github.com/handwerk-dev/handwerk/engine/reconcile"
	"github.com/handwerk-dev/handwerk/engine/reconcile/history"
)

// Settings are the settings of an engine.
type Settings struct {
	// Config reaches the API server. Required.
	Config *rest.Config
	// Log gets all messages of the engine. The zero value discards them.
	Log logr.Logger
	// Metrics count what happens. Nil means new ones that are not served.
	Metrics *ops.Metrics
	// PodName is the name of this process's pod. Required for LeaderLife.
	PodName string
	// Namespace is the namespace of this process's pod. The operator's register is there, or in the namespace of the
	// leader's lock.
	Namespace string
	// Identity names this process in the leader's lock. Defaults to the host name and a random part.
	Identity string
	// Version is the version of the program, for people who ask for the status.
	Version string
	// Tracer gets a span for each reconcile and each attempt of a handler; trace.Transport adds requests. Nil means none.
	Tracer trace.Tracer
	// Webhooks say how the API server reaches this process; see [Webhooks].
	Webhooks Webhooks
	// Missed, for tests, is called for each field of an object that a handler reads and does not list in dsl.Reads. The
	// field is empty if it is unknown. If Missed is nil, handlers do not see such fields.
	Missed func(resource, handler, field string)
}

// Engine runs one operator.
type Engine struct {
	op        *dsl.Operator
	names     names
	settings  Settings
	log       logr.Logger
	metrics   *ops.Metrics
	clients   *transport.Clients
	server    *server
	faults    *faults
	catalog   *discovery.Catalog
	watches   *watch.Set
	sources   *source.Factory
	indexes   *index.Set
	events    *events.Recorder
	elector   *leader.Elector
	resources controllers[*resource]
	phase     phase
	recheck   *preflight.Recheck
	outages   *transport.Outages
	access    *access.Monitor
	register  *prune.Register
	// digests is the key of digests of Secrets, and key the Secret that has it.
	digests *progress.Key
	key     *prune.Key
	renamer *patch.Renamer
	trail   *breaker.Trail
	// budget is the memory that reconciles share. history has the last reconciles over each object.
	budget  *children.Budget
	history *history.Store
	// pauses knows what is paused. limits bound the deletions.
	pauses *pauses
	limits *deletionLimits
	// requests are the admission handlers.
	requests *requests
	memo     dsl.Memo
	others   reconcile.ClientSettings
	hooks    *activity.Hooks
	// ending are the namespaces that reject requests because they are being deleted.
	ending notfound.Namespaces
	// made is when the engine was made.
	made time.Time
}

// New returns an engine. It sends no requests. The error is about the operator or the settings.
func New(op *dsl.Operator, s Settings) (*Engine, error) {
	s.Namespace = cmp.Or(op.Settings.LeaderElection.Namespace, s.Namespace)
	if err := op.Validate(); err != nil {
		return nil, fmt.Errorf("checking operator: %w", err)
	}
	e := &Engine{op: op, settings: s, log: s.Log, metrics: s.Metrics, outages: transport.NewOutages(s.Log), renamer: patch.NewRenamer(op), trail: breaker.NewTrail(),
		names: names{op}, budget: children.NewBudget(debug.SetMemoryLimit(-1)), history: history.New(*cmp.Or(op.Settings.History, new(dsl.DefaultHistoryBytes))),
	}
	e.made = time.Now()
	if e.metrics == nil {
		e.metrics = ops.NewMetrics()
	}
	e.faults, e.pauses = &faults{outages: e.outages}, newPauses(e)
	if err := e.connect(); err != nil {
		return nil, err
	}
	e.catalog = discovery.New(e.clients.Discovery, e.clients.Dynamic, e.clients.Kubernetes.AuthorizationV1())
	e.watches = watch.New(watch.Settings{Dynamic: e.clients.Caching, Metadata: e.clients.Metadata, OwnerLabel: op.OwnerLabel(), Log: e.log, Changed: e.watchChanged, Listener: listener{e}, Outages: e.outages})
	e.sources = e.newFeeds()
	e.pauses.watchNamespaces()
	e.limits = newDeletionLimits(e)
	e.indexes = index.New(index.Settings{Indexes: op.Indexes(), Sources: e.sources, Log: e.log})
	e.access = e.newAccess()
	e.faults.access = e.access
	e.server = &server{clients: e.clients, watches: e.watches, access: e.access, own: ownPlacesOf(op, s.Namespace)}
	e.others = reconcile.ClientSettings{Manager: op.Name, Renamer: e.renamer, Renewer: apply.NewRenewer(op, e.catalog), Catalog: e.catalog, Clients: e.server, Sources: e.sources}
	e.register = prune.NewRegister(prune.RegisterSettings{
		Name: op.Register(), Earlier: e.names.registers(), Namespace: s.Namespace, Client: e.server.keeper(prune.RegisterResource, s.Namespace), Manager: op.Name, Managers: e.names.earlier(), Logged: e.faults, Log: e.log,
	})
	e.digests = progress.NewKey()
	e.key = prune.NewKey(prune.KeySettings{
		Name: op.DigestKey(), Namespace: s.Namespace, Client: e.server.keeper(prune.Secrets, s.Namespace), Manager: op.Name, Digests: e.digests,
	})
	e.events = events.New(events.Settings{
		Client: e.clients.Kubernetes, Operator: op.Name, Log: e.log, Metrics: e.metrics, Access: e.access, Ending: &e.ending,
	})
	e.hooks = activity.New(activity.Settings{Operator: op, Log: e.log, Memo: &e.memo, Held: e.elector.Sure, Clients: &e.others, Indexes: e.indexes.Live(), Unwatched: index.Unwatched{}, Events: e.events, Grace: e.grace()})
	e.recheck = preflight.NewRecheck(accessOwner{e}, e.op.Indexes(), e.catalog, e.checked, e.log)
	for _, spec := range op.Handled() {
		e.resources.Add(newResource(e, spec))
		e.metrics.Declare(spec.Name.String())
		e.access.Wake()
		e.recheck.Wake()
	}
	var err error
	if e.requests, err = newRequests(e); err != nil {
		return nil, err
	}
	e.metrics.Resources(e.stats)
	e.metrics.Indexes(e.indexes.Stats)
	e.metrics.MissingRights(e.access.Missing)
	e.metrics.Paused(e.pauses.stats)
	e.metrics.Deletions(e.limits.stats)
	return e, nil
}

// Run runs the operator until ctx ends. It starts startups, Events, informers, leadership and workers, in this order. It
// stops in the order that loses nothing: workers take no new keys, handlers get the grace period, cleanups run, Events
// are sent, informers stop, and the lease is released.
//
// A missing CRD or permission is no error: the resource waits, visibly. The error is from a startup, from a lock that
// cannot be used, or names handlers that did not end in time.
func (e *Engine) Run(ctx context.Context) error {
	ctx = logr.NewContext(ctx, transport.Quiet(e.log, e.faults)) // client-go logs with it
	var saying sync.WaitGroup
	defer saying.Wait()
	outer, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	saying.Go(func() { e.sayStart(outer) })
	if through, err := e.begin(ctx); !through {
		return err
	}
	if err := cmp.Or(e.requests.listen(ctx), e.events.Start(outer)); err != nil {
		return err
	}
	feedsCtx, feeds, endFeeds := e.bring(outer)
	var names []string
	for r := range e.resources.All {
		names = append(names, r.name)
	}
	e.log.Info("operator starts", "operator", e.op.Name, "resources", names)

	err := e.elector.Run(ctx, func(leads context.Context) error {
		e.register.Begin()
		e.key.Begin()
		feeds.Go(func() { e.register.MarkOrphaned(feedsCtx, e.op.Handled()) })
		e.pauses.await(leads)
		defer e.limits.begin(leads)()
		defer e.requests.begin(leads)()
		leaveErr := e.resources.Work(ctx, leads, term{grace: e.grace(), indexes: e.indexes, phase: &e.phase, log: e.log})
		if ctx.Err() != nil {
			e.hooks.Clean(outer)
			e.events.Stop()
			endFeeds()
		}
		return leaveErr
	})
	e.phase.leave()
	e.hooks.Clean(outer)
	endFeeds()
	e.events.Stop()
	e.log.Info("operator stopped", "operator", e.op.Name)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// bring runs all sources until end is called. The caller starts other goroutines that must end then in running.
func (e *Engine) bring(outer context.Context) (ctx context.Context, running *sync.WaitGroup, end func()) {
	ctx, stop := context.WithCancel(outer)
	running = &sync.WaitGroup{}
	running.Go(func() { e.sources.Run(ctx) })
	running.Go(func() { e.indexes.Run(ctx) })
	running.Go(func() { e.pauses.run(ctx) })
	e.resources.Run(ctx)
	running.Go(func() { e.requests.serve(ctx) }) // waits for the sources of resources
	running.Go(func() { e.recheck.Run(ctx) })
	running.Go(func() { e.outages.Attend(ctx, e.clients.Ask, e.serverBack) })
	running.Go(func() {
		e.settled(ctx)
		if ctx.Err() == nil {
			e.access.Run(ctx)
		}
	})
	return ctx, running, func() {
		stop()
		running.Wait()
		e.resources.Wait()
		for r := range e.resources.All {
			r.family.Retired.Wait()
		}
		e.watches.Close()
	}
}

// begin runs the startups, and reports whether they are through. It returns no error if the process was asked to stop.
func (e *Engine) begin(ctx context.Context) (through bool, err error) {
	if err = e.hooks.Start(ctx); err == nil {
		return true, nil
	}
	e.events.Stop()
	e.watches.Close()
	if stopped := ctx.Err(); stopped != nil && errors.Is(err, stopped) {
		err = nil
	}
	return false, err
}

// settled waits until all sources run or have failed, or until ctx ends.
func (e *Engine) settled(ctx context.Context) {
	e.sources.Settled(ctx)
	e.indexes.Settled(ctx)
	e.resources.Settled(ctx)
}

func (e *Engine) grace() time.Duration {
	return cmp.Or(max(e.op.Settings.GracePeriod, 0), dsl.DefaultGracePeriod)
}
