// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// TypedRequest is a [Request] with the object decoded into the author's type. See [Typed].
type TypedRequest[T any] struct {
	*Request
	// Object is Subject.Object, decoded for this run of the handler. The handler's changes in it are written, as if
	// it had made them in Patch.
	Object *T
	// Old is Subject.Old, decoded; nil if that is nil. A field that had another type then is zero; Diff has it.
	Old *T
}

// Typed makes a handler of a function that gets its object in the author's type. The type is one of k8s.io/api, or
// a struct with json tags, which may embed metav1.TypeMeta and ObjectMeta and needs only the fields that the
// function uses. It needs no generated code and no registration.
//
// The function's changes in r.Object are sent: the object before and after are compared, and the difference is
// added to r.Patch. It therefore leads to the same requests as r.Patch, and also counts when the handler fails (see
// [Patch]). Fields that the struct does not have stay. A field that did not exist and is still zero is not written.
// In particular:
//
//   - A field with omitempty that is set to zero is removed, with everything in it.
//   - A list is sent as a whole, as in any merge patch. Its entries keep the fields that the struct does not have.
//     An entry is recognised if it is unchanged, wherever it is; otherwise by its name, key, id or type; if
//     entries have none of these, by its index. Changed entries lose such fields only when a list without these
//     keys has become shorter.
//   - Entries of status.conditions are set one by one, as by [Patch.SetCondition], with the transition time. So
//     conditions that others set in the meantime stay. The list is sent as a whole only if an entry is removed or
//     has fields of its own.
//   - In the metadata, labels, annotations and owner references can be changed. Any other change there fails the
//     handler for good. Bookkeeping annotations of operators and kubectl stay.
//
// If an object does not fit the type, the error names the field, the function is not called, and it is retried with
// the handler's back-off. A field of the type that the cache does not hold (see [Resource.Keep]) is a fault that
// validation reports, whether the function reads the field or not. If Typed is called by other code, the handler
// fails for good instead.
func Typed[T any](fn func(context.Context, *TypedRequest[T]) error) Func {
	return typedCode{of: reflect.TypeFor[T](), handle: func(ctx context.Context, r *Request) error {
		typed, err := typedRequest[T](r)
		if err != nil {
			return err
		}
		before, err := leanTree(typed.Object)
		if err != nil {
			return Permanent(fmt.Errorf("encoding object: %w", err))
		}
		err = fn(ctx, typed)
		after, wrong := leanTree(typed.Object)
		if r.Patch == nil {
			r.Patch = NewPatch() // only in a test without an engine
		}
		if wrong != nil {
			r.Patch.note(fmt.Errorf("encoding object: %w", wrong))
			return err
		}
		plain.Fill(before, after, reflect.TypeFor[T]())
		r.Patch.take(r.Object, before, after)
		return err
	}}.handler()
}

func typedRequest[T any](r *Request) (*TypedRequest[T], error) {
	object, err := As[T](r.Object)
	if err != nil {
		return nil, err
	}
	typed := &TypedRequest[T]{Request: r, Object: object}
	if r.Old != nil {
		if typed.Old, err = decodeInto[T](r.Old); err != nil {
			r.Log.V(1).Info("what the handler handled last does not fit its type", "error", err.Error())
		}
	}
	return typed, nil
}

// leanTree returns a typed object as a tree, without null and without empty structs that lack omitempty.
func leanTree(object any) (map[string]any, error) {
	decoded, err := plain.Lean(object)
	if err != nil {
		return nil, err
	}
	tree, isMap := decoded.(map[string]any)
	if !isMap {
		return nil, errors.New("it is not an object in JSON")
	}
	return tree, nil
}
