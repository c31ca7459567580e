// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/google/cel-go/common/operators"

	"github.com/handwerk-dev/handwerk/dsl/words"
)

// Unknown says that a field, child or the like is not known, with the one that was perhaps meant. Where says
// which object it was looked for in, and may be empty.
func Unknown(what, name, where string, known []string) string {
	return fmt.Sprintf("unknown %s %q%s (%s)", what, name, where, words.Hint(name, known))
}

// unknownName is Unknown for variables and functions, which other languages have too. Functions are too
// many to be listed.
func unknownName(what, name string, known []string) string {
	meant := cmp.Or(map[string]string{
		"len": "size", "length": "size", "count": "size",
		"lower": "lowerAscii", "toLower": "lowerAscii", "upper": "upperAscii", "toUpper": "upperAscii",
		"nil": "null", "None": "null",
	}[name], name)
	meant, near := words.Nearest(meant, append([]string{"true", "false", "null"}, known...))
	switch {
	case near:
		return fmt.Sprintf("unknown %s %q (did you mean %q?)", what, name, meant)
	case what == "function":
		return fmt.Sprintf("unknown function %q", name)
	}
	return Unknown(what, name, "", known)
}

// FunctionNamed returns how people write a function or an operator.
func FunctionNamed(name string) string {
	if operator, found := operators.FindReverse(name); found && operator != "" {
		return operator
	}
	switch name {
	case operators.Index, operators.OptIndex:
		return "[]"
	case operators.Conditional:
		return "?:"
	}
	return name + "()"
}

// CannotUse says that a function or an operator does not go with the values that it is given.
func CannotUse(function string, with []string) string {
	return "cannot use " + FunctionNamed(function) + " with " + strings.Join(with, " and ")
}
