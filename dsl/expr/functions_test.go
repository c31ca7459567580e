// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl/expr"
)

// evaluate returns the value of an expression.
func evaluate(t *testing.T, text string, vars map[string]any) (any, error) {
	t.Helper()
	names := make([]string, 0, len(vars))
	for name := range vars {
		names = append(names, name)
	}
	c, err := compiler(t).With(names...)
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Value(text)
	if err != nil {
		t.Fatal(err)
	}
	return p.Eval(expr.Scope{Subject: subject(), Vars: vars})
}

func TestEveryLibraryOfKubernetesIsThere(t *testing.T) {
	tests := map[string]struct {
		text string
		want any
	}{
		"strings":             {"'a-b'.replace('-', '_').upperAscii() + ' x '.trim()", "A_Bx"},
		"strings: split":      {"'a,b'.split(',').join(';')", "a;b"},
		"format":              {"'%s-%d'.format([self.metadata.name, self.spec.replicas])", "a-3"},
		"lists":               {"self.spec.ports.isSorted() && self.spec.ports.max() == 443 && self.spec.ports.indexOf(80) == 0", true},
		"lists: more":         {"[3, 1, 1].distinct().sort() + [[1], [2]].flatten() + lists.range(2)", []any{int64(1), int64(3), int64(1), int64(2), int64(0), int64(1)}},
		"quantities":          {"quantity('1Gi').add(quantity('1Gi')).isGreaterThan(quantity(self.spec.memory))", true},
		"a quantity as text":  {"quantity('1024Mi').add(quantity('1Gi'))", "2Gi"},
		"regular expressions": {"'a1b22'.findAll('[0-9]+')", []any{"1", "22"}},
		"URLs":                {"url(self.spec.url).getEscapedPath() + (isURL('x') ? 'y' : '')", "/path"},
		"IP":                  {"ip('fd00::1').family() == 6 && isIP(self.spec.ip)", true},
		"CIDR":                {"cidr(self.spec.cidr).containsCIDR('10.1.0.0/16') && cidr(self.spec.cidr).prefixLength() == 8", true},
		"formats":             {"format.dns1123Label().validate('No!').hasValue() && !format.named('uuid').value().validate('123e4567-e89b-12d3-a456-426614174000').hasValue()", true},
		"sets":                {"sets.intersects(self.spec.ports, [443, 1]) && sets.equivalent([1, 2], [2, 1, 1])", true},
		"optional values":     {"self.?spec.?x.orValue(0)", int64(0)},
		"optMap":              {"self.?spec.?replicas.optMap(r, r * 2).orValue(0)", int64(6)},
		"optFlatMap":          {"self.?spec.optFlatMap(s, s.?flag).orValue('')", "yes"},
		"versions":            {"semver('1.10.0').isGreaterThan(semver('1.9.0')) && isSemver('v1.0', true)", true},
		"two variables":       {"self.spec.ports.transformList(i, p, i + p)", []any{int64(80), int64(444)}},
		"two, over a map":     {"{'a': 1, 'b': 2}.transformMap(k, v, v > 1, k + 'x')", map[string]any{"b": "bx"}},
		"times":               {"timestamp('2030-01-31T12:00:00Z') + duration('1h')", "2030-01-31T13:00:00Z"},
		"CEL's own base64":    {"string(base64.decode(base64.encode(b'x')))", "x"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := evaluate(t, test.text, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.text, diff)
			}
		})
	}
}

func TestReady(t *testing.T) {
	deployment := func(observed, updated, available int64) map[string]any {
		return map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"name": "a", "generation": int64(2)},
			"spec":     map[string]any{"replicas": int64(2)},
			"status": map[string]any{
				"observedGeneration": observed, "replicas": int64(2), "updatedReplicas": updated, "readyReplicas": available, "availableReplicas": available,
				"conditions": []any{map[string]any{"type": "Available", "status": "True"}, map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}},
			},
		}
	}
	with := func(conditions ...any) map[string]any {
		return map[string]any{"kind": "Foo", "metadata": map[string]any{"generation": int64(1)}, "status": map[string]any{"conditions": conditions}}
	}
	deleted := deployment(2, 2, 2)
	deleted["metadata"].(map[string]any)["deletionTimestamp"] = "2030-01-01T00:00:00Z"
	tests := map[string]struct {
		object any
		want   bool
	}{
		"a deployment that is rolled out":           {deployment(2, 2, 2), true},
		"one whose controller has not looked at it": {deployment(1, 2, 2), false},
		"one that is rolling out":                   {deployment(2, 1, 2), false},
		"one that is not available":                 {deployment(2, 2, 1), false},
		"one that is being deleted":                 {deleted, false},
		"nothing":                                   {map[string]any{}, false},
		"null":                                      {nil, false},
		"an object that is Ready":                   {with(map[string]any{"type": "Ready", "status": "True"}), true},
		"one that is not Ready":                     {with(map[string]any{"type": "Ready", "status": "False"}), false},
		"one that is stalled":                       {with(map[string]any{"type": "Stalled", "status": "True"}), false},
		"one of a kind that has no status":          {map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}, true},
		"a pod that runs and is ready":              {map[string]any{"apiVersion": "v1", "kind": "Pod", "status": map[string]any{"phase": "Running", "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}}, true},
		"a claim that is not bound":                 {map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": map[string]any{"phase": "Pending"}}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := evaluate(t, "ready(o)", map[string]any{"o": test.object})
			if err != nil || got != test.want {
				t.Errorf("ready() = %v, %v, want %v", got, err, test.want)
			}
		})
	}
}

