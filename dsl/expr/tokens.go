// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind int

const (
	noToken tokenKind = iota
	wordToken
	numberToken
	textToken
	signToken
)

// token is a word, number, text or sign of an expression.
type token struct {
	kind tokenKind
	text string
	at   int
}

func tokenAt(all []token, i int) token {
	if i < 0 || i >= len(all) {
		return token{}
	}
	return all[i]
}

func (t token) endsValue() bool {
	return t.kind == wordToken && t.text != "in" || t.kind == numberToken || t.kind == textToken ||
		slices.Contains([]string{")", "]", "}"}, t.text)
}

func (t token) beginsValue() bool {
	return t.kind == wordToken && t.text != "in" || t.kind == numberToken || t.kind == textToken ||
		slices.Contains([]string{"(", "[", "{", "!", "-"}, t.text)
}

// tokens splits an expression. Open is where a text begins that does not end, else -1; nothing
// behind it is returned.
func tokens(text string) (all []token, open int) {
	for at := 0; at < len(text); {
		rest := text[at:]
		size, kind := 1, noToken
		switch c := rest[0]; {
		case strings.ContainsRune(" \t\r\n", rune(c)):
		case strings.HasPrefix(rest, "//"):
			size = len(rest)
			if end := strings.IndexByte(rest, '\n'); end >= 0 {
				size = end
			}
		case c == '"' || c == '\'':
			kind, size = textToken, quotedSize(rest, isRaw(text[:at]))
			if size < 0 {
				return all, at
			}
		default:
			size, kind = wordOrSign(rest)
		}
		if kind != noToken {
			all = append(all, token{kind, rest[:size], at})
		}
		at += size
	}
	return all, -1
}

// wordOrSign returns the length and the kind of the token that s begins with.
func wordOrSign(s string) (size int, kind tokenKind) {
	if s[0] == '`' {
		if end := strings.IndexByte(s[1:], '`'); end >= 0 {
			return end + 2, wordToken
		}
	}
	longest := []string{"===", "!==", "==", "!=", "<=", ">=", "<>", "&&", "||", "?.", ".?"}
	for _, sign := range longest {
		if strings.HasPrefix(s, sign) {
			return len(sign), signToken
		}
	}
	size = strings.IndexFunc(s, func(r rune) bool { return !isWord(r) })
	switch {
	case size < 0:
		size = len(s)
	case size == 0:
		_, width := utf8.DecodeRuneInString(s)
		return width, signToken
	}
	if unicode.IsDigit(rune(s[0])) {
		return size, numberToken
	}
	return size, wordToken
}
