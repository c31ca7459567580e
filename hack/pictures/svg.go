// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
)

// The measures of a recording, in pixels.
const (
	lineHeight = 18
	charWidth  = 7.8
	margin     = 16
	columns    = 100
)

// mostLines is the number of lines of a recording. All of them stay.
const mostLines = 24

// fills are the classes of the colors that a program may set.
var fills = map[string]string{"1": "b", "2": "d", "31": "r", "32": "g", "33": "y", "34": "u"}

// style has the colors of a terminal. A viewer without animations shows all lines at once.
const style = `text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d6deeb;white-space:pre}
.b{font-weight:bold}.d{fill:#7f8ea3}.r{fill:#ff6e6e}.g{fill:#8bd649}.y{fill:#ecc44f}.u{fill:#6cb6ff}
@keyframes come{from{opacity:0}to{opacity:1}}
.l{animation:come 1ms linear backwards}
@media (prefers-reduced-motion:reduce){.l{animation:none}}`

var color = regexp.MustCompile(`\x1b\[([0-9]{1,2})m`)

// clock matches the time at the begin of a line of play. It would be another one in each recording.
var clock = regexp.MustCompile(`^((?:\x1b\[[0-9]+m)*)[0-9:]{8}\.[0-9]{3}  `)

// below is the indent below a clock, where a long line goes on.
var below = strings.Repeat(" ", len("15:04:05.000  "))

// writeRecording writes lines as an SVG in which they come as they came.
func writeRecording(out io.Writer, command string, lines []line) {
	lines = append([]line{{0, "\x1b[1m" + command + "\x1b[0m"}}, shown(lines)...)
	width, height := 2*margin+columns*charWidth, 2*margin+len(lines)*lineHeight
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d" role="img" aria-label="operator play on a terminal">`+"\n",
		width, height, width, height)
	fmt.Fprintf(out, "<style>%s</style>\n<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#101825\"/>\n", style)
	for i, l := range lines {
		fmt.Fprintf(out, `<text class="l" x="%d" y="%d" style="animation-delay:%dms">%s</text>`+"\n",
			margin, margin+(i+1)*lineHeight-5, l.at.Round(100*time.Millisecond).Milliseconds(), spans(l.text))
	}
	fmt.Fprintln(out, "</svg>")
}

// shown returns the lines that the recording shows: the first ones, without their times and the paths of a machine.
func shown(lines []line) (out []line) {
	for _, l := range lines {
		l.text = strings.TrimPrefix(clock.ReplaceAllString(l.text, "$1"), below)
		if strings.Contains(l.text, "/tmp/") || strings.Contains(l.text, "HANDWERK_ADDRESS") {
			l.text = regexp.MustCompile(`=\S+`).ReplaceAllString(l.text, "=…")
		}
		if out = append(out, l); len(out) == mostLines {
			break
		}
	}
	return out
}

// spans returns a text with its colors as elements.
func spans(text string) string {
	var out bytes.Buffer
	open, at := false, 0
	write := func(part string) { _ = xml.EscapeText(&out, []byte(part)) } // a buffer takes all
	for _, found := range color.FindAllStringSubmatchIndex(text, -1) {
		write(text[at:found[0]])
		at = found[1]
		if open {
			out.WriteString("</tspan>")
		}
		class := fills[text[found[2]:found[3]]]
		if open = class != ""; open {
			fmt.Fprintf(&out, `<tspan class="%s">`, class)
		}
	}
	write(text[at:])
	if open {
		out.WriteString("</tspan>")
	}
	return out.String()
}
