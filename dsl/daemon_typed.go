// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"context"
	"fmt"
	"reflect"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// TypedDaemonRequest is a [DaemonRequest] with the object in a type of the author's. See [TypedDaemon].
type TypedDaemonRequest[T any] struct {
	*DaemonRequest
	// Object is the object as it was when this run began, decoded. Changes in it are to no effect; see Change.
	Object *T
}

// TypedDaemon makes a daemon of a function that gets its object in a type of its own; see [Typed] for what that may be.
// An object that does not fit the type is an error, which names the field; the function is not called then, and the
// daemon is run again after its back-off.
func TypedDaemon[T any](fn func(context.Context, *TypedDaemonRequest[T]) error) DaemonFunc {
	return typedCode{of: reflect.TypeFor[T](), attend: func(ctx context.Context, r *DaemonRequest) error {
		object, err := As[T](r.Object)
		if err != nil {
			return err
		}
		return fn(ctx, &TypedDaemonRequest[T]{DaemonRequest: r, Object: object})
	}}.daemon()
}

// Current is [Live.Current], decoded.
func (r *TypedDaemonRequest[T]) Current() (*T, error) { return As[T](r.DaemonRequest.Current()) }

// Change has the object as it is now changed by a function, and sends what that has changed, as [Typed] does, with what
// Patch asks for.
func (r *TypedDaemonRequest[T]) Change(ctx context.Context, edit func(*T)) error {
	object := r.DaemonRequest.Current()
	typed, err := As[T](object)
	if err != nil {
		return err
	}
	before, err := leanTree(typed)
	if err != nil {
		return Permanent(fmt.Errorf("encoding object: %w", err))
	}
	edit(typed)
	after, err := leanTree(typed)
	if err != nil {
		return Permanent(fmt.Errorf("encoding object: %w", err))
	}
	plain.Fill(before, after, reflect.TypeFor[T]())
	r.Patch.take(object, before, after)
	return r.Flush(ctx)
}
