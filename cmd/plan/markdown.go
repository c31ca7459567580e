// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"io"
	"strings"
)

// Markdown writes a plan as a comment on a pull request: its last line first, and the rest to unfold.
func Markdown(w io.Writer, r *Report) error {
	var body strings.Builder
	if err := Text(&body, r, false); err != nil {
		return err
	}
	lines := strings.Split(strings.TrimRight(body.String(), "\n"), "\n")
	last := len(lines) - 1
	if _, err := fmt.Fprintf(w, "### Plan of operator %s\n\n%s\n", r.Operator, lines[last]); err != nil || last == 0 {
		return err
	}
	_, err := fmt.Fprintf(w, "\n<details><summary>Details</summary>\n\n%[1]sdiff\n%[2]s\n%[1]s\n\n</details>\n", fenceOf(lines), asDiff(lines[:last]))
	return err
}

// fenceOf returns a fence that no line of a text ends.
func fenceOf(lines []string) string {
	fence := "```"
	for strings.Contains(strings.Join(lines, "\n"), fence) {
		fence += "`"
	}
	return fence
}

// asDiff makes the lines of fields begin with their signs, so that they are coloured. A changed field is !, as in a context diff.
func asDiff(lines []string) string {
	var out []string
	for _, line := range lines {
		text := strings.TrimLeft(line, " ")
		if text != line && len(text) > 1 && text[1] == ' ' && strings.Contains("+-~", text[:1]) {
			line = strings.Replace(text[:1], "~", "!", 1) + strings.Repeat(" ", len(line)-len(text)) + text[2:]
		}
		out = append(out, line)
	}
	return strings.TrimSpace(strings.Join(out, "\n"))
}
