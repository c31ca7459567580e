// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/common"
)

// syntaxError says why a text does not parse. CEL's parser names the next token; the likely intention is derived
// from the text itself, and the parser is quoted only if that fails. Only its first message is reliable.
func syntaxError(s source, first *common.Error) *Error {
	if found := mistakes(s.text); len(found) > 0 {
		return s.fault(found...)
	}
	if foreign.MatchString(s.text) {
		return s.fault(Issue{Place{1, 1}, "this is no expression: where it is for another program, as the shell, write $${…} for ${…}"})
	}
	at := placeOfError(first)
	if strings.HasPrefix(first.Message, "Syntax error: ") {
		return s.fault(Issue{at, unexpected(s.text, at)})
	}
	return s.fault(Issue{at, oneLine(first.Message)})
}

// foreign matches expansions of the shell within ${…}: a default, a length, a substring, a whole array.
var foreign = regexp.MustCompile(`^(#\w+|\w+\[[@*]\]|#\w+\[[@*]\]|[A-Za-z_]\w*(:[-=+?\d].*|%%.*|#.*|\^+|,+)|[@*?])$`)

// placeOfError returns the place of CEL's error; if it has none, the beginning.
func placeOfError(err *common.Error) Place {
	return Place{max(err.Location.Line(), 1), max(err.Location.Column()+1, 1)}
}

// unexpected describes the unexpected token at a place.
func unexpected(text string, at Place) string {
	line := strings.Split(text, "\n")[at.Line-1:]
	rest := []rune(strings.Join(line, "\n"))
	for t := range tokens(string(rest[min(at.Column-1, len(rest)):])) {
		return "unexpected " + t.text
	}
	return "unexpected end of the expression"
}

// hint names the replacement for a word or sign of other languages. It is empty for all other words.
func hint(word string) string {
	return map[string]string{
		"and": "write && for and",
		"or":  "write || for or",
		"not": "write ! for not",
		"=":   "= is no operator: == compares",
		"===": "=== is no operator: == compares",
		"!==": "!== is no operator: != compares",
		"<>":  "<> is no operator: != compares",
		"&":   "& is no operator: && means and",
		"|":   "| is no operator: || means or",
		"?.":  "?. is no operator: an optional field is written .?",
		"$":   "an expression has no $ in it (does it stand within ${…} already?)",
	}[word]
}

// mistakes returns common mistakes of people who know other languages, in the order of the text.
func mistakes(text string) (out []Issue) {
	all := slices.Collect(tokens(text))
	if len(all) == 0 {
		return []Issue{{placeAt(text, len(text)), "the expression is empty"}}
	}
	around := slices.Concat([]token{{}}, all, []token{{}}) // so that the first and the last token have neighbours, too
	for i, t := range all {
		if message := cmp.Or(languages(text, all, i), wrong(around[i], t, around[i+2])); message != "" {
			out = append(out, Issue{placeAt(text, t.at), message})
		}
	}
	if at, message := brackets(all); len(out) == 0 && message != "" {
		out = append(out, Issue{placeAt(text, at), message})
	}
	return out
}

// wrong describes a certain mistake of a token between its neighbours.
func wrong(before, t, after token) string {
	switch {
	case t.kind == openToken:
		return "the text that begins here has no closing " + t.text[:1]
	case t.kind == signToken:
		return hint(t.text)
	case t.kind == textToken && before.kind == textToken && before.at+len(before.text) == t.at:
		return `a quote within a text is written \` + t.text[:1]
	case t.kind != wordToken || !after.beginsValue() || before.endsValue() == (t.text == "not"):
		return ""
	}
	return hint(t.text)
}

// brackets returns the first bracket without a partner, or has() without a field.
func brackets(all []token) (at int, message string) {
	closing := map[string]string{"(": ")", "[": "]", "{": "}"}
	var open []int
	for i, t := range all {
		switch t.text {
		case "(", "[", "{":
			open = append(open, i)
		case ")", "]", "}":
			if len(open) == 0 {
				return t.at, t.text + " closes nothing"
			}
			last := open[len(open)-1]
			switch {
			case closing[all[last].text] != t.text:
				return t.at, fmt.Sprintf("%s is closed by %s", all[last].text, t.text)
			case last > 0 && all[last-1].text == "has" && all[i-2].text != ".":
				return all[last+1].at, "has() wants a field, as in has(self.spec.x)"
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) == 0 {
		return 0, ""
	}
	last := all[open[len(open)-1]]
	return last.at, fmt.Sprintf("%s has no closing %s", last.text, closing[last.text])
}
