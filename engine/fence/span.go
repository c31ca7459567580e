// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"fmt"
)

// Span is the time in which one attempt of a handler may act: until its timeout, its return, the end of the
// process or of its leadership. Whatever context a handler passes on, its requests end with the span.
type Span struct {
	held Held
	ctx  context.Context
}

// NewSpan returns a span whose attempt has not begun.
func NewSpan(held Held) *Span { return &Span{held: held} }

// Begin begins the attempt, which ends with ctx. It must be called once, before the span is used.
func (s *Span) Begin(ctx context.Context) { s.ctx = ctx }

// Over reports whether the attempt has ended.
func (s *Span) Over() bool { return s.ctx.Err() != nil }

// Read returns a context for requests that read: it ends with ctx and with the span. The function gives
// back what it holds, and must be called.
func (s *Span) Read(ctx context.Context) (context.Context, context.CancelFunc) {
	joined, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	return joined, func() { stop(); cancel(nil) }
}

// Write is Read for a write. The error, which wraps [ErrNotLeading] where that is the reason, says that there is to
// be none: the span is over, or leadership is lost.
func (s *Span) Write(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, nil, fmt.Errorf("writing: the handler's time is over: %w", err)
	}
	if !s.held(ctx) {
		return nil, nil, fmt.Errorf("writing: %w", ErrNotLeading)
	}
	joined, cancel := s.Read(ctx)
	return joined, cancel, nil
}
