// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"slices"
	"strings"
)

// rows are the current objects, a space for each namespace, in the order of their paths as etcd has it.
type rows struct{ spaces []*space }

// space has the objects of a namespace by name.
type space struct {
	namespace string
	rows      []*Row
}

// space returns the place of a namespace, and the space if it has objects.
func (r *rows) space(namespace string) (at int, found *space) {
	at, ok := slices.BinarySearchFunc(r.spaces, namespace, func(s *space, namespace string) int { return byPath(s.namespace, namespace) })
	if !ok {
		return at, nil
	}
	return at, r.spaces[at]
}

// row returns the place of a name, and the row if there is one.
func (s *space) row(name string) (at int, found *Row) {
	at, ok := slices.BinarySearchFunc(s.rows, name, func(r *Row, name string) int { return strings.Compare(r.Name, name) })
	if !ok {
		return at, nil
	}
	return at, s.rows[at]
}

func (r *rows) get(namespace, name string) *Row {
	if _, s := r.space(namespace); s != nil {
		_, found := s.row(name)
		return found
	}
	return nil
}

func (r *rows) put(row *Row) {
	at, s := r.space(row.Namespace)
	if s == nil {
		s = &space{namespace: row.Namespace}
		r.spaces = slices.Insert(r.spaces, at, s)
	}
	if at, found := s.row(row.Name); found != nil {
		s.rows[at] = row
	} else {
		s.rows = slices.Insert(s.rows, at, row)
	}
}

func (r *rows) remove(namespace, name string) {
	at, s := r.space(namespace)
	if s == nil {
		return
	}
	if at, found := s.row(name); found != nil {
		s.rows = slices.Delete(s.rows, at, at+1)
	}
	if len(s.rows) == 0 {
		r.spaces = slices.Delete(r.spaces, at, at+1)
	}
}

// in returns the rows of a namespace in a slice of their own; an empty namespace means all.
func (r *rows) in(namespace string) []*Row {
	if namespace != "" {
		if _, s := r.space(namespace); s != nil {
			return slices.Clone(s.rows)
		}
		return nil
	}
	var out []*Row
	for _, s := range r.spaces {
		out = append(out, s.rows...)
	}
	return out
}

func (r *rows) clone() rows {
	var out rows
	for _, s := range r.spaces {
		out.spaces = append(out.spaces, &space{s.namespace, slices.Clone(s.rows)})
	}
	return out
}

// byPath compares namespaces as parts of a path, with the slash that follows.
func byPath(a, b string) int {
	n := min(len(a), len(b))
	if out := strings.Compare(a[:n], b[:n]); out != 0 || len(a) == len(b) {
		return out
	}
	if len(a) > n {
		return -byPath(b, a)
	}
	if b[n] < '/' { // the slash after a is compared with what goes on in b
		return 1
	}
	return -1
}
