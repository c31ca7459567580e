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

// TypedRequest is a [Request] with the object in a type of the author's. See [Typed].
type TypedRequest[T any] struct {
	*Request
	// Object is Subject.Object, decoded for this run of the handler: what it changes in it is what it wants, as if it had
	// said so to the Patch.
	Object *T
	// Old is Subject.Old, nil where that is. A field that is of another type than it was then is left zero; Diff has it.
	Old *T
}

// Typed makes a handler of a function that gets its object in a type of its own: a struct with json tags, which may
// embed metav1.TypeMeta and ObjectMeta and needs no more fields than the function uses, or one of k8s.io/api. Nothing is
// generated and nothing registered.
//
// What the function changes in r.Object is sent, and nothing else: what it read is compared with what it left,
// and the difference is laid on r.Patch, which counts when the handler fails, too (see [Patch]). So it makes the requests
// that r.Patch would make. Fields that the struct does not have stay, and a field that was not there and is zero still is
// not written. In particular:
//
//   - A zero value with omitempty is none: what had another value is removed, with what is in it.
//   - A list is sent as a whole, as in any merge patch. Its entries keep fields that the struct does not have: those that
//     are as they were, wherever they stand, those of the same name, key, id or type, and, where entries have none of
//     these, those at the same index. Only when a list of these has become shorter, changed entries lose them.
//   - Entries of status.conditions are set one by one, as [Patch.SetCondition] does, transition time and all, so conditions
//     that others set meanwhile stay. Only where one is removed, or has fields of its own, the list is sent as a whole.
//   - Of the metadata labels, annotations and owner references can be changed; another change fails the handler for good.
//     Annotations that are bookkeeping of operators and kubectl stay.
//
// An object that does not fit the type is an error, which names the field; the handler's function is not called then, and is
// tried again with the handler's back-off. A field that the cache does not hold (see [Resource.Keep]) is a fault when the operator
// is validated, whether the function reads it or not; where Typed is within other code, its handler fails for good.
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
			r.Patch = NewPatch() // in a test that has no engine
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

// leanTree is what a typed object says: null and structs that it cannot leave out are nothing.
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
