// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package draw says of operators and machines what there is to draw, and writes it as text: for Mermaid and for
// Graphviz's dot. Package draw/svg makes pictures of the same. It is pure, and the same operator always comes out the same.
package draw

import "strings"

// Drawing is a graph for people.
type Drawing struct {
	// Title says what is drawn.
	Title string
	// Across: edges lead from left to right, and not from top to bottom.
	Across bool
	// Parts are what no edge joins with each other. There is at least one.
	Parts []Part
}

// Part is a part of a drawing that stands for itself.
type Part struct {
	// Title may be empty, for the part that the title of the drawing says enough of.
	Title string
	Nodes []Node
	Edges []Edge
}

// Node is a box.
type Node struct {
	// ID is unique in the drawing: letters of ASCII, digits and underscores.
	ID    string
	Shape Shape
	// Name is the first line, Lines are the others. They are for people, and may have any characters but line breaks.
	Name  string
	Lines []string
}

// Shape is what a node stands for.
type Shape int

// What there is in the drawing of an operator.
const (
	// Resource is one that the operator has handlers for.
	Resource Shape = iota + 1
	// Handler is a handler, Daemon one that runs all the time, Schedule one that runs for its resource as a whole.
	Handler
	Daemon
	Schedule
	// StateMachine is a machine, which has a drawing of its own.
	StateMachine
	// Activity runs for the operator as a whole.
	Activity
	// Child is a child with a name, Owned a kind of children that nobody has named.
	Child
	Owned
	// Related are objects that handlers look at without owning them.
	Related
	// Index is an index, Indexed a resource that is there for indexes alone.
	Index
	Indexed
)

// What there is in the drawing of a machine.
const (
	// Start is where an object begins.
	Start Shape = iota + 100
	// State is a state, Terminal one at which the machine ends, Failed one at which it ends badly.
	State
	Terminal
	Failed
	// Former is a state that the machine does not have any more.
	Former
)

// Edge leads from one node to another one of its part, or to itself.
type Edge struct {
	From, To string
	Style    Style
	// Label has a line each; it may be empty. Its characters are as those of [Node.Name].
	Label []string
}

// Style is how an edge is drawn.
type Style int

const (
	// Solid is what is done, as a handler that makes a child, or a transition whose time has come.
	Solid Style = iota
	// Dashed is what waits for something, and what happens when a time or a budget is over.
	Dashed
	// Dotted is what is looked at.
	Dotted
	// Thick is what a person does.
	Thick
)

// ids gives out ids, each once.
type ids map[string]bool

// of returns an id that is like these words.
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
