// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/sandbox/clock"
)

// Controllers make the workloads of a cluster come alive.
type Controllers struct {
	loop *loop
	// ended is closed when they do not run any more.
	ended chan struct{}
}

// New returns controllers. The config needs all rights on the kinds of the package's table.
func New(config *rest.Config, settings Settings) (*Controllers, error) {
	reach, err := newLink(config)
	if err != nil {
		return nil, fmt.Errorf("connecting workloads: %w", err)
	}
	if settings.Plan == nil {
		settings.Plan = NewPlan()
	}
	if settings.Clock == nil {
		settings.Clock = clock.Real{}
	}
	kinds := table()
	if settings.AllKinds {
		kinds = append(kinds, rareTable()...)
	}
	l := &loop{
		link: reach, plan: settings.Plan, clock: settings.Clock, nodes: max(1, settings.Nodes), queue: newQueue(kinds, settings.Clock), kinds: kinds,
		caches: map[string]*cache{}, waits: map[key]wait{}, awaited: map[key][]key{}, failures: map[key]int{},
		versions: versions{reached: map[string]int64{}}, asks: make(chan chan struct{}), allKinds: settings.AllKinds,
	}
	for _, k := range l.kinds {
		l.caches[k.name] = newCache()
	}
	if settings.Events {
		l.events = newRecorder(reach, settings.Clock)
	}
	return &Controllers{l, make(chan struct{})}, nil
}

// Run makes workloads come alive until the context ends, once. Errors of single objects go to the logger of the context, and
// are tried again.
func (c *Controllers) Run(ctx context.Context) error {
	defer close(c.ended)
	return c.loop.run(ctx)
}

// ErrEnded is the error of [Controllers.Settle] when the controllers do not run any more.
var ErrEnded = errors.New("the controllers have ended")

// Settle returns when the controllers have taken in the objects of these versions, and have nothing more to do until a timer
// or a client moves something.
func (c *Controllers) Settle(ctx context.Context, versions map[schema.GroupVersionResource]int64) error {
	for _, k := range c.loop.kinds {
		if err := c.loop.versions.wait(ctx, c.ended, k.name, versions[k.resource]); err != nil {
			return err
		}
	}
	idle := make(chan struct{})
	select {
	case c.loop.asks <- idle:
	case <-c.ended:
		return ErrEnded
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-idle:
		return nil
	case <-c.ended:
		return ErrEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}
