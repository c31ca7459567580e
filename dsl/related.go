// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// Relation names objects that handlers of a resource look at without owning them. They are
// watched: when what a relation selects for an object changes, handlers of that object run with
// cause [RelatedChange].
type Relation struct {
	// Name is unique within the resource: handlers and expressions use it. A CEL identifier.
	Name string
	// Resource is watched, in the operator's scope.
	Resource ResourceName
	// LabelSelector is pushed to the server, in kubectl's form: what it does not select is not
	// held. Empty means everything.
	LabelSelector string
	// One says that the relation selects one object at most, by its name.
	One bool
	// Select says which of the objects belong to the subject's object; the subject has no children and no
	// related objects. It must be quick. Nil means all of them. When it fails, handlers that ask for
	// the relation get its error.
	Select func(s *Subject) (Selection, error)
}

// Selection picks objects of a relation.
type Selection struct {
	// Namespace is the only one to look into; empty means all, or that the resource has none.
	Namespace string
	// Names are the only ones wanted; nil means any.
	Names []string
	// Labels selects by labels; nil means any.
	Labels labels.Selector
	// Match, when set, must hold for an object. An error counts as no.
	Match func(o *unstructured.Unstructured) (bool, error)
}

// Related gives handlers what the relations select.
type Related interface {
	// Get returns the objects that the relation of that name selects, from the cache, sorted by
	// namespace and name. Each is a private copy.
	Get(name string) ([]*unstructured.Unstructured, error)
	// Relations returns the resource's relations.
	Relations() []Relation
}

// Relates declares objects that this resource's handlers look at. A faulty relation is reported by
// [Operator.Validate].
func (r *Resource) Relates(relation Relation) { r.relations = append(r.relations, relation) }

// Relations returns the relations in declared order. The slice is the caller's.
func (r *Resource) Relations() []Relation { return append([]Relation(nil), r.relations...) }
