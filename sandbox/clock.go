// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/handwerk-dev/handwerk/sandbox/clock"
	"github.com/handwerk-dev/handwerk/sandbox/workloads"
)

// ClockMode says how time passes in a sandbox.
type ClockMode string

const (
	// RealClock follows the machine's clock. It is the default.
	RealClock ClockMode = "real"
	// StoppedClock stands still but for [Clock.Advance]. It stands at the time of the start, or where that of Options.Keep stood.
	StoppedClock ClockMode = "stopped"
)

var (
	// ErrRealClock is the error of [Clock.Advance] for a sandbox that goes by the clock of the machine.
	ErrRealClock = errors.New("the clock is that of the machine; start a sandbox with a stopped one, as operator sandbox --clock stopped does")
	// ErrStopped is the error of [Clock.Advance] after [Sandbox.Stop].
	ErrStopped = errors.New("the sandbox has stopped")
)

// Clock is the time of a sandbox, for timestamps of objects, deadlines, delays, schedules and the ends of tokens.
// Clients have clocks of their own. Its methods are safe for use by several goroutines.
type Clock struct {
	// stopped is nil for the clock of the machine.
	stopped *clock.Stopped
	// settle returns when the sandbox has nothing to do at the present time.
	settle func(context.Context) error
	// ended is closed when the sandbox ends.
	ended <-chan struct{}
	// turn is full while an Advance is under way: the next one begins where it ends.
	turn chan struct{}
}

// Now returns the time of the sandbox.
func (c *Clock) Now() time.Time { return c.source().Now() }

// source returns the clock of the server and of the workloads.
func (c *Clock) source() clock.Clock {
	if c.stopped == nil {
		return clock.Real{}
	}
	return c.stopped
}

// Advance lets time pass in a sandbox with a stopped clock. It goes from one thing that becomes due to the next one, and waits
// until the workloads have done what they can do then. So after an hour a CronJob has made all its Jobs, and these have ended.
// It takes as long as this work. Advance by 0 waits for what can be done now.
//
// It does not wait for clients. When the context ends before, the clock stays where it has come.
func (c *Clock) Advance(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-c.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := c.advance(ctx, d)
	if err == nil {
		return nil
	}
	select {
	case <-c.ended:
		err = ErrStopped
	default:
	}
	return fmt.Errorf("advancing the clock: %w", err)
}

func (c *Clock) advance(ctx context.Context, d time.Duration) error {
	if c.stopped == nil {
		return ErrRealClock
	}
	if d < 0 {
		return fmt.Errorf("time does not go back by %s", -d)
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	end := c.stopped.Now().Add(d)
	for {
		if err := c.settle(ctx); err != nil {
			return err
		}
		if !c.stopped.Next(end) {
			return nil
		}
	}
}

// newClock returns a clock that ends with a context.
func (s *Sandbox) newClock(ctx context.Context, mode ClockMode) (*Clock, error) {
	out := &Clock{settle: s.settle, ended: ctx.Done(), turn: make(chan struct{}, 1)}
	switch mode {
	case "", RealClock:
	case StoppedClock:
		out.stopped = clock.NewStopped(time.Now())
	default:
		return nil, fmt.Errorf("there is no clock %q, only %s and %s", mode, RealClock, StoppedClock)
	}
	return out, nil
}

// settle returns when nothing is left to do at the time of a stopped clock. Functions of the server and the workloads move each
// other, so both have to be at rest while nothing is written.
func (s *Sandbox) settle(ctx context.Context) error {
	for {
		version := s.server.Version()
		if err := s.clock.stopped.Wait(ctx); err != nil {
			return err
		}
		if s.controllers != nil {
			if err := s.controllers.Settle(ctx, s.server.Versions(workloads.Resources()...)); err != nil {
				return err
			}
		}
		if s.server.Version() == version {
			return nil
		}
	}
}
