// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/sandbox/server"
)

// Process is a running operator, like one of its pods.
type Process struct {
	cluster *Cluster
	op      *dsl.Operator
	name    string
	adjust  []func(*engine.Settings)

	link   *server.Client
	engine *engine.Engine
	cancel context.CancelFunc
	done   chan struct{}
	err    error

	// guarded by the cluster's lock
	writes []numbered
	left   int // writes before the crash; 0 means no crash
	// crashed: the crash has come.
	crashed bool
}

// Start runs an operator until the test ends or the process is stopped, and settles. Several processes of one
// operator may run at once. Their pods have the operator's name with a number, as in foo-0; they do not exist as
// objects unless the test creates them. The functions may adjust the engine's settings. If the test has failed, the
// last 1,000 lines of the log are printed, including those of handlers. A test that hangs prints nothing; for that,
// set the settings' Log to one that writes at once.
func (c *Cluster) Start(op *dsl.Operator, adjust ...func(*engine.Settings)) *Process {
	c.t.Helper()
	c.mu.Lock()
	p := &Process{cluster: c, op: op, name: fmt.Sprintf("%s-%d", op.Name, len(c.processes)), adjust: adjust}
	c.processes = append(c.processes, p)
	c.mu.Unlock()
	p.start()
	return p
}

// Stop asks the process to stop, as the kubelet does, waits for it, and returns its error. It does nothing if the
// process does not run.
func (p *Process) Stop() error {
	if p.cancel == nil {
		return nil
	}
	p.cancel()
	<-p.done
	p.cancel = nil
	p.cluster.Settle()
	return p.err
}

// Kill ends the process at once: none of its requests reaches the cluster any more. Running handlers are asked to
// stop, because a bubble cannot remove goroutines.
func (p *Process) Kill() {
	p.link.Sever()
	_ = p.Stop() // a killed process returns no error
}

// Restart starts the process again, with an empty memory; if it still runs, it is stopped first.
func (p *Process) Restart() {
	p.cluster.t.Helper()
	if err := p.Stop(); err != nil {
		p.cluster.t.Errorf("stopping operator: %v", err)
	}
	p.start()
}

// Sever separates the process from the cluster, like a broken network; Restore reconnects them.
func (p *Process) Sever() { p.link.Sever() }

// Restore is the opposite of Sever.
func (p *Process) Restore() { p.link.Restore() }

// CrashAfter disconnects the process for good at its n-th write request from now: the cluster handles that request,
// but the process does not get the response. Call Kill to stop the process.
func (p *Process) CrashAfter(n int) {
	p.cluster.mu.Lock()
	defer p.cluster.mu.Unlock()
	p.left = n
}

// Crashed reports whether the write request of [Process.CrashAfter] has come.
func (p *Process) Crashed() bool {
	p.cluster.mu.Lock()
	defer p.cluster.mu.Unlock()
	return p.crashed
}

// Engine returns the engine, for its reports.
func (p *Process) Engine() *engine.Engine { return p.engine }

// Config returns the process's config for the cluster: writes through it count as the operator's.
func (p *Process) Config() *rest.Config { return configFor(p.link, "handwerk/"+p.op.Name) }

func (p *Process) start() {
	c := p.cluster
	c.t.Helper()
	c.mu.Lock()
	p.left, p.crashed = 0, false
	c.mu.Unlock()
	p.link = c.server.Client(p.before, p.after)
	settings := engine.Settings{
		Config: p.Config(), Log: c.log.logger(p.name),
		Identity: p.name, PodName: p.name,
		Missed: c.missed, Webhooks: engine.Webhooks{Address: "127.0.0.1:0", Listen: c.server.Listen},
	}
	if p.op.NeedsWebhooks() {
		settings.Namespace = c.space()
	}
	for _, adjust := range p.adjust {
		adjust(&settings)
	}
	var err error
	if p.engine, err = engine.New(p.op, settings); err != nil {
		c.t.Fatal(err)
	}
	var ctx context.Context
	ctx, p.cancel = context.WithCancel(c.base)
	done := make(chan struct{})
	p.done = done
	go func() {
		defer close(done)
		p.err = p.engine.Run(ctx)
	}()
	c.Settle()
}

// space returns the namespace of operators that answer webhooks, and makes it at first. It is none in which tests have objects, since
// rules about built-in kinds do not hold in an operator's own namespace.
func (c *Cluster) space() string {
	const name = "handwerk-system"
	if c.Get("namespaces.v1", "", name) == nil {
		c.create(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}})
	}
	return name
}

// before is called for each request of the process before it reaches the cluster.
func (p *Process) before(r server.Request) error {
	if err := p.cluster.before(r); err != nil || !counts(r) {
		return err
	}
	p.cluster.mu.Lock()
	crash := p.left == 1
	p.left = max(0, p.left-1)
	p.crashed = p.crashed || crash
	p.cluster.mu.Unlock()
	if crash {
		p.link.Sever() // the cluster still gets this request, and its response is lost
	}
	return nil
}

// after is called for the response to a request of the process. An error loses the response.
func (p *Process) after(ctx context.Context, r server.Request, code int) error {
	if counts(r) {
		p.cluster.mu.Lock()
		p.writes = append(p.writes, numbered{writeOf(r, code, time.Now()), r.Number})
		p.cluster.mu.Unlock()
	}
	return p.cluster.after(ctx, r)
}
