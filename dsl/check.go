// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

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

// SchemaSource finds schemas, nil for those that it does not have.
type SchemaSource interface {
	OfResource(ResourceName) *spec.Schema
	OfKind(schema.GroupVersionKind) *spec.Schema
}

// Makes declares children that the resource's handlers make under names, so that expressions that
// use them can be checked. Their kinds are declared apart, with [Resource.OwnsKind].
func (r *Resource) Makes(children ...NamedChild) { r.makes = append(r.makes, children...) }

// Made returns the named children in declared order. The slice is the caller's.
func (r *Resource) Made() []NamedChild { return append([]NamedChild(nil), r.makes...) }

// Checks adds checks that [Resource.CheckSchemas] runs.
func (r *Resource) Checks(checks ...Check) { r.checks = append(r.checks, checks...) }

// Checked reports whether the resource has any checks, so that schemas are of use.
func (r *Resource) Checked() bool { return len(r.checks) > 0 }

// CheckSchemas holds the resource against the schemas that are there and returns what does not
// fit. A nil source has none: then only names are checked.
func (r *Resource) CheckSchemas(source SchemaSource) []error {
	s := Schemas{Children: map[string]Shape{}, Related: map[string]Shape{}}
	if source == nil {
		source = noSchemas{}
	}
	s.Self.Schema = source.OfResource(r.Name)
	for _, c := range r.makes {
		shape := Shape{List: c.List}
		if !c.Kind.Empty() {
			shape.Schema = source.OfKind(c.Kind)
		}
		s.Children[c.Name] = shape
	}
	for _, relation := range r.relations {
		s.Related[relation.Name] = Shape{Schema: source.OfResource(relation.Resource), List: !relation.One}
	}
	var out []error
	for _, check := range r.checks {
		out = append(out, check(s)...)
	}
	return out
}

type noSchemas struct{}

func (noSchemas) OfResource(ResourceName) *spec.Schema        { return nil }
func (noSchemas) OfKind(schema.GroupVersionKind) *spec.Schema { return nil }
