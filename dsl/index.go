// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// IndexSpec is an index of an operator: values by keys. They are computed from each object of a resource in the
// operator's scope and kept in memory. Handlers and filters of all resources can read the index; see [Index].
// Fields of the IndexSpec that [Operator.Index] returns may be set.
type IndexSpec struct {
	// Name is unique within the operator. Handlers and expressions use it. It must be a CEL identifier.
	Name string
	// Resource is watched, even if it has no handlers.
	Resource ResourceName
	// LabelSelector and FieldSelector are sent to the server, in kubectl's form. Objects that they do not select
	// are not held. Empty means everything.
	LabelSelector, FieldSelector string
	// Labels and Annotations must all match, and When, if set, must hold; otherwise the object has no entries. When
	// gets the object alone.
	Labels, Annotations []Match
	When                Predicate
	// Entries computes the entries of an object.
	Entries IndexFunc

	// Shape returns the schema of the values from the schema of the resource's objects. Both may be nil, which
	// means unknown.
	Shape func(self *spec.Schema) *spec.Schema
	// Checks check the index's configuration against schemas, Exists against the kinds that exist.
	Checks, Exists []shape.Check

	op      *Operator
	fault   error
	invalid []Fault
}

// Prefix returns the prefix of the operator's marks; empty without an operator.
func (x *IndexSpec) Prefix() string {
	if x.op == nil {
		return ""
	}
	return x.op.Prefix()
}

// Entry is a value in an index, with its key.
type Entry struct {
	// Key is text in UTF-8, a number, true or false. Equal numbers are one key.
	Key any
	// Value is any JSON value. Keep it small, because the index holds another copy in memory.
	Value any
}

// IndexFunc computes the entries of an object; there may be none. It runs for each change of the object, so it must
// be quick, and must depend on the object alone. It gets its own copy. After an error or a panic the object has no
// entries until it changes again; the log, a metric and /readyz?verbose report this.
type IndexFunc func(o *unstructured.Unstructured) ([]Entry, error)

// Index declares an index over a resource, named as in kubectl. It takes the options of handlers that select
// objects: [Label], [Annotation] and the like, and [When]. Handlers that read the index wait for its first list.
// When a value changes under a key that a handler has read, the handler runs if it is level-triggered or has the
// cause [IndexChange]. [Operator.Validate] reports faults.
func (op *Operator) Index(name, resource string, entries IndexFunc, options ...Option) *IndexSpec {
	x := &IndexSpec{Name: name, Entries: entries, op: op}
	x.Resource, x.fault = ParseResourceName(resource)
	h := Handler{}
	for _, set := range options {
		set(&h)
	}
	x.Labels, x.Annotations, x.When, x.invalid = h.Labels, h.Annotations, h.When, h.invalid
	h.Labels, h.Annotations, h.When, h.whens, h.invalid = nil, nil, nil, nil, nil
	if !reflect.ValueOf(h).IsZero() {
		x.invalid = append(x.invalid, Fault{Err: fmt.Errorf("it has an option that is for handlers alone (an index takes labels, annotations and When)")})
	}
	op.indexes = append(op.indexes, x)
	return x
}

// Indexes returns the indexes in declared order. The slice is the caller's.
func (op *Operator) Indexes() []*IndexSpec { return slices.Clone(op.indexes) }

// check reports faults of an index; earlier are the indexes declared before it.
func (x *IndexSpec) check(c check, earlier []*IndexSpec) {
	i := slices.IndexFunc(earlier, func(other *IndexSpec) bool { return other.Name == x.Name })
	switch {
	case !celName.MatchString(x.Name):
		c.fault("name", "want letters, digits and '_', as expressions use it, found %q", x.Name)
	case i >= 0:
		c.note(Fault{First: &Place{Index: earlier[i], Field: "name"}}, "name", "the name is used twice")
	}
	if x.fault != nil {
		c.fault("resource", "%w", x.fault)
	}
	if x.Entries == nil {
		c.fault("", "it has no function")
	}
	if _, err := labels.Parse(x.LabelSelector); err != nil {
		c.fault("selector", "want a label selector: %w", err)
	}
	if _, err := fields.ParseSelector(x.FieldSelector); err != nil {
		c.fault("selector.fields", "want a field selector such as status.phase=Running: %w", err)
	}
	for _, wrong := range x.invalid {
		c.fault(wrong.Field, "%w", wrong.Err)
	}
	filters := &Handler{Labels: x.Labels, Annotations: x.Annotations}
	filters.checkLabels(c)
	filters.checkAnnotations(c)
}

// CheckSchemas checks the index against known schemas. It returns faults, and warnings for uncertain ones.
func (x *IndexSpec) CheckSchemas(k Knowledge) (faults, warnings []error) {
	s := shape.Schemas{Kinds: k.Kinds}
	s.Self.Schema = k.OfResource(x.Resource)
	checks := x.Checks
	if k.Kinds != nil {
		checks = slices.Concat(x.Exists, x.Checks)
		s.Kind, _ = k.Kinds.Resource(x.Resource.GVR(), true) // the check of the name reports the fault
	}
	return held(checks, s)
}

// CheckSchemas checks the operator's indexes, its activities and the given resources against known schemas. It
// returns faults, and warnings for uncertain ones.
func (op *Operator) CheckSchemas(resources []*Resource, k Knowledge) (faults, warnings []error) {
	note := func(wrong, odd []error) { faults, warnings = append(faults, wrong...), append(warnings, odd...) }
	for _, x := range op.indexes {
		note(x.CheckSchemas(k))
	}
	note(held(op.Checks, shape.Schemas{Indexes: op.indexShapes(k), Kinds: k.Kinds}))
	for _, r := range resources {
		note(r.CheckSchemas(k))
	}
	return faults, warnings
}

// held runs checks against schemas.
func held(checks []shape.Check, s shape.Schemas) (faults, warnings []error) {
	for _, check := range checks {
		for _, err := range check(s) {
			if shape.IsWarning(err) {
				warnings = append(warnings, err)
			} else {
				faults = append(faults, err)
			}
		}
	}
	return faults, warnings
}

// indexShapes returns, for each index of the operator, the shape of the list of values under a key.
func (op *Operator) indexShapes(k Knowledge) map[string]shape.Shape {
	out := map[string]shape.Shape{}
	if op == nil {
		return out
	}
	for _, x := range op.indexes {
		of := shape.Shape{List: true}
		if x.Shape != nil {
			of.Schema = x.Shape(k.OfResource(x.Resource))
		}
		out[x.Name] = of
	}
	return out
}
