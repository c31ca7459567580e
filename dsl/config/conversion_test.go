// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/dsl/convert"
	"github.com/handwerk-dev/handwerk/handlers"
)

// versioned is a configuration with versions; the text is a list in one line.
func versioned(versions string) string {
	return header + `resources:
- resource: foos.v2.example.com
  schema:
    kind: Foo
    spec:
      size: integer | required=true minimum=0
      color: string | required=true
      address: string | pattern="^[a-z]+:[0-9]{1,4}$"
    columns: [{name: Color, path: .spec.color}]
    versions: ` + versions + `
  handlers: [{id: a, log: {message: "${self.spec.color}"}}]
`
}

const first = `
    - name: v1
      deprecated: use v2
      spec: {replicas: integer | required=true minimum=0, host: 'string | pattern="^[a-z]+$"', port: integer | minimum=0 maximum=9999}
      validation: [{rule: "!has(self.spec) || has(self.spec.host) == has(self.spec.port)"}]
      convert:
        move: {spec.replicas: spec.size}
        to:
          spec.color: blue
          spec.address: "${self.spec.?host.optMap(host, host + ':' + string(self.spec.port))}"
        from:
          spec.host: "${self.spec.?address.optMap(a, a.split(':')[0])}"
          spec.port: "${self.spec.?address.optMap(a, int(a.split(':')[1]))}"`

