// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"strings"
	"unicode/utf8"
)

// piece is a part of a text with expressions in it.
type piece struct {
	text string
	// expression: the text is what stood in ${…}.
	expression bool
	// line and column are where it begins, from 1.
	line, column int
}

// scan splits text into literals and expressions. $${ stands for ${ itself.
func scan(text string) ([]piece, *Error) {
	if !strings.Contains(text, "${") {
		return []piece{{text: text}}, nil
	}
	var out []piece
	var literal strings.Builder
	rest := text
	where := walk{line: 1, column: 1}
	for {
		i := strings.Index(rest, "${")
		if i < 0 {
			literal.WriteString(rest)
			break
		}
		if i > 0 && rest[i-1] == '$' {
			literal.WriteString(rest[:i-1] + "${")
			rest = rest[i+2:]
			continue
		}
		literal.WriteString(rest[:i])
		at := len(text) - len(rest) + i
		size := expressionSize(rest[i+2:])
		line, column := where.to(text, at+2)
		if size < 0 {
			return nil, &Error{Text: text, Issues: []Issue{unclosed(text, at, line, column)}}
		}
		if literal.Len() > 0 {
			out = append(out, piece{text: literal.String()})
			literal.Reset()
		}
		out = append(out, piece{text: rest[i+2 : i+2+size], expression: true, line: line, column: column})
		rest = rest[i+2+size+1:]
	}
	if literal.Len() > 0 || len(out) == 0 {
		out = append(out, piece{text: literal.String()})
	}
	return out, nil
}

// unclosed says why the expression behind a byte of text does not end.
func unclosed(text string, at, line, column int) Issue {
	if _, open := tokens(text[at+2:]); open >= 0 {
		line, column = position(text, at+2+open)
		return Issue{Line: line, Column: column, Message: unclosedText(text[at+2+open:])}
	}
	return Issue{Line: line, Column: column - 2, Message: "${ has no closing }"}
}

// unclosedText is the message for a text in quotes that does not end.
func unclosedText(from string) string {
	return "the text that begins here has no closing " + from[:1]
}

// expressionSize returns where the brace that closes an expression stands, -1 when it is not
// there. Braces within the expression's own maps and texts do not count.
func expressionSize(s string) int {
	depth := 0
	for i := 0; i < len(s); {
		switch c := s[i]; c {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return i
			}
			depth--
		case '"', '\'':
			size := quotedSize(s[i:], isRaw(s[:i]))
			if size < 0 {
				return -1
			}
			i += size
			continue
		case '/':
			if strings.HasPrefix(s[i:], "//") { // a comment, to the end of the line
				end := strings.IndexByte(s[i:], '\n')
				if end < 0 {
					return -1
				}
				i += end
			}
		}
		i++
	}
	return -1
}

// isRaw reports whether a text that begins behind s is raw: backslashes mean themselves.
func isRaw(s string) bool {
	return strings.ContainsAny(s[len(strings.TrimRight(s, "rRbB")):], "rR")
}

// quotedSize returns the length of the text in quotes that s begins with, -1 when it does not end.
// Only one in triple quotes goes over several lines.
func quotedSize(s string, raw bool) int {
	quote := s[:1]
	if strings.HasPrefix(s, strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	for i := len(quote); i < len(s); i++ {
		switch {
		case s[i] == '\\' && !raw:
			i++
		case s[i] == '\n' && len(quote) == 1:
			return -1
		case strings.HasPrefix(s[i:], quote):
			return i + len(quote)
		}
	}
	return -1
}

// walk finds places of a text one behind the other, so that many of them cost one look at the text.
type walk struct{ at, line, column int }

// to returns the line and column of a byte of the text that is not before the last one.
func (w *walk) to(text string, at int) (line, column int) {
	step := text[w.at:at]
	if newlines := strings.Count(step, "\n"); newlines > 0 {
		w.line += newlines
		w.column = 1
		step = step[strings.LastIndexByte(step, '\n')+1:]
	}
	w.column += utf8.RuneCountInString(step)
	w.at = at
	return w.line, w.column
}

// position returns the line and column of a byte of text, both from 1.
func position(text string, at int) (line, column int) {
	before := text[:at]
	line = strings.Count(before, "\n") + 1
	return line, utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
}
