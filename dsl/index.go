// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// IndexSpec is an index of an operator: values by keys, worked out from each object of a resource in the operator's
// scope and kept in memory. Handlers and filters of all resources read it; see [Index]. The fields may be set on what
// [Operator.Index] returns.
type IndexSpec struct {
	// Name is unique within the operator: handlers and expressions use it. A CEL identifier.
	Name string
	// Resource is watched, also where no handler is for it.
	Resource ResourceName
	// LabelSelector and FieldSelector are pushed to the server: what they do not select is not held. Both in kubectl's
	// form. Empty means everything.
	LabelSelector, FieldSelector string
	// Labels and Annotations must all match, and When, if it is set, must hold, or the index has nothing of the object.
	// When sees the object alone.
	Labels, Annotations []Match
	When                Predicate
	// Entries works out what the index has of an object.
	Entries IndexFunc

	// Shape says what the values are like, given the schema of the resource's objects, either of which may be nil: then
	// it is not known.
	Shape func(self *spec.Schema) *spec.Schema
	// Checks hold the configuration of the index against schemas, Exists against the kinds that there are.
	Checks, Exists []shape.Check

	fault   error
	invalid []Fault
}

// Entry is a value that an index has under a key.
type Entry struct {
	// Key is text in UTF-8, a number or true or false. Numbers that are equal are one key.
	Key any
	// Value is whatever JSON can hold. Small values are to be preferred: they are in memory once more.
	Value any
}

// IndexFunc works out what an index has of an object, which may be nothing. It is called for each change of the
// object: it must be quick, and go by the object alone. The object is its own. After an error or a panic the index has
// nothing of the object until it changes again; the log, a metric and /readyz?verbose tell so.
type IndexFunc func(o *unstructured.Unstructured) ([]Entry, error)

// EntriesOf returns the entries of a map, by their keys in order.
func EntriesOf[K cmp.Ordered, V any](m map[K]V) []Entry {
	out := make([]Entry, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out = append(out, Entry{key, m[key]})
	}
	return out
}

// Index declares an index over a resource, in kubectl's spelling. Of a handler's options it takes those that say which
// objects it sees: [Label] and [Annotation] with their kin, and [When]. Handlers that read it wait for its first
// listing, and those that are level-triggered, or have the cause [IndexChange], run when a value under a key changes
// that they have read. What is faulty is reported by [Operator.Validate].
func (op *Operator) Index(name, resource string, entries IndexFunc, options ...Option) *IndexSpec {
	x := &IndexSpec{Name: name, Entries: entries}
	x.Resource, x.fault = ParseResourceName(resource)
	h := Handler{}
	for _, set := range options {
		set(&h)
	}
	x.Labels, x.Annotations, x.When, x.invalid = h.Labels, h.Annotations, h.When, h.invalid
	h.Labels, h.Annotations, h.When, h.invalid = nil, nil, nil, nil
	if !reflect.ValueOf(h).IsZero() {
		x.invalid = append(x.invalid, Fault{Err: fmt.Errorf("it has an option that is for handlers alone (an index takes labels, annotations and When)")})
	}
	op.indexes = append(op.indexes, x)
	return x
}

// Indexes returns the indexes in declared order. The slice is the caller's.
func (op *Operator) Indexes() []*IndexSpec { return slices.Clone(op.indexes) }

// check checks an index that is declared after others.
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
	(&Handler{Labels: x.Labels, Annotations: x.Annotations}).checkMatches(c)
}

// CheckSchemas holds the index against what is known. It returns what does not fit, and what may be right all the same.
func (x *IndexSpec) CheckSchemas(k Knowledge) (faults, warnings []error) {
	s := shape.Schemas{Kinds: k.Kinds}
	s.Self.Schema = k.OfResource(x.Resource)
	checks := x.Checks
	if k.Kinds != nil {
		checks = slices.Concat(x.Exists, x.Checks)
		s.Kind, _ = k.Kinds.Resource(x.Resource.GVR(), true) // the fault is told by the check of the name
	}
	return held(checks, s)
}

// CheckSchemas holds the operator's indexes, what runs for it as a whole, and some of its resources against what is known. It
// returns what does not fit, and what may be right all the same.
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

// held holds what checks are about against schemas.
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

// indexShapes are what the values of the operator's indexes are like, each a list of what is under a key.
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
