// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package custom_test

import (
	"net/http"
	"strings"
	"testing"
)

// a schema in YAML; the specs of objects are of it.
func specOf(properties string) string {
	return "schema:\n  openAPIV3Schema:\n    type: object\n    properties:\n      spec:\n        type: object\n" + indent(properties, "        ")
}

func TestObjectsAreBroughtIntoForm(t *testing.T) {
	for _, c := range []struct{ name, spec, sent, want string }{
		{
			"a default is set in each element of a list",
			"properties: {sizes: {type: array, items: {type: object, properties: {unit: {type: string, default: cm}, size: {type: integer}}}}}",
			"spec: {sizes: [{size: 1}, {size: 2, unit: m}]}", `{"sizes":[{"size":1,"unit":"cm"},{"size":2,"unit":"m"}]}`,
		},
		{
			"a default of an object gets the defaults within it",
			"default: {}\nproperties: {a: {type: object, default: {b: 1}, properties: {b: {type: integer}, c: {type: string, default: x}}}}",
			"", `{"a":{"b":1,"c":"x"}}`,
		},
		{
			"a null is replaced by the default, dropped without one and kept if it is allowed",
			"properties: {a: {type: string, default: x}, b: {type: string}, c: {type: string, nullable: true}, d: {type: string, nullable: true, default: z}}",
			"spec: {a: null, b: null, c: null, d: null}", `{"a":"x","c":null,"d":null}`,
		},
		{
			"an unknown field is dropped unless the schema preserves such fields",
			"properties: {a: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {b: {type: object}}}}",
			"spec: {x: 1, a: {p: 2, b: {z: 3}}}", `{"a":{"b":{},"p":2}}`,
		},
		{
			"a field that is a number or a text takes both",
			"properties: {a: {x-kubernetes-int-or-string: true}, b: {x-kubernetes-int-or-string: true}}",
			`spec: {a: 1, b: "50%"}`, `{"a":1,"b":"50%"}`,
		},
		{
			"the head of an embedded object stays, and its metadata has the known fields",
			"properties: {a: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object}}}}",
			"spec: {a: {apiVersion: v1, kind: Pod, metadata: {name: x, p: z}, spec: {p: 1}, q: 2}}",
			`{"a":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{}}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWire(t)
			w.ok(http.MethodPost, crds, crd(specOf(c.spec)))
			got := w.ok(http.MethodPost, foos, foo(c.sent))
			if got := got.json("spec"); got != c.want {
				t.Errorf("spec %s, want %s", got, c.want)
			}
		})
	}
}

func TestUnknownFieldsAreRefusedOrWarnedOf(t *testing.T) {
	w := newWire(t)
	w.ok(http.MethodPost, crds, crd(specOf(`
properties:
  sizes: {type: array, items: {type: object, properties: {size: {type: integer}}}}
  pod: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
  any: {type: object, x-kubernetes-preserve-unknown-fields: true}`)))
	for _, c := range []struct{ name, fields, want string }{
		{"all are named, by the order of their paths", "spec: {x: 1, sizes: [{size: 1}, {m: 2, l: 3}]}\nzz: 1",
			`unknown field "spec.sizes[1].l"|unknown field "spec.sizes[1].m"|unknown field "spec.x"|unknown field "zz"`},
		{"those of metadata, too", "metadata: {name: a, lables: {}}", `unknown field "metadata.lables"`},
		{"those of the metadata of an embedded object", "spec: {pod: {apiVersion: v1, kind: Pod, metadata: {nam: x}, q: 1}}", `unknown field "spec.pod.metadata.nam"`},
		{"none where the schema preserves them", "spec: {any: {x: {y: 1}}}", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			warned := w.ok(http.MethodPost, foos+"?fieldValidation=Warn&dryRun=All", foo(c.fields))
			strict := w.send(http.MethodPost, foos+"?fieldValidation=Strict&dryRun=All", foo(c.fields)).failure()
			if got := strings.Join(warned.warnings, "|"); got != c.want {
				t.Errorf("warnings %s, want %s", got, c.want)
			}
			if c.want != "" {
				c.want = `400 Foo in version "v1" cannot be handled as a Foo: strict decoding error: ` + strings.ReplaceAll(c.want, "|", ", ")
			}
			if strict != c.want {
				t.Errorf("refused with %s, want %s", strict, c.want)
			}
		})
	}
}
