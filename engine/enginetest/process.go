// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/enginetest/internal/apiserver"
)

// Process is an operator that runs, as one pod of it does.
type Process struct {
	cluster *Cluster
	op      *dsl.Operator
	name    string
	adjust  []func(*engine.Settings)

	link   *apiserver.Client
	engine *engine.Engine
	cancel context.CancelFunc
	done   chan struct{}
	err    error

	// guarded by the cluster's lock
	writes []Write
	left   int // writes until the crash, when that is not zero
}

// Start runs an operator until the test ends or the process is stopped, and waits until it has
// nothing left to do. Several processes of one operator may run at once: in pods that are named
// after the operator and numbered, as in foo-0, though these are no objects unless the test
// creates them. The functions may adjust the engine's settings. Their log is shown when the test has
// failed: its last 1,000 lines, those of handlers among them. A test that hangs shows nothing; there, set the
// settings' Log to one that writes at once.
func (c *Cluster) Start(op *dsl.Operator, adjust ...func(*engine.Settings)) *Process {
	c.t.Helper()
	c.mu.Lock()
	p := &Process{cluster: c, op: op, name: fmt.Sprintf("%s-%d", op.Name, len(c.processes)), adjust: adjust}
	c.processes = append(c.processes, p)
	c.mu.Unlock()
	p.start()
	return p
}

// Stop asks the process to stop, as the kubelet does, and waits until it has. The error is that of
// its run. A process that does not run is left alone.
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

// Kill ends the process at once: no request of it reaches the cluster any more. Handlers that run
// are asked to stop, for a bubble cannot take goroutines away.
func (p *Process) Kill() {
	p.link.Sever()
	_ = p.Stop() // nobody hears the last words of the dead
}

// Restart starts the process anew, with an empty memory; if it still runs it is stopped first.
func (p *Process) Restart() {
	p.cluster.t.Helper()
	if err := p.Stop(); err != nil {
		p.cluster.t.Errorf("stopping operator: %v", err)
	}
	p.start()
}

// Sever separates the process from the cluster, as a broken network does; Restore joins them again.
func (p *Process) Sever() { p.link.Sever() }

// Restore is the opposite of Sever.
func (p *Process) Restore() { p.link.Restore() }

// CrashAfter cuts the process off, for good, with its n-th write request from now: the cluster does
// it, but the process does not get to know. Call Kill to clear it away.
func (p *Process) CrashAfter(n int) {
	p.cluster.mu.Lock()
	defer p.cluster.mu.Unlock()
	p.left = n
}

// Engine is the engine, for its reports.
func (p *Process) Engine() *engine.Engine { return p.engine }

// Config reaches the cluster as the process does: what is written through it counts as the
// operator's.
func (p *Process) Config() *rest.Config { return configFor(p.link, "handwerk/"+p.op.Name) }

func (p *Process) start() {
	c := p.cluster
	c.t.Helper()
	c.mu.Lock()
	p.left = 0
	c.mu.Unlock()
	p.link = c.server.Client(p.before, p.after)
	settings := engine.Settings{
		Config: p.Config(), Log: c.log.logger(p.name),
		Identity: p.name, PodName: p.name,
	}
	for _, adjust := range p.adjust {
		adjust(&settings)
	}
	var err error
	if p.engine, err = engine.New(p.op, settings); err != nil {
		c.t.Fatal(err)
	}
	var ctx context.Context
	ctx, p.cancel = context.WithCancel(context.Background())
	done := make(chan struct{})
	p.done = done
	go func() {
		defer close(done)
		p.err = p.engine.Run(ctx)
	}()
	c.Settle()
}

// before sees a request of the process on its way to the cluster.
func (p *Process) before(r apiserver.Request) error {
	if err := p.cluster.before(r); err != nil || !counts(r) {
		return err
	}
	p.cluster.mu.Lock()
	crash := p.left == 1
	p.left = max(0, p.left-1)
	p.cluster.mu.Unlock()
	if crash {
		p.link.Sever() // this request gets there still, its answer does not come back
	}
	return nil
}

// after sees the answer to a request of the process. An error loses the answer.
func (p *Process) after(ctx context.Context, r apiserver.Request, code int) error {
	if counts(r) {
		p.cluster.mu.Lock()
		p.writes = append(p.writes, writeOf(r, code))
		p.cluster.mu.Unlock()
	}
	return p.cluster.after(ctx, r)
}
