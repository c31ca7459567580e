// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFunctionsMakeTreesAndTexts(t *testing.T) {
	vars := map[string]any{
		"base": map[string]any{"a": int64(1), "in": map[string]any{"x": int64(1), "y": int64(2)}, "list": []any{int64(1), int64(2)}},
		"over": map[string]any{"b": true, "in": map[string]any{"y": "two"}, "list": []any{int64(3)}, "a": nil},
	}
	tests := map[string]struct {
		text string
		want any
	}{
		"merge goes into maps, and replaces everything else": {"merge(base, over)", map[string]any{
			"a": nil, "b": true, "in": map[string]any{"x": int64(1), "y": "two"}, "list": []any{int64(3)},
		}},
		"merge leaves its arguments as they are":   {"[merge(base, over)].size() == 1 ? base['in'].y : 0", int64(2)},
		"merge takes what the expression has made": {"merge({'a': dyn({'b': 1})}, {'a': dyn({'c': 2})})", map[string]any{"a": map[string]any{"b": int64(1), "c": int64(2)}}},
		"omit leaves entries out":                  {"omit(base, ['list', 'in', 'none'])", map[string]any{"a": int64(1)}},
		"pick takes entries":                       {"pick(base, ['a', 'none'])", map[string]any{"a": int64(1)}},
		"combinations take one of each list":       {"combinations({'b': [dyn(1), dyn(2)], 'a': [dyn('x'), dyn('y')]}).map(c, c.a + string(c.b))", []any{"x1", "x2", "y1", "y2"}},
		"those of one list are its entries":        {"combinations({'a': ['x', 'y']})", []any{map[string]any{"a": "x"}, map[string]any{"a": "y"}}},
		"those with an empty list are none":        {"combinations({'a': ['x'], 'b': []})", []any{}},
		"those of no list are none":                {"combinations({})", []any{}},
		"three lists, the first key changes last":  {"combinations({'a': ['1', '2'], 'b': ['3'], 'c': ['4', '5']}).map(c, c.a + c.b + c.c)", []any{"134", "135", "234", "235"}},
		"an empty list beside long ones":           {"combinations({'a': lists.range(101), 'b': lists.range(100), 'c': []})", []any{}},
		"those with no value are none":             {"combinations({'a': dyn(['x']), 'b': dyn(null)})", []any{}},
		"json sorts keys, and keeps signs":         {"json({'b': [dyn(1), dyn('<&>')], 'a': dyn(null)})", `{"a":null,"b":[1,"<&>"]}`},
		"unjson keeps whole numbers":               {`unjson('{"a": [1, 1.5, "x"]}').a`, []any{int64(1), 1.5, "x"}},
		"yaml sorts keys":                          {"yaml({'b': [dyn(1), dyn('yes')], 'a': dyn({'x': 'y'})})", "a:\n  x: \"y\"\nb:\n  - 1\n  - \"yes\"\n"},
		"unyaml reads as kubectl does":             {`unyaml("a: 1\nb: [x, 2026-01-01]\n1: one")`, map[string]any{"a": int64(1), "b": []any{"x", "2026-01-01"}, "1": "one"}},
		"unyaml reads the flow style":              {`unyaml("{a: [1, yes]}")`, map[string]any{"a": []any{int64(1), true}}},
		"sha256 of a text":                         {"sha256('abc')", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		"sha256 of bytes":                          {"sha256(b'abc')", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		"random is the same for the same seed":     {"random(8, 'a') == random(8, 'a') && random(8, 'a') != random(8, 'b')", true},
		"random has as many letters as are wanted": {"random(100, 'a').matches('^[a-z2-9]{100}$')", true},
		"random that is longer begins alike":       {"random(100, 'a').startsWith(random(40, 'a'))", true},
		"a name is bound within an expression":     {"cel.bind(n, self.metadata.name, n + '-' + n)", "a-a"},
		"numbers are compared and rounded":         {"[dyn(math.greatest(1, 3, 2)), dyn(math.ceil(1.2)), dyn(math.least(4, 2))]", []any{int64(3), 2.0, int64(2)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := evaluate(t, test.text, vars)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.text, diff)
			}
		})
	}
}

func TestFunctionsRefuseWhatTheyCannotRead(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for i, last := 0, "a"; i < 9; i++ {
		next := string(rune('b' + i))
		bomb += next + ": &" + next + " [" + strings.Repeat("*"+last+", ", 9) + "*" + last + "]\n"
		last = next
	}
	many := map[string]any{"all": make([]any, 200)}
	for i := range 1000 {
		many[strconv.Itoa(i)] = []any{"x"}
	}
	vars := map[string]any{"many": many, "text": "{secret", "bomb": bomb, "deep": strings.Repeat("[", 20_000)}
	for name, test := range map[string]struct{ text, want string }{
		"a text that is not JSON":            {"unjson(text)", "unjson(): the text is not JSON"},
		"a text that is not YAML":            {"unyaml(text)", "unyaml(): the text is not YAML, or its aliases make it too large"},
		"YAML that grows without bound":      {"unyaml(bomb)", "unyaml(): the text is not YAML, or its aliases make it too large"},
		"JSON that is too deep":              {"unjson(deep)", "unjson(): the text is not JSON"},
		"combinations of what is no list":    {"combinations({'a': 'x'})", "combinations(): want a list for each key"},
		"too many combinations":              {"combinations({'a': lists.range(101), 'b': lists.range(100)})", "combinations(): there are more than 10000"},
		"combinations of too many lists":     {"combinations(many)", "combinations(): there are 200 of 1001 entries, and 200000 entries are the limit"},
		"no letters":                         {"random(0, 'a')", "random(): want 1 to 1000 letters"},
		"too many letters":                   {"random(1001, 'a')", "random(): want 1 to 1000 letters"},
		"text that grows with each encoding": {"[1,2,3,4,5].map(a, [1,2,3,4,5].map(b, json([text, text, text, bomb, bomb])))[0][0].size() < 0 ? '' : " + strings.Repeat("json(", 40) + "bomb" + strings.Repeat(")", 40), "it costs more than one evaluation may (is it a loop over a long list?)"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := evaluate(t, test.text, vars)
			if err == nil || err.Error() != test.want {
				t.Errorf("error %v, want %s", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error quotes the text: %v", err)
			}
		})
	}
}
