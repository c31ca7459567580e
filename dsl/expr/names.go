// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"fmt"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl/words"
)

// unknownName says that a name is not known, with the one that was perhaps meant. Functions are too
// many to be listed.
func unknownName(what, name string, known []string) string {
	meant, near := words.Nearest(name, append([]string{"true", "false", "null"}, known...))
	switch name {
	case "len", "length", "count":
		meant, near = "size", true
	case "lower", "toLower":
		meant, near = "lowerAscii", true
	case "upper", "toUpper":
		meant, near = "upperAscii", true
	case "nil", "None":
		meant, near = "null", true
	}
	if !near && what == "function" {
		return fmt.Sprintf("unknown function %q", name)
	}
	return fmt.Sprintf("unknown %s %q (%s)", what, name, suggestion(meant, near, known))
}

// unknownWord says that a field, child or relation is not known.
func unknownWord(what, name, where string, known []string) string {
	meant, near := words.Nearest(name, known)
	return fmt.Sprintf("unknown %s %q%s (%s)", what, name, where, suggestion(meant, near, known))
}

// suggestion helps with a word that is not known.
func suggestion(meant string, near bool, known []string) string {
	switch {
	case near:
		return fmt.Sprintf("did you mean %q?", meant)
	case len(known) == 0:
		return "there are none"
	case len(known) == 1:
		return "want " + known[0]
	}
	const most = 15
	if more := len(known) - most; more > 0 {
		return fmt.Sprintf("want one of %s and %d more", strings.Join(known[:most], ", "), more)
	}
	return "want one of " + strings.Join(known, ", ")
}
