// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// typedCode is a handler made by [Typed], or a daemon made by [TypedDaemon]. It knows the type of the objects, so
// that validation can check the type against the cache before anything runs.
type typedCode struct {
	of     reflect.Type
	handle Func
	attend DaemonFunc
}

// run is the handler. If r.asked is set, it only returns the type.
func (t typedCode) run(ctx context.Context, r *Request) error {
	if r.asked != nil {
		*r.asked = t.of
		return nil
	}
	if err := leftOut(t.of, r.Kept); err != nil { // validation does not see code that other code calls
		return Permanent(err)
	}
	return t.handle(ctx, r)
}

// stay is run for a daemon.
func (t typedCode) stay(ctx context.Context, r *DaemonRequest) error {
	if r.asked != nil {
		*r.asked = t.of
		return nil
	}
	if err := leftOut(t.of, r.Kept); err != nil {
		return Permanent(err)
	}
	return t.attend(ctx, r)
}

// handler returns run. All method values come from here, so they have one code pointer, by which typeOf recognises them.
//
//go:noinline
func (t typedCode) handler() Func { return t.run }

// daemon is handler for stay.
//
//go:noinline
func (t typedCode) daemon() DaemonFunc { return t.stay }

// typeOf returns the type into which a handler or a daemon decodes its objects, or nil if that is not known. It
// never calls code that was not made by Typed or TypedDaemon.
func typeOf(handler Func, daemon DaemonFunc) (of reflect.Type) {
	var none context.Context // run does not use it when the type is asked
	same := func(a, b any) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }
	switch {
	case same(handler, typedCode{}.handler()):
		_ = handler(none, &Request{asked: &of}) // no error is possible when the type is asked
	case same(daemon, typedCode{}.daemon()):
		_ = daemon(none, &DaemonRequest{asked: &of})
	}
	return of
}

// mostNamed is how many fields a fault names.
const mostNamed = 3

// leftOut returns an error that names the fields of a type that the cache does not hold; they would be zero without
// notice.
func leftOut(of reflect.Type, kept *shape.Kept) error {
	if of == nil || kept == nil {
		return nil
	}
	return outside(of, plain.Outside(of, kept.Lacks), kept)
}

// outside returns the error that a type has fields which the cache does not hold.
func outside(of reflect.Type, lacking [][]string, kept *shape.Kept) error {
	if len(lacking) == 0 {
		return nil
	}
	advice := "hold it in the cache"
	if kept.Reader != "" {
		advice = "add it there"
	}
	return fmt.Errorf("its type %s has %s, which %s leaves out, so the handler would see nothing there: %s, or take it out of the type",
		nameOf(of), firstOf(lacking), kept, advice)
}

// leftOutAt returns an error that names the parts of a value at a path that the cache does not hold. For a struct, only
// its fields count; for other types, the whole value.
func leftOutAt(path Path, of reflect.Type, kept *shape.Kept) error {
	if kept == nil {
		return nil
	}
	switch lacks, part := kept.Lacks(path); {
	case !lacks:
		return nil
	case !part:
		return errors.New(kept.Leaves(path.String()))
	case !isStruct(of):
		return fmt.Errorf("%s leaves a part of it out of the cache: read fields of it", kept)
	}
	held := folded(kept) // encoding/json ignores case
	lacking := plain.Outside(of, func(below []string) (bool, bool) { return held.Lacks(lower(slices.Concat(path, below))) })
	for i, below := range lacking {
		lacking[i] = slices.Concat(path, below)
	}
	return outside(of, lacking, kept)
}

// folded returns the paths that a cache holds, in lower case.
func folded(kept *shape.Kept) *shape.Kept {
	out := &shape.Kept{}
	for _, field := range kept.Fields {
		out.Fields = append(out.Fields, lower(field))
	}
	return out
}

// lower returns names in lower case.
func lower(names []string) (out []string) {
	for _, name := range names {
		out = append(out, strings.ToLower(name))
	}
	return out
}

// isStruct reports whether a type is a struct, or points to one.
func isStruct(t reflect.Type) bool {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t != nil && t.Kind() == reflect.Struct
}

// firstOf lists the first few paths of fields.
func firstOf(lacking [][]string) string {
	var names []string
	for _, path := range lacking[:min(len(lacking), mostNamed)] {
		names = append(names, Path(path).String())
	}
	fields := strings.Join(names, ", ")
	if more := len(lacking) - len(names); more > 0 {
		fields += fmt.Sprintf(" and %d more", more)
	}
	return fields
}

// nameOf returns the name of a type, or a description for types without one.
func nameOf(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Name() == "" {
		return "(a struct)"
	}
	return t.String()
}

// LeftOut returns an error that names the fields that a function of [Typed] or [TypedDaemon] would miss in a cache
// that holds parts of objects. For other functions the fields are not known.
func (f Function) LeftOut(kept *shape.Kept) error { return leftOut(typeOf(f.Func, f.Daemon), kept) }
