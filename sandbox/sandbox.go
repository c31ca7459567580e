// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package sandbox runs a Kubernetes cluster in memory, for tests and for trying things: the API server listens on a port
// of this machine, and its workloads come alive. Any client may use it, by the kubeconfig that it writes or by
// [Sandbox.Config].
//
// It is ready after some milliseconds and needs no other program. It is not a cluster: no containers run, Pods only say
// so, and no network carries traffic.
package sandbox

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/server/complete"
	"github.com/handwerk-dev/handwerk/sandbox/server/local"
	"github.com/handwerk-dev/handwerk/sandbox/workloads"
)

// Options say what a sandbox is like. The zero value is a cluster of one node in which everything becomes ready at once.
type Options struct {
	// Address is where the API server listens. The default is a free port of 127.0.0.1.
	Address string
	// Kubeconfig is the path of the kubeconfig file, which is written with all rights. Start replaces a file there only if it
	// is empty, or left from a sandbox that no longer runs. The default is a file in Keep, or in a temporary folder.
	Kubeconfig string
	// Context is the name of the context in the kubeconfig. The default is "sandbox".
	Context string
	// Keep is a folder in which the objects are kept for the next start. Empty means that they end with the sandbox.
	Keep string
	// CRDs are files and folders with CRDs. Other objects in them are skipped.
	CRDs []string
	// Load are files and folders with objects that are there when the sandbox serves; see [Sandbox.LoadFiles]. The name "-"
	// stands for Input.
	Load []string
	// Input is what "-" in Load reads.
	Input io.Reader
	// Nodes is the number of nodes, which are named node-0 and so on. 0 means 1.
	Nodes int
	// NoWorkloads leaves workloads as clients write them, and makes no nodes: no Pods appear for a Deployment. Nor have namespaces
	// a ServiceAccount and a ConfigMap of their own, and Pods need no ServiceAccount.
	NoWorkloads bool
	// Plan says what becomes of which workloads. Nil means that all become ready at once. [Sandbox.Workloads] changes it.
	Plan *workloads.Plan
	// Clock says how time passes. The default is RealClock.
	Clock ClockMode
	// Record keeps the requests of clients for [Sandbox.Requests].
	Record bool
	// Log gets the faults that no caller sees: of workloads, and of objects that cannot be kept. The zero value drops them.
	Log logr.Logger
	// Wrap wraps the handler of requests that come by the port; nil leaves it as it is.
	Wrap func(s *Sandbox, next http.Handler) http.Handler
	// WrapWorkloads wraps the transport of those that make workloads come alive; nil leaves it as it is.
	WrapWorkloads func(next http.RoundTripper) http.RoundTripper
	// OwnWrites, if set, is called after each write that the server makes by itself, such as those of the garbage collector.
	OwnWrites func(server.OwnWrite)
}

// Sandbox is a cluster in memory. Its methods are safe for use by several goroutines.
type Sandbox struct {
	server *server.Server
	clock  *Clock
	// plan, which had the first rules at the start, and controllers make workloads come alive; nil if they do not.
	plan        *workloads.Plan
	first       []workloads.Rule
	controllers *workloads.Controllers
	// keeper keeps the state; nil if it is not kept.
	keeper     *keeper
	kept       bool
	kubeconfig kubeconfig
	requests   recorder

	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	clients []*server.Client
	stopped bool
}

// Start starts a sandbox, which serves when Start returns. It ends with [Sandbox.Stop]. If the context ends before, its port
// closes and workloads stand still; Stop still removes its files.
func Start(ctx context.Context, o Options) (_ *Sandbox, err error) {
	ctx, cancel := context.WithCancel(ctx)
	s := &Sandbox{requests: recorder{on: o.Record}, cancel: cancel}
	if err := s.build(ctx, o); err != nil {
		cancel()
		return nil, err
	}
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	o.Context = cmp.Or(o.Context, "sandbox")
	if err := s.open(o); err != nil {
		return nil, err
	}
	if err := s.loadOptions(o); err != nil {
		return nil, err
	}
	if err := s.listen(ctx, o); err != nil {
		return nil, err
	}
	if s.controllers != nil {
		s.work.Go(func() {
			if err := s.controllers.Run(logr.NewContext(ctx, o.Log)); err != nil && !errors.Is(err, context.Canceled) {
				o.Log.Error(err, "Sandbox fails")
			}
		})
	}
	if s.keeper != nil {
		s.work.Go(func() {
			s.keeper.run(ctx, s.server, func(err error) { o.Log.Error(err, "Sandbox fails") })
		})
	}
	return s, nil
}

