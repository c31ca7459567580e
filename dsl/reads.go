// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// Reads says that the handler's code and filters read only these fields of the object, and its metadata. The code
// sees no others, and changes of others do not run it. When all handlers of a resource say so, or are known to, the
// cache holds no more than these fields; see [Operator.Held]. See [ParsePath] for the form of paths.
//
// The fields of the type of [Typed] and [TypedDaemon] count as listed, so Reads() is enough for code that reads its
// object by the type alone. List fields that the code sets, too: a write of a field that the cache does not hold fails
// for good. A field that [Resource.Keep] leaves out is a fault.
//
// In a test with package sandbox/kit, a handler that reads a field that is not listed fails the test.
func Reads(paths ...string) Option {
	return func(h *Handler) {
		if h.Reads == nil {
			h.Reads = []Path{}
		}
		for _, text := range paths {
			path, err := ParsePath(text)
			if err != nil {
				h.invalid = append(h.invalid, Fault{Place: Place{Field: "reads"}, Err: err})
				continue
			}
			h.Reads = append(h.Reads, path)
		}
	}
}

// Sees returns which parts of the object the handler sees besides the metadata, if [Reads] limits them; nil if not.
func (h *Handler) Sees() *shape.Kept { return h.sees }

// limited computes Sees.
func (h *Handler) limited() *shape.Kept {
	if h.Reads == nil || h.Machine != nil {
		return nil
	}
	paths := slices.Concat(h.Reads, h.Fields, h.Known.Reads.Paths, fieldsOf(typeOf(h.code())))
	if slices.ContainsFunc(paths, func(p Path) bool { return len(p) == 0 }) { // the whole object
		return nil
	}
	out := &shape.Kept{Reader: h.ID}
	for _, p := range distinct(paths) {
		if !always(p) {
			out.Fields = append(out.Fields, p)
		}
	}
	return out
}

// always reports whether a path is in each object that a handler sees.
func always(p Path) bool { return slices.Contains([]string{"apiVersion", "kind", "metadata"}, p[0]) }

// fieldsOf returns the fields of a struct type, in two levels, as in spec.size. For a type with other fields than
// those of a struct, it returns the path of the whole object.
func fieldsOf(of reflect.Type) (out []Path) {
	if of == nil {
		return nil
	}
	if any := func([]string) (lacks, part bool) { return true, false }; len(plain.Outside(of, any)) == 0 {
		return []Path{{}}
	}
	for _, at := range plain.Outside(of, func(at []string) (lacks, part bool) { return !always(at), len(at) < 2 }) {
		out = append(out, at)
	}
	return out
}

// looksAt returns the paths that belong to the handler's view because of Reads: those that it lists, and labels and
// annotations, which the code always sees.
func (h *Handler) looksAt() (out []Path) {
	for _, p := range []Path{{"metadata", "labels"}, {"metadata", "annotations"}} {
		if h.of == nil || !slices.ContainsFunc(h.of.Ignore, func(ignored Path) bool { return ignored.Leads(p) }) {
			out = append(out, p)
		}
	}
	for _, p := range h.sees.Fields {
		out = append(out, p)
	}
	return append(out, h.Reads...)
}

// checkReads checks that the cache holds the fields of Reads.
func (h *Handler) checkReads(c check) {
	kept := c.Resource.Kept()
	for _, field := range h.Reads {
		if kept == nil {
			break
		}
		if lacks, _ := kept.Lacks(field); lacks {
			c.fault("reads", "%s", kept.Leaves(field.String()))
		}
	}
}

// Shown returns a private copy of an object with the parts that a handler sees; nil means all. If Missed of these is
// set, a value in the place of each other part reports code that reads it.
func Shown(o *unstructured.Unstructured, sees *shape.Kept) *unstructured.Unstructured {
	if sees == nil {
		return o.DeepCopy()
	}
	return &unstructured.Unstructured{Object: partOf(o.Object, nil, sees)}
}

