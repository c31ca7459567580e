// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/cluster/backoff"
)

const (
	// rightAgain and rightAgainMost bound the wait before a missing right is asked for again.
	rightAgain     = time.Second
	rightAgainMost = time.Minute
	// pauseUnseen is for how long a pause holds after the account has lost the right to watch its source.
	pauseUnseen = 10 * time.Minute
)

// pauseWatch is a watch of objects that declare pauses. Without the right to watch, the operator works without it.
type pauseWatch struct {
	engine *Engine
	source watch.Source
	// name is the name of the only object that is watched; empty for all.
	name string
	// on handles the events. lacks is the log line for a missing right.
	on    func(watch.Event)
	lacks string
	// forget drops the known pauses. Nil: they stay.
	forget func()
	// forbidden: the last failure of the watch was a missing right. lost: it has been so for a minute.
	forbidden, lost atomic.Bool
	// tried is closed when the watch is open, or is not allowed.
	tried chan struct{}
	once  sync.Once

	mu sync.Mutex
	// watched is nil before the watch is open.
	watched *watch.Handle
}

// OnEvent implements [watch.Handler].
func (s *pauseWatch) OnEvent(ev watch.Event) { s.on(ev) }

// run watches until ctx ends. It starts when the account has the right.
func (s *pauseWatch) run(ctx context.Context) {
	defer s.end()
	for ctx.Err() == nil {
		var wait time.Duration
		for !s.open(ctx) {
			var in time.Duration
			wait, in = backoff.Next(wait, rightAgain, rightAgainMost)
			select {
			case <-ctx.Done():
				return
			case <-time.After(in):
			}
		}
		s.keep(ctx)
	}
}

// keep watches until ctx ends, or until the right has been missing for so long that known pauses no longer hold.
func (s *pauseWatch) keep(ctx context.Context) {
	s.forbidden.Store(false)
	if s.forget == nil {
		<-ctx.Done()
		return
	}
	log := s.engine.log.WithValues("object", s.source.Namespace+"/"+s.name)
	for since := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(rightAgainMost):
		}
		switch forbidden := s.forbidden.Load(); {
		case !forbidden:
			if since = time.Now(); s.lost.Swap(false) {
				log.Info("operator can be paused again")
			}
		case !s.lost.Swap(true):
			log.Info(s.lacks, logmark.Warning, true, "holds", pauseUnseen.String())
		case time.Since(since) >= pauseUnseen:
			s.end()
			s.forget()
			return
		}
	}
}

// open opens the watch. It returns false if it has to be tried again: the right is missing, or the API server does not
// answer.
func (s *pauseWatch) open(ctx context.Context) bool {
	missing, err := s.engine.catalog.Lacking(ctx, authorizationv1.ResourceAttributes{
		Version: s.source.GVR.Version, Resource: s.source.GVR.Resource, Namespace: s.source.Namespace, Name: s.name,
	}, "list", "watch")
	if err != nil {
		return false
	}
	if len(missing) > 0 {
		s.settle(func() { s.engine.log.Info(s.lacks, logmark.Warning, true, "object", s.source.Namespace+"/"+s.name) })
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h, err := s.engine.watches.Open(ctx, s.source, s)
	if err == nil {
		s.watched = h
		s.settle(func() {})
	}
	return err == nil // otherwise the engine is closed
}

// end ends the watch.
func (s *pauseWatch) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watched != nil {
		s.watched.Close()
		s.watched = nil
	}
}

// settle notes once that the watch is open, or is not allowed.
func (s *pauseWatch) settle(say func()) {
	s.once.Do(func() {
		say()
		close(s.tried)
	})
}

// seen reports whether await would return at once.
func (s *pauseWatch) seen() bool {
	select {
	case <-s.tried:
	default:
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watched == nil || s.watched.State().Synced
}

// await waits until the events of the first listing have come, if the watch is open.
func (s *pauseWatch) await(ctx context.Context) {
	select {
	case <-s.tried:
	case <-ctx.Done():
		return
	}
	s.mu.Lock()
	h := s.watched
	s.mu.Unlock()
	if h != nil {
		h.WaitSynced(ctx)
	}
}
