// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package draw makes drawings of operators and machines, and writes them as text for Mermaid and for Graphviz's
// dot. Package draw/svg makes pictures of them. It is pure, and the same operator always gives the same drawing.
package draw

import "strings"

// Drawing is a graph for people.
type Drawing struct {
	// Title is the title of the drawing.
	Title string
	// Across: edges lead from left to right, and not from top to bottom.
	Across bool
	// Parts are not connected by edges. There is at least one.
	Parts []Part
}

// Part is a separate part of a drawing.
type Part struct {
	// Title may be empty if the title of the drawing is enough.
	Title string
	Nodes []Node
	Edges []Edge
}

// Node is a box.
type Node struct {
	// ID is unique in the drawing: letters of ASCII, digits and underscores.
	ID    string
	Shape Shape
	// Name is the first line, Lines are the others. They are for people, and may have any characters except line
	// breaks.
	Name  string
	Lines []string
}

// Shape says what a node stands for.
type Shape int

// The shapes in the drawing of an operator.
const (
	// Resource is a resource with handlers.
	Resource Shape = iota + 1
	// Handler is a handler, Daemon a daemon, Schedule a handler that runs for its resource as a whole.
	Handler
	Daemon
	Schedule
	// StateMachine is a machine, which has a drawing of its own.
	StateMachine
	// Activity is an activity of the operator.
	Activity
	// Child is a named child, Owned a kind of children without names.
	Child
	Owned
	// Related are objects that handlers look at without owning them.
	Related
	// Index is an index, Indexed a resource that is watched only for indexes.
	Index
	Indexed
)

// The shapes in the drawing of a machine.
const (
	// Start is the start of an object.
	Start Shape = iota + 100
	// State is a state, Terminal a terminal one, Failed a terminal one that is Failed.
	State
	Terminal
	Failed
	// Former is a state of an earlier version.
	Former
)

// Edge leads from one node to another node of its part, or to itself.
type Edge struct {
	From, To string
	Style    Style
	// Label has one text for each line; it may be empty. It may have the same characters as [Node.Name].
	Label []string
}

// Style is the style of an edge.
type Style int

const (
	// Solid is for actions, as a handler that makes a child, and for ordinary transitions.
	Solid Style = iota
	// Dashed is for dependencies, and for transitions after a time limit or a budget of failures.
	Dashed
	// Dotted is for things that are looked at.
	Dotted
	// Thick is for transitions that a person asks for.
	Thick
)

// ids gives out ids, each once.
type ids map[string]bool

// of returns an unused id that resembles these words.
func (taken ids) of(words ...string) string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.Join(words, "_"))
	id := plain
	for n := 2; taken[id]; n++ {
		id = plain + "_" + digits(n)
	}
	taken[id] = true
	return id
}
