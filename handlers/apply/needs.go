// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/handlers/graph"
)

// needs finds the dependencies of children, and notes circles.
func (p *parser) needs(children map[string]*child) *graph.Graph {
	edges := map[string][]string{}
	for _, c := range sorted(children) {
		wanted := p.references(c, c.programs())
		made := p.references(c, c.conditions())
		for _, name := range slices.Concat(wanted, slices.DeleteFunc(made, func(n string) bool { return n == c.name })) {
			switch {
			case children[name] == nil:
				c.looks = true
			case !slices.Contains(c.needs, name):
				c.needs = append(c.needs, name)
			}
		}
		edges[c.name] = c.needs
	}
	g := graph.New(edges)
	if cycle := g.Cycle(); cycle != nil {
		p.fault([]string{children[cycle[0]].own}, "the children need each other in a circle: %s", strings.Join(cycle, " → "))
		return g
	}
	bind(children, edges)
	p.together(children, edges)
	return graph.New(edges)
}

// together makes the children of a rollout's group need the same others, so that all of them are known when the first one is updated.
func (p *parser) together(children map[string]*child, edges map[string][]string) {
	groups := map[string][]*child{}
	for _, c := range sorted(children) {
		if c.rollout != nil && c.rollout.group != "" {
			groups[c.rollout.group] = append(groups[c.rollout.group], c)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		all := groups[name]
		if !p.mayRollTogether(name, all, edges) {
			continue
		}
		var needs []string
		for _, c := range all {
			needs = append(needs, c.needs...)
		}
		slices.Sort(needs)
		for _, c := range all {
			c.needs = slices.Compact(slices.Clone(needs))
			edges[c.name] = c.needs
		}
	}
}

// mayRollTogether notes why the rollouts of a group's children cannot be one.
func (p *parser) mayRollTogether(group string, all []*child, edges map[string][]string) bool {
	before := len(p.faults)
	for _, c := range all {
		if c.rollout.given != all[0].rollout.given {
			p.fault([]string{c.own, "rollout", "maxUnavailable"}, "is another one than that of child %s, which is of the group %s, too", all[0].own, group)
		}
		i := slices.IndexFunc(all, func(other *child) bool { return c != other && reaches(edges, c.name, other.name) })
		if i >= 0 {
			p.fault([]string{c.own, "rollout", "group"}, "the child needs child %s of the same group, so it is updated after that: take one of them out of the group", all[i].own)
		}
	}
	return len(p.faults) == before
}

// references returns the names of the children that expressions of a child use.
func (p *parser) references(c *child, programs []*expr.Program) []string {
	var out []string
	for _, program := range programs {
		names, whole := program.Children()
		if whole {
			p.fault(c.holds(program), "name the child that is meant, as in children.db: children as a whole do not say what to wait for")
		}
		out = append(out, names...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// holds returns the place of an expression in the child.
func (c *child) holds(program *expr.Program) []string {
	if at := find(c.config, program.Text(), []string{c.own}); at != nil {
		return at
	}
	return []string{c.own}
}

// find returns the place of the first text that contains a part, or nil.
func find(tree any, part string, at []string) []string {
	switch tree := tree.(type) {
	case string:
		if strings.Contains(tree, part) {
			return at
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(tree)) {
			if strings.Contains(key, part) {
				return below(at, key)
			}
			if found := find(tree[key], part, below(at, key)); found != nil {
				return found
			}
		}
	case []any:
		for i, element := range tree {
			if found := find(element, part, below(at, strconv.Itoa(i))); found != nil {
				return found
			}
		}
	}
	return nil
}

// sorted returns children sorted by name.
func sorted(children map[string]*child) []*child {
	out := make([]*child, 0, len(children))
	for _, name := range slices.Sorted(maps.Keys(children)) {
		out = append(out, children[name])
	}
	return out
}

// camel writes a handler's id as one CamelCase word.
func camel(id string) string {
	var out strings.Builder
	first := true
	for _, letter := range id {
		switch {
		case !unicode.IsLetter(letter) && !unicode.IsDigit(letter):
			first = true
			continue
		case first:
			letter = unicode.ToUpper(letter)
		}
		first = false
		out.WriteRune(letter)
	}
	return out.String()
}
