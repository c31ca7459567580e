// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// languages explains token i of a text if it comes from another language, with a replacement; empty for other
// tokens.
func languages(text string, all []token, i int) string {
	t := all[i]
	var before token
	if i > 0 {
		before = all[i-1]
	}
	switch {
	case t.text == "??" || t.text == "?:":
		return t.text + " is no operator: " + fallback(all, i)
	case t.kind == wordToken && t.text == "if" && !before.isDot():
		return "there is no if: write " + choice(text, all, i)
	case t.kind == wordToken && t.text[0] == '`' && !before.isDot():
		return fmt.Sprintf("there are no texts in backticks: instead of ${`…`} write %s, or join texts with +", t.text[1:len(t.text)-1])
	case isFormatted(all, i):
		quote, inner := all[i+1].text[:1], strings.Trim(all[i+1].text, all[i+1].text[:1])
		return fmt.Sprintf("there are no f-strings: instead of ${f%s…%s} write %s, or join texts with +", quote, quote, placeholder.ReplaceAllString(inner, "$${$1}"))
	}
	return ""
}

// isFormatted reports whether token i is the letter before an f-string.
func isFormatted(all []token, i int) bool {
	t := all[i]
	return t.kind == wordToken && (t.text == "f" || t.text == "F") && i+1 < len(all) && all[i+1].kind == textToken && all[i+1].at == t.at+1
}

// placeholder is a value within an f-string.
var placeholder = regexp.MustCompile(`\{([^{}]*)\}`)

// fallback says how a default is written for what stands before token i, where that is a way through an object.
func fallback(all []token, i int) string {
	begin := i
	for begin > 0 && all[begin-1].kind == wordToken {
		if begin--; begin > 0 && all[begin-1].isDot() {
			begin--
			continue
		}
		break
	}
	way := all[begin:i]
	if len(way) < 3 || way[0].kind != wordToken {
		return "a default is written x.?y.orValue(…) for x.y " + all[i].text + " …"
	}
	var out strings.Builder
	for j, step := range way {
		if j == len(way)-2 {
			step.text = ".?"
		}
		out.WriteString(step.text)
	}
	instead := "…"
	if i+1 < len(all) && all[i+1].isValue() && (i+2 == len(all) || slices.Contains([]string{")", "]", "}", ","}, all[i+2].text)) {
		instead = all[i+1].text
	}
	return fmt.Sprintf("write %s.orValue(%s)", out.String(), instead)
}

// longestChoice is how many characters of an if are written as a choice.
const longestChoice = 80

// choice writes the if at token i as a ? b : c, where all of the text is that if.
func choice(text string, all []token, i int) string {
	begin, then, other := all[i].at, where(all, "then"), where(all, "else")
	part := func(from, to int) string { return strings.TrimSpace(text[from:to]) }
	var condition, a, b string
	switch {
	case where(all, "if") < 0 || other < 0:
	case i == 0 && other > then && then > begin:
		condition, a, b = part(len("if"), then), part(then+len("then"), other), part(other+len("else"), len(text))
	case i > 0 && other > begin && whole(all[:i]):
		a, condition, b = part(0, begin), part(begin+len("if"), other), part(other+len("else"), len(text))
	}
	out := fmt.Sprintf("%s ? %s : %s", condition, a, b)
	if condition == "" || a == "" || b == "" || utf8.RuneCountInString(out) > longestChoice || strings.Contains(out, "\n") {
		return "condition ? a : b"
	}
	return out
}

// where returns the place of a word's only token, -1 where it has none or several.
func where(all []token, word string) int {
	is := func(t token) bool { return t.kind == wordToken && t.text == word }
	i := slices.IndexFunc(all, is)
	if i < 0 || slices.ContainsFunc(all[i+1:], is) {
		return -1
	}
	return all[i].at
}

// whole reports whether all brackets of some tokens are closed among them.
func whole(part []token) bool {
	_, message := brackets(part)
	return message == ""
}

// requests are what other languages send requests with.
var requests = regexp.MustCompile(`(?i)^(https?|fetch|curl|wget|axios|requests|urllib)(_?(get|post|put|request))?$`)

// sendsRequests says of a name of other languages that nothing sends requests here; empty for other names.
func sendsRequests(name string) string {
	if !requests.MatchString(name) {
		return ""
	}
	return "an expression sends no requests: a Go function can (call: …), and set in the status what expressions read"
}
