// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// eventType is the type of a watch event on the wire.
type eventType string

const (
	added    eventType = "ADDED"
	modified eventType = "MODIFIED"
	deleted  eventType = "DELETED"
)

// change is one write. Its objects are immutable.
type change struct {
	version int64
	what    eventType
	// object is the written object; for a removal the last one, with the removal's version.
	object *unstructured.Unstructured
	before *unstructured.Unstructured
}

// table holds the objects of one resource. It is guarded by the server's lock.
type table struct {
	resource
	// schemas are those of a CRD's versions.
	schemas map[string]Schema
	// rows are replaced, and not changed in place.
	rows map[types.NamespacedName]*unstructured.Unstructured
	// history has the changes after the version forgotten.
	history   []change
	forgotten int64
	streams   map[*stream]bool
	held      bool
	// withdrawn: the resource is not served.
	withdrawn bool
	// omitted are objects hidden from lists.
	omitted map[types.NamespacedName]bool
	// rewrites change objects before they are stored.
	rewrites []*rewriting
	// refusals are checked after the rewrites.
	refusals []*refusal
}

// rewriting is a change that the server makes to written objects.
type rewriting struct {
	change func(*unstructured.Unstructured)
}

// rewrite changes an object as webhooks, defaults and schemas do.
func (t *table) rewrite(o *unstructured.Unstructured) {
	for _, r := range t.rewrites {
		r.change(o)
	}
}

func newTable(r resource) *table {
	return &table{
		resource: r, streams: map[*stream]bool{},
		rows: map[types.NamespacedName]*unstructured.Unstructured{}, omitted: map[types.NamespacedName]bool{},
	}
}

func (t *table) note(c change) {
	t.history = append(t.history, c)
	for s := range t.streams {
		if s.over() {
			delete(t.streams, s)
		} else {
			s.tell(c)
		}
	}
}

func (t *table) hold(held bool) {
	t.held = held
	for s := range t.streams {
		s.hold(held)
	}
}

func (t *table) cut() {
	for s := range t.streams {
		s.end()
		delete(t.streams, s)
	}
}

func (t *table) expire(now int64) {
	t.history, t.forgotten = nil, now
	for s := range t.streams {
		s.drop()
		s.expired()
		delete(t.streams, s)
	}
}

// selected returns the selected objects in a namespace; an empty namespace means all.
func (t *table) selected(namespace string, sel selector) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for key, o := range t.rows {
		if (namespace == "" || key.Namespace == namespace) && sel.matches(o) && !t.omitted[key] {
			out = append(out, o)
		}
	}
	sortByName(out)
	return out
}
