// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing that is wrong with a configuration.
type Fault struct {
	// File is the name of the file as it was given, or as it is in the directory that was given. Empty for what was
	// declared in Go.
	File string
	// Line and Column count from 1; columns count characters. Both are 0 when the file as a whole
	// is at fault.
	Line, Column int
	// Path leads to the place within the document, as in resources[0].handlers[1].retries. Empty
	// for the document as a whole.
	Path string
	// Message says what is wrong, in one line.
	Message string
	// Excerpt, for faults within an expression, is the line of the file and below it a caret under
	// the place. Of a long line it is the part around the place, with … where it was cut. It is not
	// part of Error.
	Excerpt string
	// Warning: it may be right all the same.
	Warning bool
}

// Warns reports whether what is found may be right all the same.
func (f Fault) Warns() bool { return f.Warning }

// Error returns the fault as "file:line:column: path: message", without what is not known of it.
func (f Fault) Error() string {
	at := f.File
	if f.Line > 0 {
		at = fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
	}
	parts := slices.DeleteFunc([]string{at, f.Path, f.Message}, func(part string) bool { return part == "" })
	return strings.Join(parts, ": ")
}

// Faults are all that is wrong with a configuration, sorted by file and position. It is an error
// when it is not empty.
type Faults []Fault

// Error returns the faults, one a line.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// Sorted returns the faults in order and without repetitions: what an alias repeats is at fault
// in one place.
func (fs Faults) Sorted() Faults {
	out := slices.Clone(fs)
	slices.SortStableFunc(out, func(a, b Fault) int {
		return cmp.Or(
			strings.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
			strings.Compare(a.Path, b.Path),
			strings.Compare(a.Message, b.Message),
		)
	})
	return slices.Compact(out)
}
