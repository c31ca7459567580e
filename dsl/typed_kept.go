// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// typedCode is what [Typed] makes a handler of, and [TypedDaemon] a daemon. It knows the type that objects are decoded
// into, so that the type can be held against what the cache has before anything runs.
type typedCode struct {
	of     reflect.Type
	handle Func
	attend DaemonFunc
}

// run is the handler. Where somebody asks for the type, nothing runs.
func (t typedCode) run(ctx context.Context, r *Request) error {
	if r.asked != nil {
		*r.asked = t.of
		return nil
	}
	if err := leftOut(t.of, r.Kept); err != nil { // code that other code runs was not checked before
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

// typeOf returns the type that a handler or a daemon decodes its objects into; nil where that is not known. Code of
// others is never called.
func typeOf(handler Func, daemon DaemonFunc) (of reflect.Type) {
	var none context.Context // it does nothing that could end
	same := func(a, b any) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }
	switch {
	case same(handler, typedCode{}.handler()):
		_ = handler(none, &Request{asked: &of}) // it has no error then
	case same(daemon, typedCode{}.daemon()):
		_ = daemon(none, &DaemonRequest{asked: &of})
	}
	return of
}

// mostNamed is how many fields a fault names.
const mostNamed = 3

// leftOut says which fields of a type the cache does not hold: they would be read as not set, without a word.
func leftOut(of reflect.Type, kept *shape.Kept) error {
	if of == nil || kept == nil {
		return nil
	}
	lacking := plain.Outside(of, kept.Lacks)
	if len(lacking) == 0 {
		return nil
	}
	var names []string
	for _, path := range lacking[:min(len(lacking), mostNamed)] {
		names = append(names, Path(path).String())
	}
	fields := strings.Join(names, ", ")
	if more := len(lacking) - len(names); more > 0 {
		fields += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("its type %s has %s, which %s leaves out, so the handler would see nothing there: "+
		"hold it in the cache, or take it out of the type", nameOf(of), fields, kept)
}

// nameOf is what a type is called, where it has a name.
func nameOf(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Name() == "" {
		return "(a struct)"
	}
	return t.String()
}

// LeftOut says which fields of its type a function of [Typed] or [TypedDaemon] would miss, where a cache holds a part of the
// objects. Of other functions it is not known what they read.
func (f Function) LeftOut(kept *shape.Kept) error { return leftOut(typeOf(f.Func, f.Daemon), kept) }
