// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/google/cel-go/common"
)

// syntaxError says why a text cannot be read. CEL's parser names what came next; what was meant is
// looked for in the text itself, and the parser is quoted only where nothing is found.
func syntaxError(text string, errs []*common.Error) *Error {
	out := &Error{Text: text}
	found := mistakes(text)
	for _, m := range found[:min(len(found), mostIssues+1)] {
		line, column := position(text, m.at)
		out.Issues = append(out.Issues, Issue{line, column, m.message})
	}
	if len(out.Issues) == 0 { // the first one is right, what follows is often noise
		at := placeAt(errs[0].Location)
		out.Issues = []Issue{{at.line, at.column, unexpected(errs[0].Message)}}
	}
	out.Issues = told(out.Issues)
	return out
}

var (
	endOfText  = regexp.MustCompile(`input '<EOF>' expecting ':'$`)
	wrongInput = regexp.MustCompile(`(?s)^(?:mismatched input|extraneous input|no viable alternative at input|token recognition error at:) '(.*?)'(?: expecting .*)?$`)
)

// unexpected takes the parser's own wording out of a message.
func unexpected(message string) string {
	message = strings.TrimPrefix(message, "Syntax error: ")
	switch {
	case endOfText.MatchString(message):
		return "unexpected end of the expression: ? wants a :, as in a ? b : c"
	case strings.Contains(message, "<EOF>'"):
		return "unexpected end of the expression"
	}
	if m := wrongInput.FindStringSubmatch(message); m != nil {
		return "unexpected " + strings.Join(strings.Fields(m[1]), " ")
	}
	switch message {
	case "invalid argument to has() macro":
		return "has() wants a field, as in has(self.spec.x)"
	case "argument must be a simple name", "argument is not an identifier":
		return "want a name here, as x in list.all(x, x > 1)"
	}
	if word, reserved := strings.CutPrefix(message, "reserved identifier: "); reserved {
		return word + " is a reserved word, which no variable can have for a name"
	}
	message, _, _ = strings.Cut(message, " expecting {")
	return strings.Join(strings.Fields(message), " ")
}

// mistake is something that is surely wrong at a byte of a text.
type mistake struct {
	at      int
	message string
}

// hint says what is written instead of a word or sign of other languages; empty when there is none.
func hint(word string) string {
	switch word {
	case "and":
		return "write && for and"
	case "or":
		return "write || for or"
	case "not":
		return "write ! for not"
	case "=", "===":
		return word + " is no operator: == compares"
	case "!==", "<>":
		return word + " is no operator: != compares"
	case "&":
		return "& is no operator: && means and"
	case "|":
		return "| is no operator: || means or"
	case "?.":
		return "?. is no operator: an optional field is written .?"
	case "$":
		return "an expression has no $ in it (does it stand within ${…} already?)"
	default:
		return ""
	}
}

// mistakes returns what people who know other languages get wrong, in the order of the text.
func mistakes(text string) (out []mistake) {
	all, open := tokens(text)
	if strings.TrimSpace(text) == "" || open < 0 && len(all) == 0 {
		return []mistake{{len(text), "the expression is empty"}}
	}
	for i, t := range all {
		if message := wrong(tokenAt(all, i-1), t, tokenAt(all, i+1)); message != "" {
			out = append(out, mistake{t.at, message})
		}
	}
	if open >= 0 {
		return append(out, mistake{open, unclosedText(text[open:])})
	}
	if len(out) == 0 {
		return brackets(all)
	}
	return out
}

// wrong says what is wrong with a token between its neighbours, if that is sure.
func wrong(before, t, after token) string {
	switch {
	case t.kind == signToken:
		return hint(t.text)
	case t.kind == textToken && before.kind == textToken && before.at+len(before.text) == t.at:
		return `a quote within a text is written \` + t.text[:1]
	case t.kind != wordToken || !after.beginsValue() || before.endsValue() == (t.text == "not"):
		return ""
	}
	return hint(t.text)
}

// brackets returns the first bracket that has no partner.
func brackets(all []token) []mistake {
	closing := map[string]string{"(": ")", "[": "]", "{": "}"}
	var open []token
	for _, t := range all {
		if t.kind != signToken {
			continue
		}
		switch t.text {
		case "(", "[", "{":
			open = append(open, t)
		case ")", "]", "}":
			if len(open) == 0 {
				return []mistake{{t.at, t.text + " closes nothing"}}
			}
			last := open[len(open)-1]
			if closing[last.text] != t.text {
				return []mistake{{t.at, fmt.Sprintf("%s is closed by %s", last.text, t.text)}}
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) == 0 {
		return nil
	}
	last := open[len(open)-1]
	return []mistake{{last.at, fmt.Sprintf("%s has no closing %s", last.text, closing[last.text])}}
}
