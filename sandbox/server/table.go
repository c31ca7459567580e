// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// table is a served resource with its objects. It is guarded by the server's lock.
type table struct {
	resource
	// schemas are those of the versions of a CRD, or of a built-in kind with several. They changed last at the version reformed of
	// the server.
	schemas  map[string]Schema
	reformed int64
	// webhook converts the objects of a CRD between its versions; nil if the server does so by itself.
	webhook *converter
	// objects, with their watches, may be those of another table, too, which has other names for some fields: stored
	// has the stored names of those shown, and shown the opposite.
	objects       *store.Store
	stored, shown map[string]string
	streams       map[*stream]bool
	held          bool
	// withdrawn: the resource is not served.
	withdrawn bool
	// omitted are objects hidden from lists.
	omitted map[types.NamespacedName]bool
	// partial are the objects that a real server would have stored without some defaults, which it sets when it reads them.
	partial map[types.UID]bool
	// rewrites change objects before they are stored.
	rewrites []*rewriting
	// refusals are checked after the rewrites.
	refusals []*refusal
}

// isServed reports whether clients reach the resource. A CRD may have no version that is served.
func (t *table) isServed() bool { return !t.withdrawn && len(t.versions) > 0 }

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

// newTable returns a table that remembers this many changes; 0 means all.
func newTable(r resource, history int) *table {
	return &table{resource: r, objects: store.New(history), streams: map[*stream]bool{}, omitted: map[types.NamespacedName]bool{}, partial: map[types.UID]bool{}}
}

// newBuiltin returns the table of a built-in resource. One with several versions converts objects by their schemas.
func (s *Server) newBuiltin(r resource) *table {
	t := newTable(r, s.history)
	if r.storage != "" {
		t.schemas = map[string]Schema{}
		for _, version := range r.versions {
			t.schemas[version] = s.schemaOf(t, version)
		}
	}
	return t
}

// get returns an object, or nil. The object is not to be changed.
func (t *table) get(key types.NamespacedName) *unstructured.Unstructured {
	if row := t.objects.Get(key.Namespace, key.Name); row != nil {
		return t.asShown(row.Tree())
	}
	return nil
}

func (t *table) note(c store.Change) {
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
	t.objects.Forget(now)
	for s := range t.streams {
		s.drop()
		s.expired("too old resource version")
		delete(t.streams, s)
	}
}

// chosen returns those of the rows that a selector matches and that are not hidden.
func (t *table) chosen(rows []*store.Row, sel selector) []*store.Row {
	out := rows[:0]
	for _, row := range rows {
		if sel.matches(row) && !t.omitted[types.NamespacedName{Namespace: row.Namespace, Name: row.Name}] {
			out = append(out, row)
		}
	}
	return out
}

// selected returns the selected objects in a namespace; an empty namespace means all. They are not to be changed.
func (t *table) selected(namespace string, sel selector) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, row := range t.chosen(t.objects.In(namespace), sel) {
		out = append(out, t.asShown(row.Tree()))
	}
	return out
}
