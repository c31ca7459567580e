// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package graph orders named things that depend on each other. It is pure.
package graph

import (
	"maps"
	"slices"
)

// Graph is a set of names, and the names that each of them needs. It is read-only after New.
type Graph struct {
	needs map[string][]string
}

// New returns a graph. Needs has every name, with the names that it depends on. Dependencies that are not names of
// the graph are ignored.
func New(needs map[string][]string) *Graph {
	g := &Graph{needs: make(map[string][]string, len(needs))}
	for name, others := range needs {
		var known []string
		for _, other := range others {
			if _, found := needs[other]; found {
				known = append(known, other)
			}
		}
		slices.Sort(known)
		g.needs[name] = slices.Compact(known)
	}
	return g
}

// Names returns all names, sorted.
func (g *Graph) Names() []string { return slices.Sorted(maps.Keys(g.needs)) }

// Has reports whether the graph has the name.
func (g *Graph) Has(name string) bool {
	_, found := g.needs[name]
	return found
}

// Needs returns the direct dependencies of a name, sorted.
func (g *Graph) Needs(name string) []string { return g.needs[name] }

// Cycle returns names that depend on each other in a circle, as in a, b, a: each needs the next. It returns nil if
// there is no circle, and always the same circle if there are several.
func (g *Graph) Cycle() []string {
	done := map[string]bool{}
	var way []string
	var visit func(name string) []string
	visit = func(name string) []string {
		if at := slices.Index(way, name); at >= 0 {
			return append(slices.Clone(way[at:]), name)
		}
		if done[name] {
			return nil
		}
		way = append(way, name)
		for _, other := range g.needs[name] {
			if found := visit(other); found != nil {
				return found
			}
		}
		way = way[:len(way)-1]
		done[name] = true
		return nil
	}
	for _, name := range g.Names() {
		if found := visit(name); found != nil {
			return found
		}
	}
	return nil
}

// Levels returns the names in the order in which they can be made: the dependencies of a name are in earlier
// levels. Each level is sorted. Names that are part of a circle, or depend on one, are left out.
func (g *Graph) Levels() [][]string {
	var out [][]string
	made := map[string]bool{}
	for {
		var level []string
		for _, name := range g.Names() {
			if !made[name] && !slices.ContainsFunc(g.needs[name], func(other string) bool { return !made[other] }) {
				level = append(level, name)
			}
		}
		if len(level) == 0 {
			return out
		}
		for _, name := range level {
			made[name] = true
		}
		out = append(out, level)
	}
}

// Last returns those of the given names that no other given name depends on, directly or indirectly. They can be
// removed first. They are sorted.
func (g *Graph) Last(among []string) []string {
	needed := map[string]bool{}
	for _, name := range among {
		for other := range g.all(name) {
			needed[other] = true
		}
	}
	var out []string
	for _, name := range among {
		if !needed[name] {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// all returns the direct and indirect dependencies of a name.
func (g *Graph) all(name string) map[string]bool {
	out := map[string]bool{}
	var visit func(string)
	visit = func(at string) {
		for _, other := range g.needs[at] {
			if !out[other] {
				out[other] = true
				visit(other)
			}
		}
	}
	visit(name)
	return out
}
