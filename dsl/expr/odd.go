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

// odd is a key or a value of a list or a map that is of another kind than the first one.
type odd struct{ part, first ast.Expr }

// odd returns the keys and values that are of another kind than those before them in one list or map. One whose
// kind is known only when the expression runs, as that of self.spec.a, goes with any other.
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

// oddOf returns those of a list's elements, or of a map's keys or values, that are of another kind.
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
		case kind == nil || kind.IsAssignableType(t): // t is the same, or says more
			first, kind = e, t
		case !t.IsAssignableType(kind):
			found = append(found, odd{part: e, first: first})
		}
	}
	return found
}

// explainOdd says what is wrong with a value of another kind.
func (m *meaning) explainOdd(o odd) string {
	one, other := m.kind(o.part), m.kind(o.first)
	if one == other { // what they hold tells them apart
		one, other = m.ast.GetType(o.part.ID()).String(), m.ast.GetType(o.first.ID()).String()
	}
	return fmt.Sprintf("in one list or map all are of one kind, and this is %s, not %s (dyn(…) around it lifts that)", one, other)
}

// element is whether a part is a list's element, or a map's key or value.
func element(e ast.NavigableExpr) bool {
	around, found := e.Parent()
	return found && (around.Kind() == ast.ListKind || around.Kind() == ast.MapKind)
}

// formatted is whether a part is given to format(), which takes a list of anything.
func formatted(e ast.NavigableExpr) bool {
	for around, found := e.Parent(); found; around, found = around.Parent() {
		if around.Kind() == ast.CallKind && around.AsCall().FunctionName() == "format" {
			return true
		}
	}
	return false
}
