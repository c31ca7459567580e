// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// Fault is one fault of a configuration.
type Fault struct {
	// File is the name of the file as given, or in the given directory. Empty for declarations in Go.
	File string
	// Line and Column count from 1; columns count characters. Both are 0 for a fault of the whole file.
	Line, Column int
	// Path is the path within the document, as in resources[0].handlers[1].retries. Empty for the whole document.
	Path string
	// Message describes the fault in one line.
	Message string
	// Excerpt, for faults within an expression, is the line of the file and, below it, a caret at the column. Of a
	// long line it is the part around the column, with … where it is cut. It is not part of Error.
	Excerpt string
	// Warning: the fault is uncertain.
	Warning bool
}

// Warns reports whether the fault is uncertain.
func (f Fault) Warns() bool { return f.Warning }

// Error returns the fault as "file:line:column: path: message", without unknown parts.
func (f Fault) Error() string {
	at := f.File
	if f.Line > 0 {
		at = fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
	}
	parts := slices.DeleteFunc([]string{at, f.Path, f.Message}, func(part string) bool { return part == "" })
	return strings.Join(parts, ": ")
}

// Faults are all faults of a configuration, sorted by file and position. It is an error if it is not empty.
type Faults []Fault

// Error returns the faults, one a line.
func (fs Faults) Error() string {
	shown := fs.Shown()
	lines := make([]string, len(shown))
	for i, f := range shown {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

const (
	// mostFaults is how many faults people see, mostText how many bytes of each path and message, and mostWord how many of a word.
	mostFaults = 100
	mostText   = 2000
	mostWord   = 200
)

// Shown returns the faults as people see them: the first hundred, with long words cut, and how many more there are.
func (fs Faults) Shown() Faults {
	out := slices.Clone(fs[:min(len(fs), mostFaults)])
	for i := range out {
		out[i].Path, out[i].Message = cut(out[i].Path), cut(out[i].Message)
	}
	if more := len(fs) - mostFaults; more > 0 {
		out = append(out, Fault{Message: fmt.Sprintf("and %d more", more)})
	}
	return out
}

// cut shortens a text and its long words, such as ids.
func cut(text string) string {
	if len(text) <= mostWord {
		return text
	}
	words := strings.Split(text, " ")
	for i, word := range words {
		words[i] = plain.Short(word, mostWord)
	}
	return plain.Short(strings.Join(words, " "), mostText)
}

// Sorted returns the faults in order and without duplicates: a fault of a value that aliases repeat has one place.
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
