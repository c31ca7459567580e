// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl/form"
)

// Fault makes a fault at a value, or at a position in its text if line and column are not zero; then it has an
// excerpt.
func (s *Text) Fault(n *yaml.Node, at form.Path, line, column int, message string) Fault {
	message = strings.Join(strings.Fields(message), " ")
	out := Fault{File: s.Name, Line: n.Line, Column: n.Column, Path: string(at), Message: message}
	if line > 0 && n.Kind == yaml.ScalarNode {
		out.Line, out.Column = s.within(n, line, column)
		out.Excerpt = s.excerpt(out.Line, out.Column)
	}
	return out
}

// around is how many characters of a line an excerpt has on either side of a fault.
const around = 100

// excerpt returns a line of the file with a caret at a column; of a long line, the part around it.
func (s *Text) excerpt(line, column int) string {
	if line < 1 || line > len(s.lines) {
		return ""
	}
	text := s.line(line)
	caret := min(max(column-1, 0), len(text))
	before, from := "", 0
	if caret > around {
		before, from = "…", caret-around
	}
	after, to := "", len(text)
	if to > caret+around {
		after, to = "…", caret+around
	}
	shown := before + strings.ReplaceAll(string(text[from:to]), "\t", " ") + after
	return shown + "\n" + strings.Repeat(" ", utf8.RuneCountInString(before)+caret-from) + "^"
}

// within finds a character of a scalar's value in the file. YAML changes white space, so it counts the other
// characters. If file and value do not agree, it returns the scalar's place.
func (s *Text) within(n *yaml.Node, line, column int) (int, int) {
	count := 0
	text := strings.Split(n.Value, "\n")
	for i, part := range text[:min(line, len(text))] {
		runes := []rune(part)
		if i == line-1 {
			runes = runes[:min(column-1, len(runes))]
		}
		count += marks(string(runes))
	}
	found := s.marks(n, min(count+1, marks(n.Value)))
	switch {
	case count < len(found):
		return found[count].line, found[count].column
	case len(found) > 0:
		last := found[len(found)-1]
		return last.line, last.column + 1
	default:
		return n.Line, n.Column
	}
}

// marks counts the characters other than white space.
func marks(text string) int {
	count := 0
	for _, r := range text {
		if !unicode.IsSpace(r) {
			count++
		}
	}
	return count
}

// position is a place in a file.
type position struct{ line, column int }

// marks returns the places of the first characters of a scalar other than white space; nil if the file has fewer.
func (s *Text) marks(n *yaml.Node, count int) []position {
	sc := &scan{source: s, at: position{n.Line, n.Column}}
	sc.properties()
	switch {
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		sc.at = position{sc.at.line + 1, 1}
	case n.Style&yaml.DoubleQuotedStyle != 0, n.Style&yaml.SingleQuotedStyle != 0:
		sc.at.column++
	}
	var out []position
	for len(out) < count {
		at := sc.at
		r, ok := sc.character(n.Style)
		if !ok {
			return nil
		}
		if !unicode.IsSpace(r) {
			out = append(out, at)
		}
	}
	return out
}

// scan reads the characters of a scalar in the file.
type scan struct {
	source *Text
	at     position
	// line has the characters of the current line.
	line []rune
	read int
}

// next returns the current character and moves on; lines end with '\n'.
func (s *scan) next() (rune, bool) {
	if s.at.line > len(s.source.lines) {
		return 0, false
	}
	if s.read != s.at.line {
		s.line, s.read = s.source.line(s.at.line), s.at.line
	}
	if s.at.column > len(s.line) {
		s.at = position{s.at.line + 1, 1}
		return '\n', true
	}
	s.at.column++
	return s.line[s.at.column-2], true
}

// properties skips the anchor and the tag before a scalar.
func (s *scan) properties() {
	for {
		start := s.at
		r, ok := s.next()
		for ok && unicode.IsSpace(r) {
			start = s.at
			r, ok = s.next()
		}
		if !ok || r != '&' && r != '!' {
			s.at = start
			return
		}
		for ok && !unicode.IsSpace(r) {
			r, ok = s.next()
		}
	}
}

// character returns the next character of the value.
func (s *scan) character(style yaml.Style) (rune, bool) {
	r, ok := s.next()
	switch {
	case style&yaml.SingleQuotedStyle != 0 && r == '\'':
		return s.next() // a quote is escaped by doubling it
	case style&yaml.DoubleQuotedStyle != 0 && r == '\\':
		return s.escaped()
	default:
		return r, ok
	}
}

// escaped returns the character of an escape after a backslash.
func (s *scan) escaped() (rune, bool) {
	r, ok := s.next()
	digits := map[rune]int{'x': 2, 'u': 4, 'U': 8}[r]
	if digits == 0 {
		if strings.ContainsRune(" \n\tnrtvfNLP_", r) {
			return ' ', ok
		}
		return r, ok
	}
	var code strings.Builder
	for range digits {
		r, ok = s.next()
		if !ok {
			return 0, false
		}
		code.WriteString(string(r))
	}
	value, err := strconv.ParseUint(code.String(), 16, 32)
	return rune(value), err == nil
}
