// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// findings collects what is wrong with an object, in the words of the API server.
type findings struct {
	list field.ErrorList
	// last are the errors of rules that the API server has in its types. It checks them at the end.
	last field.ErrorList
}

// all returns the errors in the order of the API server, each once.
func (f *findings) all() (out field.ErrorList) {
	for _, err := range append(f.list, f.last...) {
		if !slices.ContainsFunc(out, func(known *field.Error) bool { return known.Error() == err.Error() }) {
			out = append(out, err)
		}
	}
	return out
}

func (f *findings) add(errs field.ErrorList) { f.list = append(f.list, errs...) }

// each adds an error for each message about a value.
func (f *findings) each(path *field.Path, value any, messages []string) {
	for _, message := range messages {
		f.invalid(path, value, message)
	}
}

func (f *findings) invalid(path *field.Path, value any, why string) {
	f.list = append(f.list, field.Invalid(path, value, why))
}

func (f *findings) required(path *field.Path, why string) {
	f.list = append(f.list, field.Required(path, why))
}

func (f *findings) forbidden(path *field.Path, why string) {
	f.list = append(f.list, field.Forbidden(path, why))
}

func (f *findings) duplicate(path *field.Path, value any) {
	f.list = append(f.list, field.Duplicate(path, value))
}

// declared checks that a text is not empty, by a rule of the API server's types.
func (f *findings) declared(path *field.Path, text string) bool {
	if text == "" {
		f.last = append(f.last, field.Required(path, ""))
	}
	return text != ""
}

// filled checks that a text is not empty.
func (f *findings) filled(path *field.Path, text string) bool {
	if text == "" {
		f.required(path, "")
	}
	return text != ""
}

// notNegative checks that a number is at least 0.
func (f *findings) notNegative(path *field.Path, number int64) {
	f.add(validation.ValidateNonnegativeField(number, path))
}

// notNegativeIf is notNegative for a number that may be absent.
func notNegativeIf[T int32 | int64](f *findings, path *field.Path, number *T) {
	if number != nil {
		f.notNegative(path, int64(*number))
	}
}

// fixed checks that a field did not change.
func (f *findings) fixed(path *field.Path, next, old any) {
	if reflect.DeepEqual(next, old) {
		return // the usual case is fast
	}
	if !equality.Semantic.DeepEqual(next, old) {
		f.invalid(path, inside(next), validation.FieldImmutableErrorMsg)
	}
}

// kept is fixed for a field that the API server checks by a rule of its types, which does not name the value.
func kept(f *findings, path *field.Path, next, old any) {
	if !equality.Semantic.DeepEqual(next, old) {
		f.last = append(f.last, field.Invalid(path, nil, validation.FieldImmutableErrorMsg))
	}
}

// oneOf checks that a value is set and one of an enumeration's.
func oneOf[T ~string](f *findings, path *field.Path, value T, values ...T) {
	if value == "" {
		f.required(path, "")
		return
	}
	supported(f, path, value, values...)
}

// supported checks that a value is one of an enumeration's.
func supported[T ~string](f *findings, path *field.Path, value T, values ...T) bool {
	if slices.Contains(values, value) {
		return true
	}
	f.list = append(f.list, field.NotSupported(path, value, values))
	return false
}

// supportedIf is supported for a value that may be absent.
func supportedIf[T ~string](f *findings, path *field.Path, value *T, values ...T) {
	if value != nil {
		supported(f, path, *value, values...)
	}
}
