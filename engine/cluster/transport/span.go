// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// Span is the time in which one attempt of a handler may act: until its timeout, its return, the end of the process or of its
// leadership. The handler's requests end with the span, whatever context it uses. The span ends when all entered calls have
// returned, so when the reconcile goes on, no request of the handler is running.
type Span struct {
	held Held
	ctx  context.Context
	over context.CancelFunc
	lost atomic.Bool

	mu     sync.Mutex // no request enters while the span ends
	inside sync.WaitGroup
}

// NewSpan returns a span whose attempt has not begun.
func NewSpan(held Held) *Span { return &Span{held: held} }

// Begin begins the attempt, which ends with ctx at the latest, and returns its context, which ends with the span. Call it once,
// before using the span.
func (s *Span) Begin(ctx context.Context) context.Context {
	s.ctx, s.over = context.WithCancel(ctx)
	return s.ctx
}

// End ends the attempt. It returns when all entered calls have returned.
func (s *Span) End() {
	s.mu.Lock()
	s.over()
	s.mu.Unlock()
	s.inside.Wait()
}

// Over reports whether the attempt has ended.
func (s *Span) Over() bool { return s.ctx.Err() != nil }

// Lost reports whether a write of the attempt was refused because the process did not lead. Then the outcome of the attempt says
// nothing about its object.
func (s *Span) Lost() bool { return s.lost.Load() }

// Read returns a context for requests that read. It ends with ctx and with the span. The function releases it, and must be
// called.
func (s *Span) Read(ctx context.Context) (context.Context, context.CancelFunc) {
	joined, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	return joined, func() { stop(); cancel(nil) }
}

// Enter is Read for calls that change the state of the reconcile, or the memory that outlives it: the span does not end before the
// function was called. The error means that the span is over.
func (s *Span) Enter(ctx context.Context) (context.Context, context.CancelFunc, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ctx.Err(); err != nil {
		return nil, nil, fmt.Errorf("the handler's time is over: %w", err)
	}
	s.inside.Add(1)
	joined, cancel := s.Read(ctx)
	var once sync.Once
	return joined, func() { once.Do(func() { cancel(); s.inside.Done() }) }, nil
}

// Write is Enter for a write. The error means that the span is over, or that leadership is lost; then it wraps [ErrNotLeading].
func (s *Span) Write(ctx context.Context) (context.Context, context.CancelFunc, error) {
	joined, done, err := s.Enter(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("writing: %w", err)
	}
	if !s.held(joined) {
		s.lost.CompareAndSwap(false, joined.Err() == nil) // the end of the attempt is no loss
		done()
		return nil, nil, fmt.Errorf("writing: %w", ErrNotLeading)
	}
	return joined, done, nil
}
