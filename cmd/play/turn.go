// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/cluster/crd"
)

// grace is how long handlers go on when the operator starts again. It is short, because somebody waits.
const grace = 100 * time.Millisecond

// identity is that of the process among those of the operator.
const identity = "play"

// turn is one run of the operator, from a change of the configuration to the next. Nil is one that has ended.
type turn struct {
	op *dsl.Operator
	// before is the operator that was replaced, which runs again if a startup of this one fails; nil without one.
	before *dsl.Operator
	cancel context.CancelFunc
	done   chan struct{}
	err    error // valid after done
}

// make installs the CRDs of an operator and makes it ready to run.
func (p *player) make(ctx context.Context, op *dsl.Operator) (*engine.Engine, error) {
	config, log := p.place.operator(op.Name, p.lines), p.lines.logger()
	op.Settings.GracePeriod = grace
	namespace := p.Namespace
	if p.Cluster != nil { // the server in memory may not have the one of the lock
		namespace = cmp.Or(op.Settings.LeaderElection.Namespace, namespace)
	}
	if p.Cluster == nil || op.Settings.LeaderElection.Mode == dsl.LeaderLife { // a leader for life is a Pod
		op.Settings.LeaderElection = dsl.LeaderElection{}
	}
	if len(crdsOf(op)) > 0 {
		settings := crd.Settings{Log: logr.Discard(), TakeOver: p.Cluster == nil, AllowBreaking: p.Cluster == nil} // writes have lines
		if err := crd.Install(ctx, op, config, settings); err != nil {
			return nil, err
		}
	}
	e, err := engine.New(op, engine.Settings{
		Config: config, Log: log, Namespace: namespace, Identity: identity, PodName: identity, Webhooks: engine.Webhooks{Address: "127.0.0.1:0"},
	})
	if err != nil {
		return nil, fmt.Errorf("making operator %s: %w", op.Name, err)
	}
	return e, nil
}

// run begins a turn of op in the place of an operator that has run before; nil if there was none.
func run(ctx context.Context, op, before *dsl.Operator, e *engine.Engine) *turn {
	ctx, cancel := context.WithCancel(ctx)
	t := &turn{op: op, before: before, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(t.done)
		if err := e.Run(ctx); err != nil {
			t.err = fmt.Errorf("running operator %s: %w", op.Name, err)
		}
	}()
	return t
}

// ended returns a channel that is closed when the run has ended.
func (t *turn) ended() <-chan struct{} {
	if t == nil {
		return nil
	}
	return t.done
}

// operator returns the operator of a turn, or nil.
func (t *turn) operator() *dsl.Operator {
	if t == nil {
		return nil
	}
	return t.op
}

// stop ends the run and returns its error.
func (t *turn) stop() error {
	if t == nil {
		return nil
	}
	t.cancel()
	<-t.done
	return t.err
}
