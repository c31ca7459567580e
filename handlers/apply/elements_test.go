// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

func TestForEach(t *testing.T) {
	const name = "template: {" + head + "{name: 'n-${key}'}, data: {v: \"${string(index)} ${value == item}\"}}"
	tests := map[string]struct {
		options, spec string
		want          string // "key: data" for each object, or the error
	}{
		"a list of text":             {"forEach: '${self.spec.l}'", "{l: [b, a]}", "a: 1 true, b: 0 true"},
		"a list of numbers":          {"forEach: '${self.spec.l}'", "{l: [7, 1.5]}", "1.5: 1 true, 7: 0 true"},
		"a list of maps":             {"forEach: '${self.spec.l}', key: '${item.n}-${string(index)}'", "{l: [{n: x}, {n: y}]}", "x-0: 0 true, y-1: 1 true"},
		"a map":                      {"forEach: '${self.spec.l}'", "{l: {q: 1, p: 2}}", "p: 0 true, q: 1 true"},
		"a map with keys of its own": {"forEach: '${self.spec.l}', key: '${key}${string(item)}'", "{l: {q: 1, p: 2}}", "p2: 0 true, q1: 1 true"},
		"an empty list":              {"forEach: '${self.spec.l}'", "{l: []}", ""},
		"null":                       {"forEach: '${self.spec.l}'", "{l: }", ""},
		"a list that is optional":    {"forEach: '${self.spec.?l}'", "{}", ""},
		"a list that is written":     {"forEach: [x, '${self.spec.l}']", "{l: y}", "x: 0 true, y: 1 true"},
		"a list that is missing":     {"forEach: '${self.spec.l}'", "{}", "child a: evaluating apply.a.forEach: self.spec.l is not set"},
		"text":                       {"forEach: '${self.spec.l}'", "{l: x}", "child a: forEach gives text, want a list or a map"},
		"a map without a key":        {"forEach: '${self.spec.l}'", "{l: [x, {n: y}]}", "child a: item 1 of forEach: it has no key: say with key which one it is, as in key: ${item.name}"},
		"a key that is missing":      {"forEach: '${self.spec.l}', key: '${item.n}'", "{l: [{n: x}, {m: y}]}", "child a: item 1 of forEach: evaluating apply.a.key: item.n is not set"},
		"a key that is a list":       {"forEach: '${self.spec.l}', key: '${item.n}'", "{l: [{n: []}]}", "child a: item 0 of forEach: its key is a list, want text or a number"},
		"a key that is empty":        {"forEach: '${self.spec.l}'", "{l: ['']}", "child a: item 0 of forEach: its key is empty"},
		"a key that is there twice":  {"forEach: '${self.spec.l}'", "{l: [x, y, x]}", `child a: items 0 and 2 of forEach have the key "x"`},
		"as many as there may be":    {"forEach: '${self.spec.l}', limit: 2", "{l: [x, y]}", "x: 0 true, y: 1 true"},
		"more than there may be":     {"forEach: '${self.spec.l}', limit: 2", "{l: [x, y, z]}", "child a: forEach has 3 items, and the limit is 2"},
		"only some of them":          {"forEach: '${self.spec.l}', includeWhen: item != 'y'", "{l: [x, y, z]}", "x: 0 true, z: 2 true"},
		"none, known without items":  {"forEach: '${self.spec.l}', includeWhen: 'false'", "{}", ""},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := start(t, "{a: {"+test.options+", "+name+"}}", test.spec)
			if err := w.run(dsl.Create); err != nil {
				if err.Error() != test.want {
					t.Errorf("error %q, want %q", err, test.want)
				}
				return
			}
			all, err := w.All()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range all {
				v, _, _ := unstructured.NestedString(o.Object.Object, "data", "v")
				got = append(got, o.Key+": "+v)
				if want := "n-" + o.Key; o.Object.GetName() != want || o.Name != "a" || o.Handler != "h" {
					t.Errorf("%+v is called %s, want %s", o.ChildSpec, o.Object.GetName(), want)
				}
			}
			if diff := cmp.Diff(test.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTooManyItemsAreFinal(t *testing.T) {
	w := start(t, "{a: {forEach: '${self.spec.l}', template: {"+head+"{name: '${key}'}}}, b: {"+head+"{name: b}}}", "{}")
	list := make([]any, 1001)
	for i := range list {
		list[i] = int64(i)
	}
	w.self["spec"] = map[string]any{"l": list}
	err := w.run(dsl.Create)
	if want := "child a: forEach has 1001 items, and the limit is 1000"; text(err) != want || !dsl.IsPermanent(err) {
		t.Errorf("error %v, permanent %v", err, dsl.IsPermanent(err))
	}
	if !strings.HasPrefix(w.said(), "Applied=False TooMany: ") || !slices.Equal(w.names(), []string{"ConfigMap b"}) {
		t.Errorf("condition %q, objects %v", w.said(), w.names())
	}
	w.refused["ConfigMap b"] = errBroken
	w.objects = map[string]*record{}
	if err := w.run(dsl.Update); dsl.IsPermanent(err) {
		t.Errorf("%v is final, although b may come about", err)
	}
}

func TestAnItemThatLooksForWhatIsNotWantedIsLeftOut(t *testing.T) {
	w := start(t, `{
		db: {includeWhen: self.spec.db, template: {`+thing+`{name: db}}},
		pods: {forEach: [x, y], template: {`+thing+`{name: "${item}"}, spec: {s: "${item == 'x' ? children.db.metadata.name : 'none'}"}}}}`, "{db: false}")
	if err := w.run(dsl.Create); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Thing y"}, slices.Sorted(maps.Keys(w.objects))); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestForEachOverChildren(t *testing.T) {
	w := start(t, `{
		pods: {forEach: '${self.spec.l}', template: {`+thing+`{name: "${item}"}}},
		maps: {forEach: '${children.pods}', key: '${item.metadata.name}', template: {`+head+`{name: "of-${item.metadata.name}"}}}}`, "{l: [x, y]}")
	if err := w.run(dsl.Create); err != nil {
		t.Fatal(err)
	}
	together(t, w, []string{"create Thing x", "create Thing y"}, []string{"create ConfigMap of-x", "create ConfigMap of-y"})
}

// TestSeveralListsMakeAChildForEachCombination holds that forEach goes over several lists by combinations, with a key of their values.
func TestSeveralListsMakeAChildForEachCombination(t *testing.T) {
	w := start(t, `{a: {forEach: "${combinations({'zone': self.spec.zones, 'size': self.spec.sizes})}", key: "${item.zone}-${item.size}",
		template: {`+thing+`{name: "${key}"}, spec: {zone: "${item.zone}"}}}}`, "{zones: [x, y], sizes: [s, m]}")
	if err := w.run(dsl.Create); err != nil {
		t.Fatal(err)
	}
	together(t, w, []string{"create Thing x-m", "create Thing x-s", "create Thing y-m", "create Thing y-s"})
	w.spec("{zones: [x, y], sizes: [s, s]}")
	if err := w.run(dsl.Update); err == nil || err.Error() != `child a: items 0 and 2 of forEach have the key "x-s"` {
		t.Errorf("error %v", err)
	}
}
