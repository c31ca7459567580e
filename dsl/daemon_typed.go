// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"context"
	"fmt"
	"reflect"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// TypedDaemonRequest is a [DaemonRequest] with the object decoded into the author's type. See [TypedDaemon].
type TypedDaemonRequest[T any] struct {
	*DaemonRequest
	// Object is the decoded object at the beginning of this run. Changes in it have no effect; use Change.
	Object *T
}

// TypedDaemon makes a daemon of a function that gets its object in the author's type; [Typed] says which types are
// possible. When an object does not fit the type, the error names the field, the function is not called, and the
// daemon runs again after its back-off.
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

// Change calls edit with the current object, and sends the changes that edit made, as [Typed] does, together with
// Patch.
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
