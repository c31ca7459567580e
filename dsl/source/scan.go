// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strconv"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"
)

// scan reads the characters of a scalar where they stand in a file.
type scan struct {
	source *Text
	at     position
	// line is line number read, in characters.
	line []rune
	read int
}

// next returns the character at the place and goes on; a line ends in '\n'.
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

// properties goes past the anchor and the tag that may stand before a scalar.
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
		return s.next() // a quote is written twice
	case style&yaml.DoubleQuotedStyle != 0 && r == '\\':
		return s.escaped()
	default:
		return r, ok
	}
}

// escaped returns what a backslash and what follows it stand for.
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
