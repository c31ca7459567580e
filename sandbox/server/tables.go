// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// find returns the table of a resource in a served version.
func (s *Server) find(gvr schema.GroupVersionResource) (*table, error) {
	t, found := s.tables[gvr.GroupResource()]
	switch {
	case s.broken[gvr.Group]:
		return nil, apierrors.NewServiceUnavailable("service unavailable")
	case !found && s.own(gvr.Group), found && !t.custom && !t.withdrawn && !slices.Contains(t.versions, gvr.Version):
		return nil, notFound()
	case !found || t.withdrawn || !slices.Contains(t.versions, gvr.Version):
		return nil, &apierrors.StatusError{ErrStatus: notServed()}
	}
	return t, nil
}

// own reports whether a group is one of the server's own, not of CRDs.
func (s *Server) own(group string) bool {
	for name, t := range s.tables {
		if name.Group == group && !t.custom {
			return true
		}
	}
	return false
}

// sorted returns the tables in a fixed order.
func (s *Server) sorted() []*table {
	var out []*table
	for _, t := range s.tables {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *table) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.plural, b.plural))
	})
	return out
}
