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
	// Nodes is the number of nodes, which are named node-0 and so on. 0 means 1.
	Nodes int
	// NoWorkloads leaves workloads as clients write them, and makes no nodes: no Pods appear for a Deployment.
	NoWorkloads bool
	// Plan says what becomes of which workloads. Nil means that all become ready at once.
	Plan *workloads.Plan
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
	// keeper keeps the state; nil if it is not kept.
	keeper     *keeper
	kept       bool
	kubeconfig kubeconfig
	requests   recorder

	cancel context.CancelFunc
	work   sync.WaitGroup
}

// Start starts a sandbox, which serves when Start returns. It ends with [Sandbox.Stop], or when the context does; then
// Stop still removes its files.
func Start(ctx context.Context, o Options) (_ *Sandbox, err error) {
	ctx, cancel := context.WithCancel(ctx)
	settings := complete.Settings()
	settings.OwnWrites = o.OwnWrites
	s := &Sandbox{server: server.New(settings), cancel: cancel}
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	o.Context = cmp.Or(o.Context, "sandbox")
	if err := s.open(o); err != nil {
		return nil, err
	}
	if err := s.listen(ctx, o); err != nil {
		return nil, err
	}
	if !o.NoWorkloads {
		s.work.Go(func() { s.enliven(ctx, o) })
	}
	if s.keeper != nil {
		s.work.Go(func() {
			s.keeper.run(ctx, s.server, func(err error) { o.Log.Error(err, "Sandbox fails") })
		})
	}
	return s, nil
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

// enliven makes workloads come alive until the context ends.
func (s *Sandbox) enliven(ctx context.Context, o Options) {
	config := configOf(s.server.Admin())
	config.UserAgent = "workloads"
	if o.WrapWorkloads != nil {
		config.Wrap(o.WrapWorkloads)
	}
	err := workloads.Run(logr.NewContext(ctx, o.Log), config, workloads.Settings{Nodes: o.Nodes, Plan: o.Plan})
	if err != nil && !errors.Is(err, context.Canceled) {
		o.Log.Error(err, "Sandbox fails")
	}
}

// Config returns a config with all rights for clients in this process, whose requests do not go by the port.
func (s *Sandbox) Config() *rest.Config { return configOf(s.seen(s.server.Admin())) }

func configOf(transport http.RoundTripper) *rest.Config {
	return &rest.Config{
		Host: "http://sandbox", Transport: transport, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON},
	}
}

// Kubeconfig returns the absolute path of the kubeconfig file.
func (s *Sandbox) Kubeconfig() string { return s.kubeconfig.path }

// Kept reports whether the sandbox has begun with objects that an earlier one has kept.
func (s *Sandbox) Kept() bool { return s.kept }

// Stop ends the sandbox, keeps its objects if it is to, and removes its kubeconfig. It returns when nothing of it runs any
// more. A second call does nothing.
func (s *Sandbox) Stop() {
	s.cancel()
	s.work.Wait()
	s.Leave()
}

// Leave keeps the objects and removes the files, as Stop does, but waits for nothing: for a process that ends at once.
func (s *Sandbox) Leave() {
	s.kubeconfig.remove() // before another process may take the folder
	if s.keeper != nil {
		s.keeper.close(s.server)
	}
}
