// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// As decodes an object into a type of the author's, or of k8s.io/api. It also takes an error and returns it, so it
// can be called on the results of a call:
//
//	deployment, err := dsl.As[appsv1.Deployment](r.Children.Get("deployments.v1.apps", name))
//
// For nil, as for a missing child, it returns nil. Names of fields are case-sensitive, as everywhere in Kubernetes.
// Fields that the type does not have are left out. The error names a field that does not fit its type.
func As[T any](o *unstructured.Unstructured, errs ...error) (*T, error) {
	if err := first(errs); err != nil || o == nil {
		return nil, err
	}
	out, err := decodeInto[T](o.Object)
	if err != nil {
		return nil, fmt.Errorf("decoding %s %s %s: %w", o.GetAPIVersion(), o.GetKind(), qualified(o.GetNamespace(), o.GetName()), err)
	}
	return out, nil
}

// AsList is [As] for several objects:
//
//	pods, err := dsl.AsList[corev1.Pod](r.Client.List(ctx, "pods.v1", r.Object.Namespace, "app=web"))
func AsList[T any](list []*unstructured.Unstructured, errs ...error) ([]*T, error) {
	if err := first(errs); err != nil {
		return nil, err
	}
	out := make([]*T, len(list))
	for i, o := range list {
		var err error
		if out[i], err = As[T](o); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Object converts a value to an object as [Children.Apply] and [Client] do: a map, or any value that is an object
// in JSON. Use it to look at the object, or to change it, before you apply it. The value must have an apiVersion, a
// kind and a name; in types of k8s.io/api the first two are in the TypeMeta.
//
// Server-side apply owns every field that it is sent, so Object leaves out fields that typed values contain without
// being asked: the status, the creation timestamp, null, and empty structs with omitempty, as the resources of a
// container or the target port of a Service. The result is a copy.
func Object(value any) (*unstructured.Unstructured, error) {
	var decoded any
	var err error
	typed := false
	switch v := value.(type) {
	case *unstructured.Unstructured:
		decoded, err = plain.Value(v.Object)
	case map[string]any:
		decoded, err = plain.Value(v)
	default:
		typed = true
		decoded, err = plain.Lean(v)
	}
	if err != nil {
		return nil, fmt.Errorf("reading object: %w", err)
	}
	tree, ok := decoded.(map[string]any)
	if !ok {
		return nil, errors.New("reading object: it is not an object in JSON")
	}
	u := &unstructured.Unstructured{Object: tree}
	delete(tree, "status")
	unstructured.RemoveNestedField(tree, "metadata", "creationTimestamp")
	if u.GetAPIVersion() == "" || u.GetKind() == "" || u.GetName() == "" {
		if typed {
			return nil, fmt.Errorf("reading object: apiVersion, kind and metadata.name are required: %T has the first two in its TypeMeta", value)
		}
		return nil, errors.New("reading object: apiVersion, kind and metadata.name are required")
	}
	return u, nil
}

func first(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// decodeInto decodes a tree as Kubernetes does. With an error, it also returns the fields that fit.
func decodeInto[T any](tree map[string]any) (*T, error) {
	out := new(T)
	err := decodeExactly(tree, out)
	if _, is := errors.AsType[*notInReadsError](err); is {
		return out, withoutUnlisted(tree, reflect.TypeFor[T](), err, func(tree any) error { return decodeExactly(tree, out) })
	}
	if err == nil {
		return out, nil
	}
	return out, misfit(tree, func(part any) error { return decodeExactly(part, new(T)) }, err)
}

func decodeExactly(value, out any) error {
	data, err := plain.AppendJSON(nil, value)
	if err != nil {
		return err
	}
	return utiljson.Unmarshal(data, out)
}

// misfit adds the field to an error of decoding. Types with their own decoding, as quantities, do not name it.
func misfit(value any, decode func(part any) error, err error) error {
	at := ""
	for wrap := func(part any) any { return part }; ; {
		step, inner, wrapped := descend(value, wrap, decode)
		if wrapped == nil {
			break
		}
		at, value, wrap = at+step, inner, wrapped
		err = decode(wrap(value))
	}
	if at == "" {
		return err
	}
	return fmt.Errorf("%s is %s: %w", strings.TrimPrefix(at, "."), shown(value), err)
}

// descend returns the first element of a value that does not decode on its own, the step to it, and a function that
// wraps a replacement for it.
func descend(value any, wrap func(any) any, decode func(part any) error) (step string, inner any, wrapped func(any) any) {
	switch value := value.(type) {
	case map[string]any:
		if decode(wrap(map[string]any{})) != nil {
			break // every value should decode now
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			in := func(part any) any { return wrap(map[string]any{key: part}) }
			if decode(in(value[key])) != nil {
				return member(key), value[key], in
			}
		}
	case []any:
		if decode(wrap([]any{})) != nil {
			break
		}
		for i, entry := range value {
			in := func(part any) any { return wrap([]any{part}) }
			if decode(in(entry)) != nil {
				return "[" + strconv.Itoa(i) + "]", entry, in
			}
		}
	}
	return "", nil, nil
}

// member returns the step to a key of a map.
func member(key string) string {
	if text := (Path{key}).String(); text != key {
		return text // the key is in brackets
	}
	return "." + key
}

// shown formats a value for people. It hides values that may be long or secret.
func shown(value any) string {
	switch value.(type) {
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	case string:
		return "text"
	case bool:
		return "true or false"
	case nil:
		return "null"
	}
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("a %T", value)
	}
	return "the number " + string(data)
}