// build makes the parts of a sandbox, which do nothing yet.
func (s *Sandbox) build(ctx context.Context, o Options) (err error) {
	if s.clock, err = s.newClock(ctx, o.Clock); err != nil {
		return err
	}
	settings := complete.Settings()
	settings.OwnWrites, settings.Clock, settings.Prompt = o.OwnWrites, s.clock.source(), s.clock.stopped != nil
	settings.Unfurnished = o.NoWorkloads
	settings.Unenforced = func(text string) { o.Log.Info(text) }
	s.server = server.New(settings)
	if o.NoWorkloads {
		return nil
	}
	if s.plan = o.Plan; s.plan == nil {
		s.plan = workloads.NewPlan()
	}
	s.first = s.plan.Rules()
	config := configOf(s.server.Admin())
	config.UserAgent = "workloads"
	if o.WrapWorkloads != nil {
		config.Wrap(o.WrapWorkloads)
	}
	s.controllers, err = workloads.New(config, workloads.Settings{Nodes: o.Nodes, Plan: s.plan, Clock: s.clock.source(), Events: true, AllKinds: true})
	return err
}

// open takes over the objects that are kept.
func (s *Sandbox) open(o Options) (err error) {
	if o.Keep == "" {
		return nil
	}
	if s.keeper, err = newKeeper(o.Keep); err != nil {
		return err
	}
	s.kept, err = s.keeper.load(s.server)
	return err
}

// listen opens the port and writes the kubeconfig.
func (s *Sandbox) listen(ctx context.Context, o Options) error {
	var err error
	if s.kubeconfig, err = newKubeconfig(ctx, o); err != nil {
		return err
	}
	handler := http.Handler(s.seen(s.server.Guarded()))
	if o.Wrap != nil {
		handler = o.Wrap(s, handler)
	}
	handler = &controls{s, handler}
	listener, err := local.Listen(ctx, s.server, cmp.Or(o.Address, "127.0.0.1:0"), handler)
	if err != nil {
		return err
	}
	s.work.Go(listener.Wait)
	content, err := listener.Kubeconfig(o.Context)
	if err != nil {
		return err
	}
	return s.kubeconfig.write(content)
}

// Config returns a config with all rights for clients in this process, whose requests do not go by the port.
func (s *Sandbox) Config() *rest.Config { return configOf(s.seen(s.server.Admin())) }

func configOf(transport http.RoundTripper) *rest.Config {
	return &rest.Config{
		Host: "http://sandbox", Transport: transport, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON},
	}
}

// Clock returns the time of the sandbox.
func (s *Sandbox) Clock() *Clock { return s.clock }

// Kubeconfig returns the absolute path of the kubeconfig file.
func (s *Sandbox) Kubeconfig() string { return s.kubeconfig.path }

// Kept reports whether the sandbox has begun with objects that an earlier one has kept.
func (s *Sandbox) Kept() bool { return s.kept }

// Compact makes the sandbox forget all earlier versions of its objects at once, as a real server does after some minutes. A list
// at such a version, the next page of one, and a watch that resumes from it get the error 410 Expired.
func (s *Sandbox) Compact() { s.server.Compact() }

// Stop ends the sandbox, keeps its objects if it is to, and removes its kubeconfig. Clients get errors from then on, and their
// watches end. It returns when nothing of it runs any more. A second call does nothing.
func (s *Sandbox) Stop() {
	s.cancel()
	s.work.Wait()
	s.sever()
	s.Leave()
}

// Leave keeps the objects and removes the files, as Stop does, but waits for nothing: for a process that ends at once.
func (s *Sandbox) Leave() {
	s.kubeconfig.remove() // before another process may take the folder
	if s.keeper != nil {
		s.keeper.close(s.server)
	}
}
