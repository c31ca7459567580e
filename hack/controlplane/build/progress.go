// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// step is the number of packages, or modules, per line if lines cannot be overwritten.
const step = 100

// progress reads the output of "go build -v" line by line, and shows the progress of the build. It passes on other
// lines, such as compile errors.
type progress struct {
	out        io.Writer
	live       bool                // one line that is overwritten, instead of a line now and then
	count      func() (int, error) // counts all packages; asked once, when there is something to build
	rest       []byte
	downloaded int
	built      int
	total      int
	open       bool // the line is not ended
}

func newProgress(out io.Writer, live bool, count func() (int, error)) *progress {
	return &progress{out: out, live: live, count: count}
}

// Write takes a part of the report. It implements [io.Writer] and never fails.
func (p *progress) Write(part []byte) (int, error) {
	p.rest = append(p.rest, part...)
	for {
		line, rest, found := bytes.Cut(p.rest, []byte("\n"))
		if !found {
			return len(part), nil
		}
		p.rest = rest
		p.line(string(line))
	}
}

// finish takes what is left without a line break, and ends an overwritten line.
func (p *progress) finish() {
	if len(p.rest) > 0 {
		p.line(string(p.rest))
		p.rest = nil
	}
	p.endLine()
}

func (p *progress) endLine() {
	if p.open {
		fmt.Fprintln(p.out)
		p.open = false
	}
}

func (p *progress) line(text string) {
	if module, found := strings.CutPrefix(text, "go: downloading "); found {
		p.downloaded++
		p.show(p.downloaded, fmt.Sprintf("downloading module %d: %s", p.downloaded, module))
		return
	}
	// A package is a path without blanks; everything else that go build says has some.
	if text == "" || strings.ContainsAny(text, " \t") {
		p.endLine()
		fmt.Fprintln(p.out, text)
		return
	}
	if p.built++; p.built == 1 {
		p.total, _ = p.count() // without a total the count alone is shown
	}
	of := ""
	if p.total > 0 {
		of = fmt.Sprintf("/%d", p.total)
	}
	p.show(p.built, fmt.Sprintf("building %d%s packages: %s", p.built, of, text))
}

func (p *progress) show(number int, text string) {
	switch {
	case p.live:
		fmt.Fprintf(p.out, "\r\x1b[K%.100s", text)
		p.open = true
	case number == 1 || number%step == 0:
		fmt.Fprintln(p.out, text)
	}
}
