// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package manual has the functions of expressions as people read about them, each with an example and what it gives. A
// test of package cmd evaluates each example as operator eval does, and one of package expr holds the list against
// the functions that there are. It is pure.
package manual

import (
	"slices"
	"strings"
	"unicode"
)

// Group are functions for one kind of value, or one purpose.
type Group struct {
	// Title names the group, as in "Lists".
	Title string
	// Functions are in the order for people.
	Functions []Function
}

// Function is a function, a macro or an operator, for one kind of value.
type Function struct {
	// Names are the names of the function, with its library, as in math.abs. Most functions have one name. Functions that
	// differ in little share an entry. Another entry may have the same name, for another kind of value.
	Names []string
	// Call shows how it is called: text.split(separator).
	Call string
	// Gives describes the result, as in "list of text".
	Gives string
	// Doc says in one or two sentences what it does.
	Doc string
	// Example is an expression without variables, and Result its value as JSON in one line; an absent value is null.
	Example, Result string
}

// Groups returns all functions: those that Handwerk adds, and then those of Kubernetes and of CEL.
func Groups() []Group {
	return slices.Concat(own(), values(), loops(), numbers(), kubernetes())
}

// Named returns the entries of a name. The name of a library may be left out, as in abs for math.abs.
func Named(name string) (out []Function) {
	for _, group := range Groups() {
		for _, f := range group.Functions {
			if slices.ContainsFunc(f.Names, func(n string) bool { return n == name || strings.HasSuffix(n, "."+name) }) {
				out = append(out, f)
			}
		}
	}
	return out
}

// Names returns the names of all functions and macros, sorted. Operators, whose names are signs, are not among them.
func Names() (out []string) {
	for _, group := range Groups() {
		for _, f := range group.Functions {
			out = append(out, f.Names...)
		}
	}
	out = slices.DeleteFunc(out, func(name string) bool { return !unicode.IsLetter(rune(name[0])) })
	slices.Sort(out)
	return slices.Compact(out)
}

// entry makes an entry. The names have spaces between them.
func entry(names, call, gives, doc, example, result string) Function {
	return Function{strings.Fields(names), call, gives, doc, example, result}
}
