// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/google/cel-go/common/operators"

	"github.com/handwerk-dev/handwerk/dsl/shape"
	"github.com/handwerk-dev/handwerk/dsl/words"
)

// Error has the faults of an expression.
type Error struct {
	// Issues are in the order of their positions. If there are more than 20, the last one says so.
	Issues []Issue
	// Doubts are warnings for uncertain faults. They and Issues are not both empty.
	Doubts []Issue
}

// Issue is one fault of an expression.
type Issue struct {
	Place
	// Message describes the fault in one line.
	Message string
}

// MostIssues limits how many faults of one text are reported. More would not be read, and each is kept with its
// place and message.
const MostIssues = 20

// longestMessage limits the characters of a message, because it may contain a name from the text.
const longestMessage = 300

// source is an expression with its position in the surrounding text.
type source struct {
	text  string
	begin Place
}

// alone is the source of an expression without surrounding text.
func alone(text string) source { return source{text, Place{1, 1}} }

// fault makes an error of issues, whose places are relative to the expression.
func (s source) fault(issues ...Issue) *Error {
	slices.SortStableFunc(issues, func(a, b Issue) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if len(issues) > MostIssues {
		next := issues[MostIssues]
		issues = append(issues[:MostIssues:MostIssues], Issue{next.Place, "there are more faults from here on"})
	}
	for i := range issues {
		if runes := []rune(issues[i].Message); len(runes) > longestMessage {
			issues[i].Message = string(runes[:longestMessage]) + "…"
		}
		if issues[i].Line == 1 {
			issues[i].Column += s.begin.Column - 1
		}
		issues[i].Line += s.begin.Line - 1
	}
	return &Error{Issues: issues}
}

// Error returns the issues, each with its place, in one line.
func (e *Error) Error() string {
	all := slices.Concat(e.Issues, e.Doubts)
	parts := make([]string, len(all))
	for i, issue := range all {
		parts[i] = fmt.Sprintf("%d:%d: %s", issue.Line, issue.Column, issue.Message)
	}
	return strings.Join(parts, "; ")
}

// Faults converts the error of a text at a path to faults of a configuration: one *shape.Misfit for each issue, and
// one that is a warning for each doubt.
func Faults(at []string, err error) (out []error) {
	faulty, ok := errors.AsType[*Error](err)
	switch {
	case err == nil:
		return nil
	case !ok:
		return []error{&shape.Misfit{Path: at, Message: err.Error()}}
	}
	for _, issue := range faulty.Issues {
		out = append(out, &shape.Misfit{Path: at, Line: issue.Line, Column: issue.Column, Message: issue.Message})
	}
	for _, issue := range faulty.Doubts {
		out = append(out, &shape.Misfit{Path: at, Line: issue.Line, Column: issue.Column, Message: issue.Message, Warning: true})
	}
	return out
}

// Unknown is the message for an unknown field, child or the like, with the most similar known name. Where names the
// object that was searched, and may be empty.
func Unknown(what, name, where string, known []string) string {
	return fmt.Sprintf("unknown %s %q%s (%s)", what, name, where, words.Hint(name, known))
}

// unknownName is Unknown for variables and functions, which also recognises names from other languages. It does not
// list functions, because there are too many.
func unknownName(what, name string, known []string) string {
	if none := sendsRequests(name); none != "" {
		return none
	}
	if what == "variable" && name == Current {
		return `unknown variable "current" (it is for the template, forEach, key and includeWhen of a child; children has what was made)`
	}
	if what == "variable" && name == "schema" {
		return `unknown variable "schema" (the object is self: write self.spec.x for schema.spec.x)`
	}
	meant := cmp.Or(map[string]string{
		"len": "size", "length": "size", "count": "size",
		"lower": "lowerAscii", "toLower": "lowerAscii", "upper": "upperAscii", "toUpper": "upperAscii",
		"nil": "null", "None": "null",
		"object": Self, "oldObject": Old, "oldSelf": Old, // as admission policies and CRDs have them
	}[name], name)
	meant, near := words.Nearest(meant, append([]string{"true", "false", "null"}, known...))
	switch {
	case near:
		return fmt.Sprintf("unknown %s %q (did you mean %q?)", what, name, meant)
	case what == "function":
		return fmt.Sprintf("unknown function %q", name)
	case what == "variable" && len(name) > 1 && (!strings.ContainsFunc(name, unicode.IsLower) || strings.Contains(name, "_")): // as nginx has them
		return fmt.Sprintf("unknown variable %q (one of another program, as the shell, is written $${%s})", name, name)
	}
	return Unknown(what, name, "", known)
}

// FunctionNamed returns the name of a function or an operator as people write it.
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

// CannotUse is the message for a function or an operator that does not accept its arguments.
func CannotUse(function string, with []string) string {
	return "cannot use " + FunctionNamed(function) + " with " + strings.Join(with, " and ")
}
