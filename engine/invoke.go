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

// errPanic is wrapped by the error of a handler that panicked.
var errPanic = errors.New("panic")

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
	if err = h.Func(ctx, request); err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("the timeout of %s passed: %w", h.Timeout, err)
		}
		return err
	}
	return dsl.Permanent(request.Patch.Err())
}

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
	case errors.Is(err, context.DeadlineExceeded):
		return ops.Timeout
	}
	return ops.Retry
}
