// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"slices"

	"github.com/handwerk-dev/handwerk/dsl/words"
)

// graph checks the ways between the states as a whole.
func (g *machineCheck) graph() {
	g.reached()
	g.each(func(s *State, field string, _ bool) {
		if !s.Terminal && len(s.Ways()) == 0 {
			g.note(Fault{Lacks: "terminal"}, field, "no way leads out of state %s, and it is not terminal", s.Name)
		}
	})
	g.rounds()
	g.ends()
}

// reached reports states that objects cannot get into.
func (g *machineCheck) reached() {
	seen := map[string]bool{}
	for _, deleting := range []bool{false, true} {
		if first := g.m.First(deleting); first != nil {
			g.follow(first.Name, seen)
		} else if (deleting && len(g.m.Deletion) > 0) || !deleting {
			return // the fault of the start is reported elsewhere
		}
	}
	for _, to := range g.m.Migrate {
		g.follow(to, seen)
	}
	g.each(func(s *State, field string, _ bool) {
		if !seen[s.Name] && g.place[s.Name] == field {
			g.note(Fault{From: g.ways()}, field, "no way leads to state %s", s.Name)
		}
	})
}

// ways returns the fields that lead to states.
func (g *machineCheck) ways() (out []string) {
	g.each(func(_ *State, field string, _ bool) {
		out = append(out, field+".transitions", field+".stay", field+".retries")
	})
	return out
}

// follow adds a state and all states that ways lead to from it. An unknown name counts as the state that was
// probably meant; the fault of the name is reported elsewhere.
func (g *machineCheck) follow(name string, seen map[string]bool) {
	s, _ := g.m.State(name)
	if s == nil {
		meant, _ := words.Nearest(name, slices.Concat(g.group[false], g.group[true]))
		s, _ = g.m.State(meant)
	}
	if s != nil {
		name = s.Name
	}
	if s == nil || seen[name] {
		return
	}
	seen[name] = true
	for _, w := range s.Ways() {
		g.follow(w.To, seen)
	}
}

// rounds reports ways back, each once, unless the machine allows cycles. The place is that of the way that leads
// back, in the order of the states.
func (g *machineCheck) rounds() {
	if g.m.AllowCycles {
		return
	}
	done := map[string]bool{}
	var way []string
	var visit func(s *State, field string)
	visit = func(s *State, field string) {
		way = append(way, s.Name)
		for _, w := range s.Ways() {
			next, _ := g.m.State(w.To)
			i := slices.Index(way, w.To)
			switch {
			case next == nil:
			case i >= 0:
				g.note(Fault{Lacks: "allowCycles"}, field+"."+w.Field, "a way leads back: %s (if that is meant, set allowCycles)", round(slices.Clone(way[i:])))
			case !done[w.To]:
				visit(next, g.place[w.To])
			}
		}
		way = way[:len(way)-1]
		done[s.Name] = true
	}
	g.each(func(s *State, field string, _ bool) {
		if !done[s.Name] && g.place[s.Name] == field {
			visit(s, field)
		}
	})
}

// ends reports states of deletion from which objects cannot get to their end.
func (g *machineCheck) ends() {
	for i, s := range g.m.Deletion {
		seen := map[string]bool{}
		g.follow(s.Name, seen)
		end := slices.ContainsFunc(g.m.Deletion, func(to State) bool { return seen[to.Name] && to.Terminal })
		if !end && len(s.Ways()) > 0 {
			g.fault(at("machine.deletion", i), "no way leads from state %s to a terminal one, so objects in it are held for good", s.Name)
		}
	}
}
