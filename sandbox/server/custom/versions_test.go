// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package custom_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"testing"
)

const foos2 = "/apis/example.com/v2/namespaces/default/foos"

// twoVersions are v1 with a field one and v2 with a field two, and one that both have. The first is that of storage.
const twoVersions = `[
{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {both: {type: string}, one: {type: string, default: a}}}}}}},
{name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {both: {type: string}, two: {type: string, default: b}}}}}}}]`

func TestObjectsComeInEachVersion(t *testing.T) {
	w := newWire(t)
	w.ok(http.MethodPost, crds, define("example.com", "{plural: foos, kind: Foo}", twoVersions, ""))
	first := w.ok(http.MethodPost, foos, foo("spec: {both: x}"))
	second := w.ok(http.MethodPost, foos2, `{apiVersion: example.com/v2, kind: Foo, metadata: {name: b}, spec: {both: x}}`)
	patched := w.ok(http.MethodPatch, foos2+"/a", "spec: {both: z, two: c}", mergePatch)
	watch := w.watch(foos2+"?watch=true&resourceVersion=0", 2)
	for _, c := range []struct{ name, got, want string }{
		{"the first version sets its default", first.json("spec"), `{"both":"x","one":"a"}`},
		{"what the version of storage lacks is lost", second.json("spec"), `{"both":"x"}`},
		{"its default is not lost", w.ok(http.MethodGet, foos+"/b", "").json("spec"), `{"both":"x","one":"a"}`},
		{"the second version has only its own fields", w.ok(http.MethodGet, foos2+"/a", "").json("spec"), `{"both":"z"}`},
		{"it names itself", w.ok(http.MethodGet, foos2+"/a", "").json("apiVersion"), `"example.com/v2"`},
		{"a patch through it loses the fields of the other", patched.json("spec"), `{"both":"z"}`},
		{"they are set again by their default", w.ok(http.MethodGet, foos+"/a", "").json("spec"), `{"both":"z","one":"a"}`},
		{"a list", w.specs(foos2), `[{"both":"z"},{"both":"x"}]`},
		{"a watch", watch, `[{"both":"z"},{"both":"x"}]`},
		{"a change of both counts once", w.ok(http.MethodGet, foos+"/a", "").json("metadata", "generation"), "2"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", c.name, c.got, c.want)
		}
	}
}

func TestStoredObjectsFollowTheSchema(t *testing.T) {
	w := newWire(t)
	w.ok(http.MethodPost, crds, crd(specOf("properties: {a: {type: string}, b: {type: string}}")))
	w.ok(http.MethodPost, foos, foo("spec: {a: x, b: z}"))
	if failure := w.redefine(specOf("properties: {a: {type: string}, c: {type: string, default: new}}")).failure(); failure != "" {
		t.Fatal(failure)
	}
	const want = `{"a":"x","c":"new"}`
	if got := w.ok(http.MethodGet, foos+"/a", "").json("spec"); got != want {
		t.Errorf("the object has %s, want %s", got, want)
	}
	if got := w.specs(foos); got != "["+want+"]" {
		t.Errorf("the list has %s, want %s", got, want)
	}
	w.ok(http.MethodPatch, foos+"/a", "metadata: {labels: {x: z}}", mergePatch)
	got := w.ok(http.MethodGet, foos+"/a", "")
	if got.json("spec") != want || got.json("metadata", "generation") != "1" {
		t.Errorf("the written object has %s in generation %s, want %s in 1", got.json("spec"), got.json("metadata", "generation"), want)
	}
}

func TestDeletedObjectsFollowTheSchema(t *testing.T) {
	w := newWire(t)
	w.ok(http.MethodPost, crds, crd(specOf("properties: {a: {type: string}, b: {type: string}}")))
	w.ok(http.MethodPost, foos, foo("spec: {a: x, b: z}"))
	w.ok(http.MethodPatch, foos+"/a", "metadata: {finalizers: [example.com/hold]}", mergePatch)
	if failure := w.redefine(specOf("properties: {a: {type: string}, c: {type: string, default: new}}")).failure(); failure != "" {
		t.Fatal(failure)
	}
	w.ok(http.MethodDelete, foos+"/a", "")
	got := w.ok(http.MethodGet, foos+"/a", "")
	const want = `{"a":"x","c":"new"}`
	if got.json("spec") != want || got.json("metadata", "deletionTimestamp") == "null" {
		t.Errorf("the object is %v, want the spec %s", got.object, want)
	}
}

// specs are those of a list in JSON.
func (w wire) specs(path string) string {
	w.t.Helper()
	items, _ := w.ok(http.MethodGet, path, "").object["items"].([]any)
	out := []any{}
	for _, item := range items {
		out = append(out, item.(map[string]any)["spec"])
	}
	return answer{object: map[string]any{"specs": out}}.json("specs")
}

// watch returns the specs of the first objects of a watch in JSON.
func (w wire) watch(path string, n int) string {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://cluster"+path, http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	response, err := w.link.RoundTrip(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	out := []any{}
	for lines := bufio.NewScanner(response.Body); len(out) < n && lines.Scan(); {
		var event struct{ Object map[string]any }
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			w.t.Fatal(err)
		}
		out = append(out, event.Object["spec"])
	}
	return answer{object: map[string]any{"specs": out}}.json("specs")
}
