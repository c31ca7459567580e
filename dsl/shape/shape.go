// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package shape says what is known of the values that expressions see, so that a configuration can be
// checked before it runs. Package dsl/expr/check does that.
package shape

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Check holds a part of a configuration against schemas and returns what does not fit. It may be
// called any number of times, as schemas come and change.
type Check func(Schemas) []error

// Shape is what is known of a value.
type Shape struct {
	// Schema is the OpenAPI schema of an object; nil when it is not known, and then anything fits.
	Schema *spec.Schema
	// List says that the value is a list of such objects.
	List bool
}

// Schemas are the shapes of the variables of a resource's expressions.
type Schemas struct {
	// Self is the resource's own object.
	Self Shape
	// Children and Related have every name that there is, with or without a schema.
	Children, Related map[string]Shape
	// Vars are those of further variables that are objects or lists of them. One that is not here
	// may be anything.
	Vars map[string]Shape
	// Without are variables that expressions can see nothing in here, and why that is.
	Without map[string]string
}

// NamedChild is a child that a handler makes under a name.
type NamedChild struct {
	// Name is unique within the resource. A CEL identifier.
	Name string
	// Kind is empty where it is worked out only when the handler runs.
	Kind schema.GroupVersionKind
	// List says that there may be several, which have keys.
	List bool
	// Object tells it from other objects, as its template has it with all expressions: two children of one
	// Object are the same one. Empty where that is not known, or where it is not always made.
	Object string
}

// Misfit is an error: what is wrong at a place within an action's configuration.
type Misfit struct {
	// Path leads to the faulty value from the handler, as in {"with", "channel"}. An index of a
	// list is its number.
	Path []string
	// Line and Column, both from 1, are the place within the value, when that is a text; zero means
	// its beginning. Columns count characters.
	Line, Column int
	// Message says what is wrong.
	Message string
}

// Error returns the message.
func (e *Misfit) Error() string { return e.Message }
