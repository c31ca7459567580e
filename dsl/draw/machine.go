// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// machine draws a machine: its states and transitions. Faulty machines are drawn, too: an edge to an unknown state is
// left out. The map made has the children that are made in each state.
func machine(m *dsl.Machine, title string, made map[string][]string) Drawing {
	taken := ids{}
	whole := states(m.States, made, m.Initial, "new", taken)
	whole.former(m.Migrate, taken)
	out := Drawing{Title: short(title, titleWidth), Parts: []Part{whole.Part}}
	if len(m.Deletion) > 0 {
		last := states(m.Deletion, made, m.InitialDeletion, "deleted", taken)
		last.Title = "when the object is deleted"
		out.Parts = append(out.Parts, last.Part)
	}
	return out
}

// graph is a part with the ids of its states, by name.
type graph struct {
	Part
	ids map[string]string
}

// states draws states that lead to each other.
func states(all []dsl.State, made map[string][]string, initial, start string, taken ids) *graph {
	g := &graph{ids: map[string]string{}}
	begin := taken.of(start)
	g.Nodes = append(g.Nodes, Node{ID: begin, Shape: Start, Name: start})
	for i := range all {
		s := &all[i]
		id := taken.of("state", s.Name)
		g.ids[s.Name] = id
		g.Nodes = append(g.Nodes, Node{ID: id, Shape: kindOf(s), Name: short(s.Name, nameWidth), Lines: lines(linesOf(s, made[s.Name]))})
	}
	if len(all) > 0 {
		g.edge(begin, cmp.Or(initial, all[0].Name), Solid, "")
	}
	for i := range all {
		g.ways(&all[i])
	}
	return g
}

// edge adds an edge to a state, if the state exists.
func (g *graph) edge(from, to string, style Style, label string) {
	if id := g.ids[to]; id != "" {
		g.Edges = append(g.Edges, Edge{From: from, To: id, Style: style, Label: wrapped(label, labelWidth, labelLines)})
	}
}

func kindOf(s *dsl.State) Shape {
	switch {
	case s.Failed:
		return Failed
	case s.Terminal:
		return Terminal
	}
	return State
}

// linesOf returns the lines of text in the box of a state.
func linesOf(s *dsl.State, made []string) []string {
	var does []string
	if s.Enter != nil {
		does = append(does, "enter")
	}
	if s.During != nil {
		does = append(does, "during")
	}
	ready := ""
	if s.Ready != nil && *s.Ready {
		ready = "Ready"
	}
	marks := strings.Join(slices.DeleteFunc([]string{ready, s.Condition}, func(mark string) bool { return mark == "" }), ", ")
	switch {
	case ready != "" && s.Condition != "":
		marks = "conditions " + marks
	case marks != "":
		marks = "condition " + marks
	}
	makes := ""
	if len(made) > 0 {
		makes = "makes " + strings.Join(made, ", ")
	}
	return []string{s.Doc, cmp.Or(s.Action, inGo(does)), makes, marks}
}

// inGo names a state's actions that are written in Go.
func inGo(does []string) string {
	if len(does) == 0 {
		return ""
	}
	return strings.Join(does, ", ") + " in Go"
}

// ways draws the ways out of a state. Transitions that are evaluated in order have numbers.
func (g *graph) ways(s *dsl.State) {
	from, tried := g.ids[s.Name], 0
	for _, t := range s.Transitions {
		if !t.Manual {
			tried++
		}
	}
	place := 0
	for _, t := range s.Transitions {
		if t.Manual {
			g.edge(from, t.To, Thick, joined("by hand", t.Why))
			continue
		}
		place++
		label := t.Why
		if label == "" && t.When != nil {
			label = "when its condition holds"
		} else if label == "" && place > 1 {
			label = "otherwise"
		}
		if tried > 1 {
			label = joined(digits(place), label)
		}
		g.edge(from, t.To, Solid, label)
	}
	if s.Stay != nil {
		after := "after a time of the object's"
		if s.Stay.Limit == nil {
			after = "after " + plain.Period(s.Stay.AtMost)
		}
		g.edge(from, s.Stay.Then, Dashed, after)
	}
	if r := s.Retries; r != nil {
		g.edge(from, r.Then, Dashed, failures(r.AtMost))
	}
}

// joined joins a mark and a text.
func joined(mark, text string) string {
	if text == "" {
		return mark
	}
	return mark + ": " + text
}

// failures describes a budget of failures.
func failures(most int) string {
	switch most {
	case 0:
		return "a failure"
	case 1:
		return "more than one failure"
	}
	return fmt.Sprintf("more than %d failures", most)
}

// former adds the states of earlier versions from Migrate.
func (g *graph) former(migrate map[string]string, taken ids) {
	for _, old := range slices.Sorted(maps.Keys(migrate)) {
		id := taken.of("former", old)
		g.Nodes = append(g.Nodes, Node{ID: id, Shape: Former, Name: short(old, nameWidth), Lines: []string{"of an earlier version"}})
		g.edge(id, migrate[old], Dotted, "is now")
	}
}
