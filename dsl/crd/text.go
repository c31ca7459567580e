// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/handwerk-dev/handwerk/dsl/form"
)

// text is the text "type | markers" of a field, as characters, so that faults have places in it.
type text []rune

// marker is a name=value behind the bar.
type marker struct {
	name  string
	value string
	// at is the place of the name; places are those of each character of the value, and of its end.
	at     int
	places []int
	quoted bool
}

// mistake is a fault within a text.
type mistake struct {
	at      int
	message string
}

// position returns line and column of a character, both from 1.
func (t text) position(at int) (line, column int) {
	before := t[:min(at, len(t))]
	lines := strings.Split(string(before), "\n")
	return len(lines), utf8.RuneCountInString(lines[len(lines)-1]) + 1
}

// split returns the type, its place, and the markers.
func (t text) split() (typ string, at int, markers []marker, wrong *mistake) {
	bar := slices.Index(t, '|')
	if bar < 0 {
		bar = len(t)
	}
	for at < bar && unicode.IsSpace(t[at]) {
		at++
	}
	typ = strings.TrimSpace(string(t[at:bar]))
	for i := bar; ; {
		for i < len(t) && (unicode.IsSpace(t[i]) || t[i] == '|') {
			i++
		}
		if i >= len(t) {
			return typ, at, markers, nil
		}
		m, end, wrong := t.marker(i)
		if wrong != nil {
			return typ, at, markers, wrong
		}
		markers = append(markers, m)
		i = end
	}
}

// marker reads the marker that begins at i.
func (t text) marker(i int) (m marker, end int, wrong *mistake) {
	m.at = i
	for i < len(t) && (unicode.IsLetter(t[i]) || unicode.IsDigit(t[i]) || t[i] == '-' || t[i] == '_') {
		i++
	}
	m.name = string(t[m.at:i])
	switch {
	case i == m.at:
		return m, i, &mistake{i, "want a marker such as required=true, found " + form.Quoted(string(t[i:]))}
	case i >= len(t) || t[i] != '=':
		hint := "name=value"
		if row, _ := markerNamed(m.name); row.Value == valueFlag {
			hint = m.name + "=true"
		}
		return m, i, &mistake{m.at, "the marker " + form.Quoted(m.name) + " has no value (want " + hint + ", without spaces around =)"}
	}
	return t.valueOf(m, i+1)
}

// valueOf reads a marker's value, which begins at i.
func (t text) valueOf(m marker, i int) (marker, int, *mistake) {
	end, wrong := i, (*mistake)(nil)
	switch {
	case i >= len(t) || unicode.IsSpace(t[i]):
		return m, i, &mistake{i, "the marker " + form.Quoted(m.name) + " has an empty value"}
	case t[i] == '"' || t[i] == '\'':
		m, end, wrong = t.quotation(m, i)
	case t[i] == '[' || t[i] == '{':
		m, end, wrong = t.brackets(m, i)
	default:
		for end < len(t) && !unicode.IsSpace(t[end]) {
			m.places = append(m.places, end)
			end++
		}
		m.value, m.places = string(t[i:end]), append(m.places, end)
	}
	if wrong == nil && end < len(t) && !unicode.IsSpace(t[end]) && t[end] != '|' {
		wrong = &mistake{end, "want a space between markers"}
	}
	return m, end, wrong
}

// quotation reads text in quotes. A backslash escapes a quote or another backslash; before other characters it
// stands for itself, for patterns.
func (t text) quotation(m marker, begin int) (marker, int, *mistake) {
	m.quoted = true
	var value []rune
	for i := begin + 1; i < len(t); i++ {
		switch {
		case t[i] == t[begin]:
			m.value, m.places = string(value), append(m.places, i)
			return m, i + 1, nil
		case t[i] == '\\' && i+1 < len(t) && (t[i+1] == t[begin] || t[i+1] == '\\'):
			i++
		}
		value, m.places = append(value, t[i]), append(m.places, i)
	}
	return m, len(t), &mistake{begin, "the value of " + form.Quoted(m.name) + " has no closing quote (a # behind a space ends text in YAML, unless all of it is in quotes)"}
}

// brackets reads a list or an object in JSON.
func (t text) brackets(m marker, begin int) (marker, int, *mistake) {
	end, closed := t.closing(begin)
	if !closed {
		return m, end, &mistake{begin, "the value of " + form.Quoted(m.name) + " has no closing bracket"}
	}
	for i := begin; i <= end; i++ {
		m.places = append(m.places, i)
	}
	m.value = string(t[begin:end])
	return m, end, nil
}

// closing returns the place behind the bracket that closes the one at i.
func (t text) closing(i int) (end int, closed bool) {
	depth, quoted := 0, rune(0)
	for ; i < len(t); i++ {
		switch r := t[i]; {
		case quoted != 0 && r == '\\':
			i++
		case quoted != 0:
			if r == quoted {
				quoted = 0
			}
		case r == '"' || r == '\'':
			quoted = r
		case r == '[' || r == '{':
			depth++
		case r == ']' || r == '}':
			if depth--; depth == 0 {
				return i + 1, true
			}
		}
	}
	return len(t), false
}