// partOf returns a copy of the parts of a tree at a path.
func partOf(tree map[string]any, at []string, sees *shape.Kept) map[string]any {
	out := make(map[string]any, len(tree))
	for key, value := range tree {
		path := append(slices.Clip(at), key)
		below, isMap := value.(map[string]any)
		switch lacks, part := sees.Lacks(path); {
		case !lacks:
			out[key] = runtime.DeepCopyJSONValue(value)
		case part && isMap:
			out[key] = partOf(below, path, sees)
		case sees.Missed != nil:
			out[key] = fieldNotInReads{path, sees}
		}
	}
	return out
}

// fieldNotInReads replaces, in tests, the value of a field that the handler does not list in [Reads]. If the handler reads
// the field, the error of package unstructured quotes the value, and the panic of a conversion or copy names this type.
type fieldNotInReads struct {
	path Path
	sees *shape.Kept
}

// Format writes the error. It is for errors of package unstructured, whose callers may ignore them.
func (f fieldNotInReads) Format(to fmt.State, _ rune) { _, _ = to.Write([]byte(f.missed().Error())) }

// MarshalJSON returns the error.
func (f fieldNotInReads) MarshalJSON() ([]byte, error) { return nil, f.missed() }

// RefuseJSON returns the error for code that reads the other fields of the object alone.
func (f fieldNotInReads) RefuseJSON() error { return &notInReadsError{f} }

// missed notes that the field was read.
func (f fieldNotInReads) missed() error {
	f.sees.Missed(f.path)
	return &notInReadsError{f}
}

type notInReadsError struct{ field fieldNotInReads }

func (e *notInReadsError) Error() string { return e.field.sees.Leaves(e.field.path.String()) }

// Broke notes that code has panicked over a field that is not in [Reads].
func (s *Subject) Broke(err error) {
	if err != nil && s.Kept != nil && s.Kept.Missed != nil && strings.Contains(err.Error(), "dsl.fieldNotInReads") {
		s.Kept.Missed(nil)
	}
}

// listed returns a tree without the fields that are not in [Reads].
func listed(value any) any {
	tree, isMap := value.(map[string]any)
	if !isMap {
		return value
	}
	out := make(map[string]any, len(tree))
	for key, value := range tree {
		if _, not := value.(fieldNotInReads); !not {
			out[key] = listed(value)
		}
	}
	return out
}

// withoutUnlisted decodes a tree for which encoding has failed because of a field that is not in [Reads]. The error
// says that the type has such a field.
func withoutUnlisted(tree map[string]any, of reflect.Type, why error, decode func(tree any) error) error {
	unlisted, is := errors.AsType[*notInReadsError](why)
	if !is {
		return why
	}
	lacking := plain.Outside(of, func(path []string) (lacks, part bool) {
		value := any(tree)
		for _, key := range path {
			below, _ := value.(map[string]any)
			value = below[key]
		}
		_, isMap := value.(map[string]any)
		return unlistedIn(value), isMap
	})
	if len(lacking) > 0 {
		unlisted.field.sees.Missed(lacking[0])
		return outside(of, lacking, unlisted.field.sees)
	}
	return decode(listed(tree))
}

// unlistedIn reports whether a value has fields that are not in [Reads].
func unlistedIn(value any) bool {
	switch v := value.(type) {
	case fieldNotInReads:
		return true
	case map[string]any:
		for _, inner := range v {
			if unlistedIn(inner) {
				return true
			}
		}
	}
	return false
}

// copied is DeepCopy for an object of [Shown].
func copied(value any) any {
	switch v := value.(type) {
	case fieldNotInReads:
		return v
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, inner := range v {
			out[key] = copied(inner)
		}
		return out
	}
	return runtime.DeepCopyJSONValue(value)
}

// CopyObject returns a private copy of the request's object, with the same parts.
func (s *Subject) CopyObject() *unstructured.Unstructured {
	if s.Kept == nil || s.Kept.Missed == nil {
		return s.Object.DeepCopy()
	}
	tree, _ := copied(s.Object.Object).(map[string]any)
	return &unstructured.Unstructured{Object: tree}
}