func TestVersionsOfAResourceBecomeThoseOfItsCRD(t *testing.T) {
	same := "[{name: v1beta1, served: false}]"
	for _, tc := range []struct{ name, versions, want string }{
		{"versions of one form need no conversion", same, "v2 served stored; v1beta1"},
		{"another one is stored", same + "\n    storage: v1beta1", "v2 served; v1beta1 stored"},
		{"a version with other fields", "[{name: v1, deprecated: use v2, spec: {color: string | required=true}, convert: {to: {spec.size: 1}}}]", "v2 served stored; v1 served deprecated (use v2); converts by default/demo-webhook/convert/foos.example.com"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			op, err := config.Parse("x.yaml", []byte(versioned(tc.versions)), handlers.Standard())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, versionsOf(op.Resources()[0].CRD)); diff != "" {
				t.Errorf("the CRD has (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAResourceThatOnlyConvertsLoads holds that versions need no handlers: handlers in Go may come later, and rules need none.
func TestAResourceThatOnlyConvertsLoads(t *testing.T) {
	without, _, _ := strings.Cut(versioned(first), "  handlers:")
	op, err := config.Parse("x.yaml", []byte(without+"  validate: [{id: a, rule: self.spec.size < 9}]\n"), handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	if got := len(op.Resources()[0].Conversions()); got != 1 {
		t.Errorf("the resource has %d conversions", got)
	}
}

// versionsOf describes the versions of a CRD.
func versionsOf(crd map[string]any) string {
	var out []string
	list, _, _ := unstructured.NestedSlice(crd, "spec", "versions")
	for _, each := range list {
		v := each.(map[string]any)
		text := v["name"].(string)
		for _, word := range [][2]string{{"served", "served"}, {"storage", "stored"}, {"deprecated", "deprecated"}} {
			if v[word[0]] == true {
				text += " " + word[1]
			}
		}
		if warning, has := v["deprecationWarning"].(string); has {
			text += " (" + warning + ")"
		}
		out = append(out, text)
	}
	if service, has, _ := unstructured.NestedStringMap(crd, "spec", "conversion", "webhook", "clientConfig", "service"); has || service != nil {
		out = append(out, "converts by "+service["namespace"]+"/"+service["name"]+service["path"])
	} else if service, has, _ := unstructured.NestedMap(crd, "spec", "conversion", "webhook", "clientConfig", "service"); has {
		out = append(out, "converts by "+service["namespace"].(string)+"/"+service["name"].(string)+service["path"].(string))
	}
	return strings.Join(out, "; ")
}

func TestObjectsAreConvertedAsTheConfigurationSays(t *testing.T) {
	op, err := config.Parse("x.yaml", []byte(versioned(first)), handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	c := convert.Of(op.Resources()[0])
	v1 := map[string]any{"apiVersion": "example.com/v1", "kind": "Foo", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"replicas": int64(3), "host": "db", "port": int64(80)}}
	v2, err := c.Convert(v1, "example.com/v2")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"size": int64(3), "color": "blue", "address": "db:80"}, v2["spec"]); diff != "" {
		t.Errorf("v1 becomes (-want +got):\n%s", diff)
	}
	v2["spec"] = map[string]any{"size": int64(4), "color": "red", "address": "other:81"}
	back, err := c.Convert(v2, "example.com/v1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"replicas": int64(4), "host": "other", "port": int64(81)}, back["spec"]); diff != "" {
		t.Errorf("v2 becomes (-want +got):\n%s", diff)
	}
	again, err := c.Convert(back, "example.com/v2")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(v2["spec"], again["spec"]); diff != "" {
		t.Errorf("and comes back as (-want +got):\n%s", diff)
	}
}

func TestFaultsOfVersionsHavePlacesAndCures(t *testing.T) {
	for _, tc := range []struct{ name, versions, want string }{
		{"no name", "[{served: true}]", `x.yaml:13:16: resources[0].schema.versions[0]: name is required`},
		{"the resource's own version", "[{name: v2}]", `x.yaml:13:23: resources[0].schema.versions[0].name: there is a version "v2" already`},
		{"no name of a version", "[{name: V1}]", `x.yaml:13:23: resources[0].schema.versions[0].name: want the name of a version, as in v1beta1`},
		{"a version twice", "[{name: v1}, {name: v1}]", `x.yaml:13:35: resources[0].schema.versions[1].name: there is a version "v1" already`},
		{"an unknown stored version", "[{name: v1}]\n    storage: v3", `x.yaml:14:14: resources[0].schema.storage: unknown version "v3" (want one of v2, v1)`},
		{"a faulty field", "[{name: v1, spec: {size: integre}}]", `x.yaml:13:40: resources[0].schema.versions[0].spec.size: unknown type "integre" (did you mean "integer"?)`},
		{"a move from nowhere", "[{name: v1, spec: {replicas: integer}, convert: {move: {spec.replica: spec.size}}}]", `x.yaml:13:85: resources[0].schema.versions[0].convert.move["spec.replica"]: unknown field "replica" in spec (did you mean "replicas"?) (in version v1)`},
		{"a move to nowhere", "[{name: v1, spec: {replicas: integer}, convert: {move: {spec.replicas: spec.sise}}}]", `x.yaml:13:86: resources[0].schema.versions[0].convert.move["spec.replicas"]: unknown field "sise" in spec (did you mean "size"?) (in version v2)`},
		{"a move of metadata", "[{name: v1, spec: {replicas: integer}, convert: {move: {metadata.name: spec.size}}}]", `x.yaml:13:86: resources[0].schema.versions[0].convert.move["metadata.name"]: want a field of spec or status, as in spec.size, found "metadata.name"`},
		{"two moves to one place", "[{name: v1, spec: {a: integer, b: integer}, convert: {move: {spec.a: spec.size, spec.b: spec.size}}}]", `x.yaml:13:103: resources[0].schema.versions[0].convert.move["spec.b"]: another field moves to spec.size`},
		{"a value that reads what is not there", "[{name: v1, spec: {a: integer}, convert: {to: {spec.size: '${self.spec.b}', spec.color: blue}}}]", `x.yaml:13:86: resources[0].schema.versions[0].convert.to["spec.size"]: unknown field "b" in self.spec (want a)`},
		{"a value of another type", "[{name: v1, spec: {a: integer}, convert: {to: {spec.size: 1, spec.color: 5}}}]", `x.yaml:13:88: resources[0].schema.versions[0].convert.to["spec.color"]: want text, found a whole number (put it in quotes)`},
		{"a variable that conversions lack", "[{name: v1, spec: {a: integer}, convert: {to: {spec.size: 1, spec.color: '${string(now) + self.metadata.name}'}}}]", `x.yaml:13:98: resources[0].schema.versions[0].convert.to["spec.color"]: now is not known to a conversion (want self, the object in the other version)`},
		{"an object that would be invalid", "[{name: v1, spec: {a: integer}}]", `x.yaml:13:16: resources[0].schema.versions[0]: from v1 it becomes invalid in v2: spec.color is required, as for {"spec":{"a":455}}`},
		{"a value that comes back as another", "[{name: v1, spec: {size: string | required=true, color: string | required=true}, convert: {to: {spec.size: '${self.spec.size.size()}'}, from: {spec.size: '${string(self.spec.size)}'}}}]", `x.yaml:13:105: resources[0].schema.versions[0].convert: spec.size was "nkzq", and is "4" after the way from v1 to v2 and back, as for {"spec":{"color":"ljb","size":"nkzq"}}` + "\n" + `x.yaml:13:105: resources[0].schema.versions[0].convert: spec.size was 923, and is 3 after the way from v2 to v1 and back, as for {"spec":{"color":"wcp","size":923}}`},
		{"a field that is lost in a list", "[{name: v1, spec: {size: integer | required=true, color: string | required=true}, status: {list: '[]Long'}}]\n    status: {list: '[]Short'}\n    types: {Long: {a: integer, b: integer}, Short: {a: integer}}", `x.yaml:13:16: resources[0].schema.versions[0]: status.list was [{"b":527}], and is [{}] after the way from v1 to v2 and back, as for {"spec":{"color":"ljb","size":449},"status":{"list":[{"b":527}]}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, f := range faultsOf(t, "x.yaml", []byte(versioned(tc.versions)), handlers.Standard()) {
				got = append(got, f.Error())
			}
			if got := strings.Join(got, "\n"); got != tc.want {
				t.Errorf("faults:\n%s\nwant:\n%s", got, tc.want)
			}
		})
	}
}
