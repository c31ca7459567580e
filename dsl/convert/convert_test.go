// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/convert"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// tree reads YAML as the API machinery has values.
func tree(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	value, err := plain.Value(out)
	if err != nil {
		t.Fatal(err)
	}
	return value.(map[string]any)
}

const definition = `
spec:
  conversion: {strategy: Webhook}
  versions:
  - name: v2
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {
      size: {type: integer}, color: {type: string}, same: {type: string}, form: {type: string}, deep: {type: object, properties: {a: {type: string}, b: {type: string}}}}}}}}
  - name: v1
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {
      replicas: {type: integer}, same: {type: string}, form: {type: integer}, deep: {type: object, properties: {a: {type: string}}}}}}}}
  - name: v0
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {count: {type: integer}, odd: {type: string}}}}}}
`

// converter is that of a resource with three versions.
func converter(t *testing.T) *convert.Converter {
	t.Helper()
	r := dsl.New("demo").Resource("foos.v2.example.com", nil)
	r.CRD = tree(t, definition)
	at := func(path string) []dsl.Path { return []dsl.Path{dsl.MustParsePath(path)} }
	r.AddConversion(dsl.Conversion{Version: "v1", Moved: at("spec.replicas"), MovedTo: at("spec.size"), To: func(_, to map[string]any) error {
		if _, has := dsl.MustParsePath("spec.color").In(to); has {
			return nil
		}
		return convert.Put(to, dsl.MustParsePath("spec.color"), "blue")
	}})
	r.AddConversion(dsl.Conversion{Version: "v0", Moved: at("spec.count"), MovedTo: at("spec.size")})
	return convert.Of(r)
}

const kept = "demo.handwerk.dev/versions"

func TestAConversionCarriesMovesAndKeeps(t *testing.T) {
	for name, tt := range map[string]struct{ object, to, want string }{
		"fields that both versions have stay": {
			`{apiVersion: example.com/v2, kind: Foo, metadata: {name: a, labels: {x: y}}, spec: {same: x, deep: {a: b}}}`, "v1",
			`{apiVersion: example.com/v1, kind: Foo, metadata: {name: a, labels: {x: y}}, spec: {same: x, deep: {a: b}}}`,
		},
		"a field moves, and is not kept": {
			`{apiVersion: example.com/v2, kind: Foo, metadata: {name: a}, spec: {size: 3}}`, "v1",
			`{apiVersion: example.com/v1, kind: Foo, metadata: {name: a}, spec: {replicas: 3}}`,
		},
		"what the other version lacks is kept, also within an object": {
			`{apiVersion: example.com/v2, kind: Foo, metadata: {name: a}, spec: {color: red, deep: {a: x, b: bb}}}`, "v1",
			`{apiVersion: example.com/v1, kind: Foo, metadata: {name: a, annotations: {KEPT: '{"v2":{"spec":{"color":"red","deep":{"b":"bb"}}}}'}}, spec: {deep: {a: x}}}`,
		},
		"what was kept returns, and the function sees it": {
			`{apiVersion: example.com/v1, kind: Foo, metadata: {name: a, annotations: {KEPT: '{"v2":{"spec":{"color":"red","deep":{"b":"bb"}}}}'}}, spec: {deep: {a: z}}}`, "v2",
			`{apiVersion: example.com/v2, kind: Foo, metadata: {name: a}, spec: {color: red, deep: {a: z, b: bb}}}`,
		},
		"the function completes what nobody has set": {
			`{apiVersion: example.com/v1, kind: Foo, metadata: {name: a}, spec: {replicas: 1}}`, "v2",
			`{apiVersion: example.com/v2, kind: Foo, metadata: {name: a}, spec: {size: 1, color: blue}}`,
		},
		"a value of another type is kept": {
			`{apiVersion: example.com/v2, kind: Foo, metadata: {name: a, annotations: {x: y}}, spec: {form: text}}`, "v1",
			`{apiVersion: example.com/v1, kind: Foo, metadata: {name: a, annotations: {x: y, KEPT: '{"v2":{"spec":{"form":"text"}}}'}}, spec: {}}`,
		},
		"two further versions convert over the resource's own": {
			`{apiVersion: example.com/v0, kind: Foo, metadata: {name: a}, spec: {count: 4, odd: x}}`, "v1",
			`{apiVersion: example.com/v1, kind: Foo, metadata: {name: a, annotations: {KEPT: '{"v0":{"spec":{"odd":"x"}}}'}}, spec: {replicas: 4}}`,
		},
		"whole numbers that were kept return as such": {
			`{apiVersion: example.com/v1, kind: Foo, metadata: {annotations: {KEPT: '{"v2":{"spec":{"size":9007199254740993}}}'}}}`, "v2",
			`{apiVersion: example.com/v2, kind: Foo, metadata: {}, spec: {color: blue}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := tree(t, strings.ReplaceAll(tt.object, "KEPT", kept))
			before := tree(t, strings.ReplaceAll(tt.object, "KEPT", kept))
			got, err := converter(t).Convert(object, "example.com/"+tt.to)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tree(t, strings.ReplaceAll(tt.want, "KEPT", kept)), got); diff != "" {
				t.Errorf("Convert() (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, object); diff != "" {
				t.Errorf("Convert() changed its argument:\n%s", diff)
			}
		})
	}
}

func TestWhatCannotBeConvertedIsAnError(t *testing.T) {
	for name, tt := range map[string]struct{ object, to, want string }{
		"an unknown version": {`{apiVersion: example.com/v2, kind: Foo}`, "v9", `converting v2 to v9: the resource has no version "v9"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := converter(t).Convert(tree(t, strings.ReplaceAll(tt.object, "KEPT", kept)), "example.com/"+tt.to)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Convert() = %v, want an error with %q", err, tt.want)
			}
		})
	}
}

// TestAnAnnotationByHandFailsNoConversion holds that a user who may write one object cannot make lists of all objects fail.
func TestAnAnnotationByHandFailsNoConversion(t *testing.T) {
	const want = `{apiVersion: example.com/v1, kind: Foo, metadata: {name: a, annotations: {` + kept + `: '{"v2":{"spec":{"color":"red"}}}'}}, spec: {same: x, replicas: 3}}`
	for name, text := range map[string]string{
		"no JSON":                              `{`,
		"null":                                 `null`,
		"a list":                               `[]`,
		"a version without fields":             `{"v1":7}`,
		"a spec that is no object":             `{"v1":{"spec":"x"}}`,
		"an object where the schema has none":  `{"v1":{"spec":{"form":{}}}}`,
		"a text where an object is":            `{"v1":{"spec":{"deep":"x"}}}`,
		"a field that the schema has nowhere":  `{"v1":{"spec":{"other":1},"more":1}}`,
		"metadata, which a conversion may not": `{"v1":{"metadata":{"name":"b"},"kind":"Bar"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			object := tree(t, `{apiVersion: example.com/v2, kind: Foo, metadata: {name: a, annotations: {}}, spec: {same: x, size: 3, color: red}}`)
			object["metadata"].(map[string]any)["annotations"].(map[string]any)[kept] = text
			got, err := converter(t).Convert(object, "example.com/v1")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tree(t, want), got); diff != "" {
				t.Errorf("Convert() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAResourceWithOneVersionConvertsNothing(t *testing.T) {
	r := dsl.New("demo").Resource("foos.v2.example.com", nil)
	if convert.Of(r) != nil {
		t.Error("Of() made a converter without conversions")
	}
}
