// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
)

// odd is a key or a value of a list or a map whose kind differs from that of the first.
type odd struct{ part, first ast.Expr }

// odd returns the keys and values whose kind differs from those before them in one list or map. A value whose kind
// is only known at run time, as self.spec.a, fits any other.
func (m *meaning) odd(parts map[int64]ast.NavigableExpr) []odd {
	if !m.fits {
		return nil
	}
	var found []odd
	for _, e := range parts {
		switch {
		case formatted(e):
		case e.Kind() == ast.ListKind:
			found = append(found, m.oddOf(e.AsList().Elements(), e.AsList().IsOptional)...)
		case e.Kind() == ast.MapKind:
			var keys, values []ast.Expr
			for _, entry := range e.AsMap().Entries() {
				keys, values = append(keys, entry.AsMapEntry().Key()), append(values, entry.AsMapEntry().Value())
			}
			found = append(found, m.oddOf(keys, func(int32) bool { return false })...)
			found = append(found, m.oddOf(values, func(i int32) bool { return e.AsMap().Entries()[i].AsMapEntry().IsOptional() })...)
		}
	}
	slices.SortFunc(found, func(a, b odd) int { return cmp.Compare(a.part.ID(), b.part.ID()) })
	return found
}

// oddOf returns the elements, keys or values whose kind differs.
func (m *meaning) oddOf(list []ast.Expr, optional func(int32) bool) []odd {
	var found []odd
	var first ast.Expr
	var kind *types.Type
	for i, e := range list {
		t := m.ast.GetType(e.ID())
		if optional(int32(i)) && len(t.Parameters()) == 1 {
			t = t.Parameters()[0]
		}
		switch {
		case kind == nil || kind.IsAssignableType(t): // t is the same, or more specific
			first, kind = e, t
		case !t.IsAssignableType(kind):
			found = append(found, odd{part: e, first: first})
		}
	}
	return found
}

// explainOdd is the message for a value of another kind.
func (m *meaning) explainOdd(o odd) string {
	one, other := m.kind(o.part), m.kind(o.first)
	if one == other { // the types of their elements differ
		one, other = m.ast.GetType(o.part.ID()).String(), m.ast.GetType(o.first.ID()).String()
	}
	return fmt.Sprintf("in one list or map all are of one kind, and this is %s, not %s (dyn(…) around it lifts that)", one, other)
}

// element reports whether a part is a list's element, or a map's key or value.
func element(e ast.NavigableExpr) bool {
	around, found := e.Parent()
	return found && (around.Kind() == ast.ListKind || around.Kind() == ast.MapKind)
}

// formatted reports whether a part is an argument of format(), which takes a list of any values.
func formatted(e ast.NavigableExpr) bool {
	for around, found := e.Parent(); found; around, found = around.Parent() {
		if around.Kind() == ast.CallKind && around.AsCall().FunctionName() == "format" {
			return true
		}
	}
	return false
}
