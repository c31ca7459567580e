// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"strconv"
	"strings"
	"unicode"
)

// The limits of text in a drawing: letters in a line, and lines. Longer text is cut off.
const (
	titleWidth = 120
	nameWidth  = 40
	boxWidth   = 34
	boxLines   = 2
	labelWidth = 24
	labelLines = 3
)

// wrapped breaks text into a few lines, and cuts off the rest.
func wrapped(text string, width, most int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(readable(text)) {
		for word != "" {
			room, gap := width-columns(line), ""
			if line != "" {
				room, gap = room-1, " "
			}
			part, rest := word, ""
			if columns(word) > width && room >= width/2 {
				part, rest = cut(word, room) // it must be broken anyway
			}
			if columns(part) > room {
				lines, line = append(lines, line), ""
				continue
			}
			line, word = line+gap+part, rest
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	if len(lines) > most {
		lines = lines[:most]
		last, _ := cut(lines[most-1], width-1)
		lines[most-1] = strings.TrimRight(last, " ,;:.") + "…"
	}
	return lines
}

// short is text in one line.
func short(text string, width int) string { return strings.Join(wrapped(text, width, 1), "") }

// readable returns text without characters that cannot be shown.
func readable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsGraphic(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, string(unicode.ReplacementChar)))
}

// cut breaks a word that is too long, if possible behind a punctuation mark. The line has at least one letter.
func cut(word string, width int) (line, rest string) {
	if columns(word) <= width {
		return word, ""
	}
	at, mark, used := 0, 0, 0
	for i, r := range word {
		if used += Columns(r); used > width && i > 0 {
			break
		}
		at = i + len(string(r))
		if strings.ContainsRune("./,-_)]}", r) {
			mark = at
		}
	}
	if mark > at/2 {
		at = mark
	}
	return word[:at], word[at:]
}

// columns returns the width of text, in letters.
func columns(text string) (out int) {
	for _, r := range text {
		out += Columns(r)
	}
	return out
}

// Columns returns the width of a character, in letters: two in wide scripts, zero for a character that combines
// with the one before.
func Columns(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana), r >= 0xff01 && r <= 0xff60, r >= 0x1f300 && r <= 0x1faff:
		return 2
	}
	return 1
}

func digits(n int) string { return strconv.Itoa(n) }
