// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr_test

import "testing"

// TestSyntaxOfOtherLanguagesIsReportedWithTheExpressionToWrite holds the hints for people who know other languages.
func TestSyntaxOfOtherLanguagesIsReportedWithTheExpressionToWrite(t *testing.T) {
	const requests = "an expression sends no requests: a Go function can (call: …), and set in the status what expressions read"
	sayMistakes(t, map[string]struct{ text, want string }{
		"a default by ??":              {"self.spec.b ?? 'x'", "1:13: ?? is no operator: write self.spec.?b.orValue('x')"},
		"a default by ?? of more":      {"self.spec.b ?? 1 + 2", "1:13: ?? is no operator: write self.spec.?b.orValue(…)"},
		"a default by ?? of a call":    {"size(self.a) ?? 1", "1:14: ?? is no operator: a default is written x.?y.orValue(…) for x.y ?? …"},
		"a default by ?? in a call":    {"size(self.a ?? [])", "1:13: ?? is no operator: write self.?a.orValue(…)"},
		"a default by ?: of Kotlin":    {"self.spec.b ?: 'x'", "1:13: ?: is no operator: write self.spec.?b.orValue('x')"},
		"a default of an optional one": {"self.?spec.?b ?? 'x'", "1:15: ?? is no operator: write self.?spec.?b.orValue('x')"},
		"a default of a variable":      {"cause ?? 'x'", "1:7: ?? is no operator: a default is written x.?y.orValue(…) for x.y ?? …"},

		"if and then":               {"if self.a > 1 then 'x' else 'y'", "1:1: there is no if: write self.a > 1 ? 'x' : 'y'"},
		"if with brackets":          {"if (self.a) 'x' else 'y'", "1:1: there is no if: write condition ? a : b"},
		"if over lines":             {"if self.a\n  then 1\n  else 2", "1:1: there is no if: write self.a ? 1 : 2"},
		"if of Python":              {"'x' if self.a > 1 else 'y'", "1:5: there is no if: write self.a > 1 ? 'x' : 'y'"},
		"if of Python in a list":    {"['x' if self.a else 'y']", "1:6: there is no if: write condition ? a : b"},
		"if without an else":        {"if self.a then 'x'", "1:1: there is no if: write condition ? a : b"},
		"a text with if":            {"'if a then b' ; 1", "1:15: unexpected ;"},
		"a field that is called if": {"self.if ; 1", "1:9: unexpected ;"},
		"an arm of if that is long": {"if self.a then '" + long + "' else ''", "1:1: there is no if: write condition ? a : b"},
		"if within if":              {"if self.a then if self.b then 1 else 2 else 3", "1:1: there is no if: write condition ? a : b; 1:16: there is no if: write condition ? a : b"},

		"an f-string":                 {`f"hello {self.spec.b}"`, "1:1: there are no f-strings: instead of ${f\"…\"} write hello ${self.spec.b}, or join texts with +"},
		"an f-string in a longer one": {`'a' + f'{self.a}'`, "1:7: there are no f-strings: instead of ${f'…'} write ${self.a}, or join texts with +"},
		"a text in backticks":         {"`hello ${self.spec.b}`", "1:1: there are no texts in backticks: instead of ${`…`} write hello ${self.spec.b}, or join texts with +"},
		"a raw text is no f-string":   {`r"a" ; 1`, "1:6: unexpected ;"},

		"a request by a module":   {"http.get('x')", "1:1: " + requests},
		"a request by a function": {"httpGet('x')", "1:1: " + requests},
		"a request of the shell":  {"curl('http://x').body", "1:1: " + requests},
		"a request of Python":     {"requests.get(self.spec.url).text()", "1:1: " + requests},
		"a request of JavaScript": {"fetch(self.spec.url)", "1:1: " + requests},

		"a function that stands behind a field":             {"upperAscii(self.spec.b)", "1:1: upperAscii() stands behind its value: write self.spec.b.upperAscii()"},
		"one with more arguments":                           {"startsWith(self.a, 'x')", "1:1: startsWith() stands behind its value: write self.a.startsWith('x')"},
		"one with an argument that is no field":             {"upperAscii('a' + 'b')", "1:1: upperAscii() stands behind its value: write x.upperAscii(…)"},
		"a function that a field stands in":                 {"self.spec.l.size().string()", "1:20: string() takes its value as an argument: write string(x)"},
		"a function that a way stands in":                   {"self.spec.n.string()", "1:13: string() takes its value as an argument: write string(self.spec.n)"},
		"a mistyped variable before a function":             {"slef.spec.b.foo()", `1:1: unknown variable "slef" (did you mean "self"?)`},
		"a mistyped library":                                {"bas64.encode(b'x')", `1:1: unknown function "bas64.encode" (did you mean "base64.encode"?)`},
		"a mistyped function of a library":                  {"sets.contians([1], [2])", `1:1: unknown function "sets.contians" (did you mean "sets.contains"?)`},
		"a library of another language":                     {"json.loads(self.a)", `1:1: unknown variable "json" (want one of self, old, diff, cause, event, params, now, children, related, indexes, handlers)`},
		"two mistyped words are reported, each where it is": {"slef.a + sefl.b", `1:1: unknown variable "slef" (did you mean "self"?); 1:10: unknown variable "sefl" (did you mean "self"?)`},
	})
}

const long = "a text that is so long that its repetition in the message about the word before it would hide the message"
