// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// The colors of rows, as terminals know them.
const (
	noColor = ""
	bold    = "\x1b[1m"
	red     = "\x1b[31m"
	green   = "\x1b[32m"
	yellow  = "\x1b[33m"
	reset   = "\x1b[0m"
)

// row is a row of a table. Its cells may have texts of those who write objects: they get no control over the terminal.
type row struct {
	cells []string
	color string
}

func plainRow(cells ...string) row { return row{cells, noColor} }

// table writes rows in columns. The first row is the head. Each row has its color.
func table(out io.Writer, colors bool, rows []row) {
	var widths []int
	for _, r := range rows {
		for i, cell := range r.cells {
			r.cells[i] = plain.Escaped(cell, "")
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(r.cells[i]))
		}
	}
	for _, r := range rows {
		var line strings.Builder
		for i, cell := range r.cells {
			line.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
		}
		text := strings.TrimRight(line.String(), " ")
		if colors && r.color != noColor {
			text = r.color + text + reset
		}
		fmt.Fprintln(out, text)
	}
}
