// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"fmt"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl/words"
)

// Place is where something of an operator is declared.
type Place struct {
	// Resource is nil for what belongs to the operator, Handler for what belongs to the resource. Index is set for what
	// belongs to one of the operator's indexes.
	Resource *Resource
	Handler  *Handler
	Index    *IndexSpec
	// Field is the field in YAML's words, as in timeZone or after[1]; empty for the whole.
	Field string
}

// String names the place for people.
func (p Place) String() string {
	out := "operator"
	if p.Resource != nil {
		out = "resource " + p.Resource.Name.String()
	}
	if p.Index != nil {
		out = "index " + p.Index.Name
	}
	if p.Handler != nil && p.Resource == nil {
		out += ": " + string(p.Handler.Causes[0]) + " " + p.Handler.ID
	} else if p.Handler != nil {
		out += ": handler " + p.Handler.ID
	}
	if p.Field != "" && p.Field != "resource" { // which is named already
		out += ": " + p.Field
	}
	return out
}

// Fault is one thing that is wrong with an operator. [Operator.Validate] returns such errors, joined.
type Fault struct {
	Place
	// Err says what is wrong.
	Err error
	// First, for what may be there once, is where it is already.
	First *Place
	// Unwanted: the field has no meaning where it is, whatever its value.
	Unwanted bool
	// Lacks is a field of the handler, of the resource or of the operator that would mend it if it were there.
	Lacks string
	// From are fields of the handler that it follows from together: where one of them could not be read, it says nothing.
	From []string
}

// Error names the place and what is wrong.
func (f *Fault) Error() string { return fmt.Sprintf("%s: %v", f.Place, f.Err) }

// Unwrap returns what is wrong.
func (f *Fault) Unwrap() error { return f.Err }

// check gathers the faults of one place.
type check struct {
	Place
	found *[]error
}

// fault notes what is wrong with a field, empty for the whole.
func (c check) fault(field, format string, args ...any) { c.note(Fault{}, field, format, args...) }

// note is fault with what else there is to say.
func (c check) note(more Fault, field, format string, args ...any) {
	more.Place, more.Err = c.Place, fmt.Errorf(format, args...)
	more.Field = field
	*c.found = append(*c.found, &more)
}

// choice notes a word that is none of those that there are, and reports whether it is one.
func (c check) choice(field, word string, of interface{ Choices() (string, []string) }) (known bool) {
	what, all := of.Choices()
	if known = slices.Contains(all, word); !known {
		c.fault(field, "unknown %s %q (%s)", what, word, words.Hint(word, all))
	}
	return known
}

// unwanted is fault for a field that has no meaning where it is.
func (c check) unwanted(field, format string, args ...any) {
	c.note(Fault{Unwanted: true}, field, format, args...)
}

// either is fault for two fields, of which one may be absent, that contradict each other.
func (c check) either(first, second string, isFirst, isSecond bool, format string, args ...any) {
	if !isFirst {
		first, second = second, first
	}
	var more Fault
	if isFirst != isSecond {
		more.Lacks = second
	}
	c.note(more, first, format, args...)
}
