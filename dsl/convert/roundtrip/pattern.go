// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package roundtrip

import (
	"regexp/syntax"
	"strings"
)

// matching makes a text that a pattern matches; one that cannot be read gives a word.
func (g generator) matching(pattern string) string {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return g.word()
	}
	var out strings.Builder
	g.write(&out, parsed.Simplify())
	return out.String()
}

// write adds a text that a part of a pattern matches.
func (g generator) write(out *strings.Builder, re *syntax.Regexp) {
	times := 1
	switch re.Op {
	case syntax.OpLiteral:
		out.WriteString(string(re.Rune))
		return
	case syntax.OpCharClass:
		out.WriteRune(g.char(re.Rune))
		return
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		out.WriteByte(letters[g.IntN(len(letters))])
		return
	case syntax.OpAlternate:
		g.write(out, re.Sub[g.IntN(len(re.Sub))])
		return
	case syntax.OpStar:
		times = g.IntN(most)
	case syntax.OpPlus:
		times = 1 + g.IntN(most)
	case syntax.OpQuest:
		times = g.IntN(2)
	}
	for range times {
		for _, sub := range re.Sub {
			g.write(out, sub)
		}
	}
}

// char chooses a character of a class, from the ASCII characters for reading if it has some.
func (g generator) char(ranges []rune) rune {
	var known []rune
	for i := 0; i+1 < len(ranges); i += 2 {
		for r := max(ranges[i], '!'); r <= min(ranges[i+1], '~'); r++ {
			known = append(known, r)
		}
	}
	switch {
	case len(known) > 0:
		return known[g.IntN(len(known))]
	case len(ranges) > 0:
		return ranges[0]
	}
	return 'x'
}
