// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"fmt"
	"strings"
)

// Error says what is wrong with the text of an expression.
type Error struct {
	// Text is the expression.
	Text string
	// Issues are never empty, in the order of their positions. Of more than 20, the last one says that
	// there are more.
	Issues []Issue
}

// mostIssues is how many faults of one text are told. Nobody reads more of them, and each is kept with
// its place and words.
const mostIssues = 20

// longestMessage is how many characters of a message are told: it may have a name from the text in it.
const longestMessage = 300

// told cuts issues, which are in the order of their places, to what is told.
func told(issues []Issue) []Issue {
	if len(issues) > mostIssues {
		next := issues[mostIssues]
		issues = append(issues[:mostIssues:mostIssues], Issue{next.Line, next.Column, "there are more faults from here on"})
	}
	for i := range issues {
		if runes := []rune(issues[i].Message); len(runes) > longestMessage {
			issues[i].Message = string(runes[:longestMessage]) + "…"
		}
	}
	return issues
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
