// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"maps"
	"slices"
)

// Children returns the names of the children that the expression refers to, sorted: those that it
// selects from children by a constant, as in children.db, children["db"] and children.?db. Whole
// reports whether it uses children in another way too, so that any name may be meant.
func (p *Program) Children() (names []string, whole bool) { return p.selected(Children) }

// Related is Children for related objects.
func (p *Program) Related() (names []string, whole bool) { return p.selected(Related) }

// selected returns what the expression selects from a variable.
func (p *Program) selected(variable string) (names []string, whole bool) {
	found := map[string]bool{}
	for _, path := range p.read(variable).paths {
		if len(path) == 0 {
			whole = true
			continue
		}
		found[path[0]] = true
	}
	return slices.Sorted(maps.Keys(found)), whole
}
