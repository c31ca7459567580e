// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"strings"
)

// table is a Markdown table.
type table struct{ lines strings.Builder }

func (t *table) head(cells ...string) {
	t.row(cells...)
	t.lines.WriteString("|---" + strings.Repeat("|---", len(cells)-1) + "|\n")
}

func (t *table) row(cells ...string) {
	t.lines.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// WriteTo writes the table.
func (t *table) WriteTo(out io.Writer) (int64, error) {
	n, err := io.WriteString(out, t.lines.String())
	return int64(n), err
}
