// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// hostile is an object of some hundred kilobytes whose author wants expressions to cost as much as they can.
func hostile() map[string]any {
	words, numbers := make([]any, 20000), make([]any, 100000)
	for i := range words {
		words[i] = "ab"
	}
	for i := range numbers {
		numbers[i] = int64(i)
	}
	return map[string]any{
		"x": "x", "empty": "", "long": strings.Repeat("x", 400_000), "words": words, "numbers": numbers,
		"huge": "1e1000000000", "tiny": "1E-1000000000", "hugest": "1e99999999999999999999", "digits": strings.Repeat("9", 500_000), "suffixed": "1e1000000000Ki",
		"repeats": strings.Repeat("(x{1000})", 1000), "pattern": strings.Repeat("x?", 5000) + "y",
	}
}

// evaluated gives what an expression comes to for an object, the memory that was asked for meanwhile, and how long it took.
func evaluated(t *testing.T, text string, self map[string]any) (out any, bytes int, took time.Duration, err error) {
	t.Helper()
	c, err := New()
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Value(text)
	if err != nil {
		t.Fatal(err)
	}
	p.longest = 100 * time.Millisecond // what a loop leaves as garbage until then is counted, too
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	out, err = p.Eval(Scope{Subject: &dsl.Subject{Object: &unstructured.Unstructured{Object: self}}})
	took = time.Since(began)
	runtime.ReadMemStats(&after)
	return out, int(after.TotalAlloc - before.TotalAlloc), took, err
}

// TestNoObjectMakesAnExpressionCostMuch holds that no call and no loop takes minutes, or more memory than a process may have,
// because of what the author of an object has written into it: CEL itself counts a call's cost when the call has returned, and
// loses count in loops.
func TestNoObjectMakesAnExpressionCostMuch(t *testing.T) {
	for name, text := range map[string]string{
		"a quantity with a large exponent":           `quantity(self.huge).isLessThan(quantity('1'))`,
		"one with a small exponent":                  `quantity(self.tiny).isGreaterThan(quantity('1'))`,
		"one whose exponent is no number":            `quantity(self.hugest).isGreaterThan(quantity('1'))`,
		"one with an exponent and a suffix":          `quantity(self.suffixed).isGreaterThan(quantity('1'))`,
		"one with many digits":                       `quantity(self.digits).isInteger()`,
		"whether text is such a quantity":            `[isQuantity(self.huge), isQuantity(self.digits)].all(is, is) ? 'yes' : self.missing`,
		"a text in the place of each letter":         `self.long.replace(self.x, self.long).size()`,
		"a text between all letters":                 `self.long.replace(self.empty, self.long).size()`,
		"a text in place of letters, some times":     `self.long.replace(self.x, self.long, 1000).size()`,
		"a long text between words":                  `self.words.join(self.long).size()`,
		"long words":                                 `self.words.map(w, self.long).join().size()`,
		"a long text in each word":                   `self.words.map(w, '%s-%s'.format([w, self.long])).size()`,
		"a longer text for each word":                `self.words.map(w, 'xxxxxxxx'.replace('x', self.long)).size()`,
		"a text that is searched for long":           `self.long.indexOf(self.long + 'y')`,
		"a text that is searched for from its end":   `self.long.lastIndexOf('y' + self.long.substring(200000))`,
		"a pattern that repeats":                     `self.x.matches(self.repeats)`,
		"a pattern that is found in a text":          `self.long.find(self.pattern)`,
		"a pattern that is found often":              `self.long.findAll(self.pattern, 5).size()`,
		"numbers that differ":                        `self.numbers.distinct().size()`,
		"a set of numbers":                           `sets.contains(self.numbers, self.numbers)`,
		"two sets that meet":                         `sets.intersects(self.numbers, self.numbers.map(n, n + 1000000))`,
		"the same set":                               `sets.equivalent(self.numbers, self.numbers)`,
		"lists of lists":                             `self.words.map(w, self.numbers).flatten().size()`,
		"a list that is flattened for each word":     `self.words.map(w, [self.numbers].flatten()).size()`,
		"a loop whose cost CEL does not count":       `self.numbers.all(n, n in self.numbers)`,
		"a loop that takes the square of its length": `self.numbers.filter(n, n > 5).size()`,
	} {
		t.Run(name, func(t *testing.T) {
			out, bytes, took, err := evaluated(t, text, hostile())
			if err == nil {
				t.Errorf("it gives %v, want an error", out)
			}
			if bytes > 128<<20 || took > 30*time.Second {
				t.Errorf("it took %d MiB and %v", bytes>>20, took)
			}
		})
	}
}

// TestGuardedFunctionsGiveWhatTheyGave holds that functions whose cost is bounded give what CEL and Kubernetes say.
func TestGuardedFunctionsGiveWhatTheyGave(t *testing.T) {
	self := map[string]any{
		"text": "a-b-b", "from": "b", "to": "c", "times": int64(1), "words": []any{"b", "a", "b"}, "lists": []any{[]any{"a"}, []any{[]any{"b"}}},
		"pattern": "[ab]", "amount": "1500m", "scientific": "1.5E3", "binary": "2Ei", "wrong": "1x", "none": "",
	}
	for text, want := range map[string]any{
		`self.text.replace(self.from, self.to)`:                             "a-c-c",
		`self.text.replace(self.from, self.to, self.times)`:                 "a-c-b",
		`self.text.replace(self.from, self.to, -1)`:                         "a-c-c",
		`self.words.join()`:                                                 "bab",
		`self.words.join(self.to)`:                                          "bcacb",
		`self.lists.flatten()`:                                              []any{"a", []any{"b"}},
		`self.lists.flatten(2)`:                                             []any{"a", "b"},
		`self.words.distinct()`:                                             []any{"b", "a"},
		`sets.contains(self.words, ['a'])`:                                  true,
		`sets.equivalent(self.words, ['a', 'b'])`:                           true,
		`sets.intersects(self.words, ['c'])`:                                false,
		`[self.text.indexOf(self.from), self.text.indexOf(self.from, 3)]`:   []any{int64(2), int64(4)},
		`[self.text.lastIndexOf(self.from), self.words.indexOf('a')]`:       []any{int64(4), int64(1)},
		`[self.words.lastIndexOf(self.from)]`:                               []any{int64(2)},
		`[self.text.matches(self.pattern), matches(self.text, '^c')]`:       []any{true, false},
		`self.text.find(self.pattern)`:                                      "a",
		`self.text.findAll(self.pattern)`:                                   []any{"a", "b", "b"},
		`self.text.findAll('b', 1)`:                                         []any{"b"},
		`quantity(self.amount).add(quantity('500m')).asApproximateFloat()`:  2.0,
		`quantity(self.scientific).asInteger()`:                             int64(1500),
		`quantity(self.binary).isGreaterThan(quantity('1Ei'))`:              true,
		`[isQuantity(self.amount), isQuantity(self.wrong), isQuantity('')]`: []any{true, false, false},
	} {
		t.Run(text, func(t *testing.T) {
			out, _, _, err := evaluated(t, text, self)
			if diff := cmp.Diff(want, out); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
	for text, want := range map[string]string{
		`self.text.matches('[' + self.from)`: "error parsing regexp",
		`quantity(self.wrong)`:               "quantities must match",
		`self.times.replace('a', 'b')`:       "replace() does not go with the kinds of its values",
		`self.words.replace('a', 'b')`:       "replace() does not go with the kinds of its values",
		`self.missing.replace('a', 'b')`:     "self.missing is not set",
	} {
		if _, _, _, err := evaluated(t, text, self); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
