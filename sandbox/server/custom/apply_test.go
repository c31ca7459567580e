// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package custom_test

import (
	"net/http"
	"testing"
)

const applyPatch = "application/apply-patch+yaml"

// TestAppliesGoByTheSchema holds what becomes of lists and maps that two managers apply. The package customs of the
// integration tests compares more of it with a real server.
func TestAppliesGoByTheSchema(t *testing.T) {
	for _, c := range []struct{ name, schema, one, two, both, later string }{
		{
			"a list without a type belongs to one of them", "properties: {a: {type: array, items: {type: string}}}",
			"a: [x]", "a: [z]", `409 Apply failed with 1 conflict: conflict with "one": .spec.a`, "",
		},
		{
			"a set has the items of both", "properties: {a: {type: array, x-kubernetes-list-type: set, items: {type: string}}}",
			"a: [x]", "a: [z]", `{"a":["x","z"]}`, `{"a":["z"]}`,
		},
		{
			"a map in a list has the fields of both", "properties: {a: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: integer}, p: {type: string}, q: {type: string}}}}}",
			"a: [{k: 1, p: x}, {k: 2}]", "a: [{k: 1, q: z}]", `{"a":[{"k":1,"p":"x","q":"z"},{"k":2}]}`, `{"a":[{"k":1,"q":"z"}]}`,
		},
		{
			"a map has the keys of both", "properties: {a: {type: object, additionalProperties: {type: string}}}",
			"a: {p: x}", "a: {q: z}", `{"a":{"p":"x","q":"z"}}`, `{"a":{"q":"z"}}`,
		},
		{
			"a map that is atomic belongs to one of them", "properties: {a: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: string}}}",
			"a: {p: x}", "a: {q: z}", `409 Apply failed with 1 conflict: conflict with "one": .spec.a`, "",
		},
		{
			"an unknown field is an error", "properties: {a: {type: string}}",
			"a: x", "b: z", "500 failed to create typed patch object (/a; example.com/v1, Kind=Foo): .spec.b: field not declared in schema", "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWire(t)
			w.ok(http.MethodPost, crds, crd(specOf(c.schema)))
			apply := func(by, spec string) answer {
				return w.send(http.MethodPatch, foos+"/a?fieldManager="+by, foo("spec: {"+spec+"}"), applyPatch)
			}
			if got := apply("one", c.one); got.code != http.StatusCreated {
				t.Fatalf("creating by apply: %d %s", got.code, got.text)
			}
			got := apply("two", c.two)
			if text := got.json("spec"); text != c.both && got.failure() != c.both {
				t.Fatalf("both have made %s %s, want %s", text, got.failure(), c.both)
			}
			if c.later == "" {
				return
			}
			if got := apply("one", "").json("spec"); got != c.later {
				t.Errorf("without those of the first it is %s, want %s", got, c.later)
			}
		})
	}
}