func TestHash(t *testing.T) {
	equal := [][2]string{
		{"hash({'a': dyn(1), 'b': dyn({'c': [1, 2]})})", "hash({'b': dyn({'c': [1, 2]}), 'a': dyn(1)})"},
		{"hash(self.spec)", "hash(self['spec'])"},
		{"hash(1)", "hash(1.0)"},
		{"hash(self.spec.ports)", "hash([80, 443])"},
		{"hash(self.?x)", "hash(null)"},
	}
	for _, pair := range equal {
		if a, b := must(t, pair[0]), must(t, pair[1]); a != b {
			t.Errorf("%s = %v, %s = %v, want the same", pair[0], a, pair[1], b)
		}
	}
	seen := map[any]string{}
	for _, text := range []string{"hash('1')", "hash(1)", "hash([1])", "hash([1, 2])", "hash([2, 1])", "hash({})", "hash([])", "hash(null)", "hash('')", "hash(true)", "hash({'a': 1})", "hash({'a': '1'})"} {
		got := must(t, text)
		if other, found := seen[got]; found {
			t.Errorf("%s and %s are both %v", text, other, got)
		}
		seen[got] = text
	}
	if got, want := must(t, "hash({'b': dyn([dyn(1), dyn('x')]), 'a': dyn(null)})"), "c22cb7b035"; got != want {
		t.Errorf("hash() = %v, want %v: names and annotations would change with a new version", got, want)
	}
}

func must(t *testing.T, text string) any {
	t.Helper()
	got, err := evaluate(t, text, nil)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return got
}

func TestBase64(t *testing.T) {
	tests := map[string]any{
		"base64('ä')": "w6Q=", "base64(b'\\xff')": "/w==", "base64('')": "", "unbase64('w6Q=')": "ä", "unbase64('')": "",
		"unbase64(base64(self.spec.flag))": "yes", "base64(string(self.spec.replicas))": "Mw==", "base64.decode('/w==')": "/w==",
	}
	for text, want := range tests {
		if got := must(t, text); got != want {
			t.Errorf("%s = %v, want %v", text, got, want)
		}
	}
}

func TestFunctionsSayWhatTheyCannotDo(t *testing.T) {
	object := map[string]any{"kind": "Foo", "status": map[string]any{"conditions": "no list"}}
	tests := map[string]string{
		"unbase64('%')":      "unbase64(): the text is not base64",
		"unbase64('/w==')":   "unbase64(): what is encoded is not text (base64.decode(…) gives the bytes)",
		"unbase64(o.status)": "unbase64() does not go with the kinds of its values",
		"base64(o.status)":   "base64(): want text or bytes, found a map",
		"ready([o][0].kind)": "ready(): want one object, found text",
		"ready(dyn([o]))":    "ready(): want one object, found a list",
		"hash({1: 2})":       "hash(): a key of a map is a whole number, want text",
	}
	for text, want := range tests {
		if _, err := evaluate(t, text, map[string]any{"o": object}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if _, err := evaluate(t, "ready(o)", map[string]any{"o": object}); err == nil || !strings.HasPrefix(err.Error(), "ready(): ") {
		t.Errorf("ready() of a bad object: %v, want an error", err)
	}
}

func TestFunctionsCost(t *testing.T) {
	long := strings.Repeat("YWFh", 25_000)
	vars := map[string]any{
		"list": make([]any, 1000), "long": long, "tree": map[string]any{"a": []any{long}},
		"object": map[string]any{"kind": "Foo"}, "many": make([]any, 12_000),
	}
	const want = "it costs more than one evaluation may (is it a loop over a long list?)"
	for _, text := range []string{
		"list.all(x, hash(long) != '')", "list.all(x, hash(tree) != '')", "list.all(x, hash([long]) != '')", "list.all(x, hash({'a': long}) != '')",
		"list.all(x, base64(long) != '')", "list.all(x, unbase64(long) != '')", "list.all(x, base64.decode(long) != b'')", "list.all(x, base64.encode(bytes(long)) != '')",
		"many.all(x, ready(object))",
	} {
		if _, err := evaluate(t, text, vars); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{"hash(tree)", "base64(long)", "unbase64(long)", "list.all(x, ready(object))"} {
		if _, err := evaluate(t, text, vars); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
