// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Piece is a plain part of a text, or an expression in it.
type Piece struct {
	// Text is the plain text, or the text inside ${…}.
	Text string
	// At is the place of an expression; zero for plain text.
	At Place
	// Program is the compiled expression; nil for plain text.
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

// unclosed says why an expression at a place is not closed.
func unclosed(text string, begin Place) Issue {
	for t := range tokens(text) {
		if t.kind == openToken {
			inside := walk{place: begin}
			return Issue{inside.to(text, t.at), wrong(token{}, t, token{})}
		}
	}
	return Issue{Place{begin.Line, begin.Column - len("${")}, "${ has no closing }"}
}

// expressionSize returns the position of the brace that closes an expression, or -1. Braces within the expression's
// own maps and texts do not count.
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

type tokenKind int

const (
	noToken tokenKind = iota
	wordToken
	numberToken
	textToken
	openToken // an unclosed text
	signToken
)

// token is a word, number, text or sign in an expression.
type token struct {
	kind tokenKind
	text string
	at   int
}

// isDot reports whether a field follows the token.
func (t token) isDot() bool { return t.text == "." || t.text == ".?" }

func (t token) isValue() bool {
	return t.kind == wordToken && t.text != "in" || t.kind == numberToken || t.kind == textToken
}

func (t token) endsValue() bool {
	return t.isValue() || slices.Contains([]string{")", "]", "}"}, t.text)
}

func (t token) beginsValue() bool {
	return t.isValue() || slices.Contains([]string{"(", "[", "{", "!", "-"}, t.text)
}

// tokens yields the tokens of an expression, without spaces and comments.
func tokens(text string) iter.Seq[token] {
	return func(yield func(token) bool) {
		for at := 0; at < len(text); {
			kind, size := tokenAt(text, at)
			if kind != noToken && !yield(token{kind, text[at : at+size], at}) {
				return
			}
			at += size
		}
	}
}

// tokenAt returns the kind and the length of the token at a byte of text.
func tokenAt(text string, at int) (kind tokenKind, size int) {
	rest := text[at:]
	switch c := rest[0]; {
	case strings.ContainsRune(" \t\r\n", rune(c)):
		return noToken, 1
	case strings.HasPrefix(rest, "//"):
		comment, _, _ := strings.Cut(rest, "\n")
		return noToken, len(comment)
	case c == '"' || c == '\'':
		if size := quotedSize(rest, isRaw(text[:at])); size >= 0 {
			return textToken, size
		}
		return openToken, len(rest)
	case c == '`':
		if end := strings.IndexByte(rest[1:], '`'); end >= 0 {
			return wordToken, end + 2
		}
	}
	for _, sign := range []string{"===", "!==", "==", "!=", "<=", ">=", "<>", "&&", "||", "??", "?:", "?.", ".?"} {
		if strings.HasPrefix(rest, sign) {
			return signToken, len(sign)
		}
	}
	word := rest[:len(rest)-len(strings.TrimLeftFunc(rest, isWord))]
	first, width := utf8.DecodeRuneInString(rest)
	switch {
	case word == "":
		return signToken, width
	case unicode.IsDigit(first):
		return numberToken, len(word)
	}
	return wordToken, len(word)
}

// isRaw reports whether a text literal after s is raw, so that backslashes stand for themselves.
func isRaw(s string) bool {
	return strings.ContainsAny(s[len(strings.TrimRight(s, "rRbB")):], "rR")
}

// quotedSize returns the length of the quoted text at the beginning of s, or -1 if it is not closed. Only triple
// quotes may span several lines.
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
