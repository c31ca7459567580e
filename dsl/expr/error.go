// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/common"
)

// Error says what is wrong with the text of an expression.
type Error struct {
	// Text is the expression.
	Text string
	// Issues are never empty, in the order of their positions.
	Issues []Issue
}

// Issue is one fault of an expression.
type Issue struct {
	// Line and Column are the place within the expression, both from 1; columns count characters.
	Line, Column int
	// Message says what is wrong, in one line.
	Message string
}

// Error returns the issues, each with its place, in one line.
func (e *Error) Error() string {
	parts := make([]string, len(e.Issues))
	for i, issue := range e.Issues {
		parts[i] = fmt.Sprintf("%d:%d: %s", issue.Line, issue.Column, issue.Message)
	}
	return strings.Join(parts, "; ")
}

// Render returns the issues for a terminal: each with the line it is in and a caret under the
// place.
func (e *Error) Render() string {
	lines := strings.Split(e.Text, "\n")
	var b strings.Builder
	for _, issue := range e.Issues {
		line := strings.ReplaceAll(lines[min(issue.Line, len(lines))-1], "\t", " ")
		fmt.Fprintf(&b, "%d:%d: %s\n  %s\n  %s^\n", issue.Line, issue.Column, issue.Message, line,
			strings.Repeat(" ", issue.Column-1))
	}
	return b.String()
}

func newError(text string, errs []*common.Error) *Error {
	out := &Error{Text: text}
	for _, err := range errs {
		out.Issues = append(out.Issues, Issue{
			Line:    max(err.Location.Line(), 1),
			Column:  max(err.Location.Column()+1, 1),
			Message: plain(err.Message),
		})
	}
	return out
}

// plain takes the parser's own wording out of a message.
func plain(message string) string {
	message = strings.TrimPrefix(message, "Syntax error: ")
	message, _, _ = strings.Cut(message, " (in container")
	message, _, _ = strings.Cut(message, " expecting {")
	message = strings.Replace(message, "mismatched input '<EOF>'", "unexpected end of the expression", 1)
	return strings.Join(strings.Fields(message), " ")
}
