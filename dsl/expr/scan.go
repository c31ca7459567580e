// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"strings"
	"unicode/utf8"
)

// Piece is a part of a text with expressions in it.
type Piece struct {
	// Text is plain, or what stands in ${…}.
	Text string
	// At is where an expression begins; zero for plain text.
	At Place
	// Program is the expression, compiled; nil for plain text.
	Program *Program
}

func (p Piece) isPlain() bool { return p.At == Place{} }

// scan splits text into literals and expressions, which are not compiled yet. $${ stands for ${ itself.
func scan(text string) ([]Piece, *Error) {
	if !strings.Contains(text, "${") {
		return []Piece{{Text: text}}, nil
	}
	var out []Piece
	var literal strings.Builder
	rest := text
	where := walk{place: Place{1, 1}}
	for {
		before, behind, found := strings.Cut(rest, "${")
		if !found {
			literal.WriteString(rest)
			break
		}
		if strings.HasSuffix(before, "$") {
			literal.WriteString(before + "{")
			rest = behind
			continue
		}
		literal.WriteString(before)
		at := len(text) - len(behind)
		place := where.to(text, at)
		size := expressionSize(behind)
		if size < 0 {
			return nil, alone(text).fault(unclosed(behind, place))
		}
		if literal.Len() > 0 {
			out = append(out, Piece{Text: literal.String()})
			literal.Reset()
		}
		out = append(out, Piece{Text: behind[:size], At: place})
		rest = behind[size+1:]
	}
	if literal.Len() > 0 || len(out) == 0 {
		out = append(out, Piece{Text: literal.String()})
	}
	return out, nil
}

// unclosed says why an expression that begins at a place does not end.
func unclosed(text string, begin Place) Issue {
	for t := range tokens(text) {
		if t.kind == openToken {
			inside := walk{place: begin}
			return Issue{inside.to(text, t.at), wrong(token{}, t, token{})}
		}
	}
	return Issue{Place{begin.Line, begin.Column - len("${")}, "${ has no closing }"}
}

// expressionSize returns where the brace that closes an expression stands, -1 when it is not
// there. Braces within the expression's own maps and texts do not count.
func expressionSize(text string) int {
	depth := 0
	for t := range tokens(text) {
		switch t.text {
		case "{":
			depth++
		case "}":
			if depth == 0 {
				return t.at
			}
			depth--
		}
	}
	return -1
}

// walk finds places of a text one behind the other, so that many of them cost one look at the text.
type walk struct {
	at    int
	place Place
}

// to returns the place of a byte of the text that is not before the last one.
func (w *walk) to(text string, at int) Place {
	step := text[w.at:at]
	if newlines := strings.Count(step, "\n"); newlines > 0 {
		w.place = Place{w.place.Line + newlines, 1}
		step = step[strings.LastIndexByte(step, '\n')+1:]
	}
	w.place.Column += utf8.RuneCountInString(step)
	w.at = at
	return w.place
}
