// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/ops"
)

// errPanic and errTimeout are wrapped by the errors of handlers that panicked, and that did not
// return in time.
var (
	errPanic   = errors.New("panic")
	errTimeout = errors.New("the timeout passed")
)

// invoke runs one attempt of a handler: with its deadline, and a panic turned into an error. The
// handler's context is ended when it returns, so nothing that it left behind writes later.
func invoke(ctx context.Context, h *dsl.Handler, request *dsl.Request, bind func(context.Context)) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if h.Timeout > 0 {
		var expire context.CancelFunc
		ctx, expire = context.WithTimeout(ctx, h.Timeout)
		defer expire()
	}
	bind(ctx)
	defer func() {
		if p := recover(); p != nil {
			request.Log.Info("handler panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	err = h.Func(ctx, request)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && err != nil:
		return fmt.Errorf("%w (%s): %w", errTimeout, h.Timeout, err)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%w (%s)", errTimeout, h.Timeout)
	case err != nil:
		return err
	}
	return dsl.Permanent(request.Patch.Err())
}

// overran reports whether what the handler wanted is void: its time was over, or it broke off.
func overran(err error) bool { return errors.Is(err, errTimeout) || errors.Is(err, errPanic) }

// ask asks a handler's predicate, and turns a panic into an error.
func ask(when dsl.Predicate, request *dsl.Request) (holds bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			holds, err = false, fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	return when(request)
}

// outcome names how an attempt ended.
func outcome(err error, failed bool) ops.Outcome {
	switch {
	case err == nil:
		return ops.Success
	case errors.Is(err, errPanic):
		return ops.Panic
	case failed:
		return ops.Failed
	case errors.Is(err, errTimeout):
		return ops.Timeout
	}
	return ops.Retry
}
