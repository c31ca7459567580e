// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// errNotLeading is the error of a write by a process that does not lead (any more).
var errNotLeading = errors.New("this process does not lead")

// span is the time in which one attempt of a handler may act: until its timeout, its return, the
// end of the process or of its leadership. Whatever context a handler passes on, its requests end
// with the span.
type span struct {
	ctx  context.Context
	held func(context.Context) bool
	// warned: the attempt has reported a warning of its own.
	warned atomic.Bool
}

// join returns a context that ends with ctx and with the span.
func (s *span) join(ctx context.Context) (context.Context, context.CancelFunc) {
	joined, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	return joined, func() { stop(); cancel(nil) }
}

// write is join for a write: it is refused when the span is over or leadership is lost.
func (s *span) write(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, nil, fmt.Errorf("writing: the handler's time is over: %w", err)
	}
	if !s.held(ctx) {
		return nil, nil, fmt.Errorf("writing: %w", errNotLeading)
	}
	joined, cancel := s.join(ctx)
	return joined, cancel, nil
}
