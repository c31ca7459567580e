// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"fmt"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl/words"
)

// Place is a place in the declaration of an operator.
type Place struct {
	// Resource is nil for a field of the operator, and Handler is nil for a field of the resource. Index is set for
	// a field of one of the operator's indexes.
	Resource *Resource
	Handler  *Handler
	Index    *IndexSpec
	// Field is the name of the field in YAML, as in timeZone or after[1]; empty for the whole.
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
	if p.Field != "" && p.Field != "resource" { // the name is there already
		out += ": " + p.Field
	}
	return out
}

// Fault is one fault of an operator. [Operator.Validate] returns such errors, joined.
type Fault struct {
	Place
	// Err says what is wrong.
	Err error
	// First is the place of the first declaration, for something that may be declared only once.
	First *Place
	// Unwanted: the field has no meaning at this place, whatever its value.
	Unwanted bool
	// Lacks is a missing field of the handler, the resource or the operator; adding it would mend the fault.
	Lacks string
	// From are the fields of the handler that lead to the fault together. When one of them could not be read, the
	// fault is not reported.
	From []string
}

// Error names the place and the fault.
func (f *Fault) Error() string { return fmt.Sprintf("%s: %v", f.Place, f.Err) }

// Unwrap returns Err.
func (f *Fault) Unwrap() error { return f.Err }

// check collects the faults of one place.
type check struct {
	Place
	found *[]error
}

// fault notes a fault of a field; an empty field means the whole.
func (c check) fault(field, format string, args ...any) { c.note(Fault{}, field, format, args...) }

// note notes a fault as fault does, with more details in it.
func (c check) note(more Fault, field, format string, args ...any) {
	more.Place, more.Err = c.Place, fmt.Errorf(format, args...)
	more.Field = field
	*c.found = append(*c.found, &more)
}

// choice notes a word that is not among the choices, and reports whether the word is one of them.
func (c check) choice(field, word string, of interface{ Choices() (string, []string) }) (known bool) {
	what, all := of.Choices()
	if known = slices.Contains(all, word); !known {
		c.fault(field, "unknown %s %q (%s)", what, word, words.Hint(word, all))
	}
	return known
}

// unwanted notes a field that has no meaning at this place.
func (c check) unwanted(field, format string, args ...any) {
	c.note(Fault{Unwanted: true}, field, format, args...)
}

// either notes a contradiction between two fields. One of them may be absent.
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
