// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/expr/check"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// kubernetes returns a schema as a real API server publishes it, with its references resolved.
func kubernetes(t testing.TB, name string) *spec.Schema {
	t.Helper()
	data, err := os.ReadFile("testdata/kubernetes.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]*spec.Schema
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	s, err := resolver.PopulateRefs(func(ref string) (*spec.Schema, bool) {
		s, found := all[strings.TrimPrefix(ref, "#/components/schemas/")]
		return s, found
	}, name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func schema(t testing.TB, text string) *spec.Schema {
	t.Helper()
	s := &spec.Schema{}
	if err := json.Unmarshal([]byte(text), s); err != nil {
		t.Fatal(err)
	}
	return s
}

// custom is the schema of a custom resource as a CRD has it.
const custom = `{"type": "object", "properties": {
  "metadata": {"type": "object"},
  "spec": {"type": "object", "properties": {
    "replicas": {"type": "integer"}, "name": {"type": "string"}, "ratio": {"type": "number"}, "paused": {"type": "boolean"},
    "since": {"type": "string", "format": "date-time"}, "blob": {"type": "string", "format": "byte"},
    "maybe": {"type": "integer", "nullable": true},
    "port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
    "list": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}}},
    "texts": {"type": "array", "items": {"type": "string"}},
    "map": {"type": "object", "additionalProperties": {"type": "string"}},
    "objects": {"type": "object", "additionalProperties": {"type": "object", "properties": {"size": {"type": "integer"}}}},
    "some": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"size": {"type": "integer"}}},
    "any": {"x-kubernetes-preserve-unknown-fields": true},
    "raw": {"type": "object"},
    "resource": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}}},
    "either": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    "a-b": {"type": "string"}, "namespace": {"type": "string"}, "a__b": {"type": "string"}, "x.y": {"type": "string"}
  }},
  "status": {"type": "object", "properties": {"ready": {"type": "integer"}, "phase": {"type": "string"}}}
}}`

// schemas are those of the tests, which need not ask whether a field is set; see TestAFieldThatNeedNotBeSet.
func schemas(t testing.TB) shape.Schemas {
	t.Helper()
	return shape.Schemas{
		Unset: true,
		Self:  shape.Shape{Schema: schema(t, custom)},
		Children: map[string]shape.Shape{
			"deployment": {Schema: kubernetes(t, "io.k8s.api.apps.v1.Deployment")},
			"pods":       {Schema: kubernetes(t, "io.k8s.api.core.v1.Pod"), List: true},
			"other":      {},
			"others":     {List: true},
		},
		Related: map[string]shape.Shape{
			"secrets": {Schema: kubernetes(t, "io.k8s.api.core.v1.Secret"), List: true},
			"service": {Schema: kubernetes(t, "io.k8s.api.core.v1.Service")},
		},
	}
}

func TestNothingIsSaidAboutWhatIsRight(t *testing.T) {
	tests := []string{
		"self.metadata.labels['app.kubernetes.io/name'] == 'x'", "self.metadata.annotations['x'] + 'y'", "self.metadata.name == 'x'",
		"self.metadata.whatever.there.is", "self.apiVersion + self.kind == 'x'", "self['spec']['replicas'] + 1", "self.spec['a-b'] == 'x'",
		"self.spec.`a-b` == 'x'", "self.spec.namespace == 'x'", "self.spec.a__b == 'x'", "self.spec['x.y'] == 'x'",
		"cause == 'timer' || cause != 'related' || cause in ['create', 'resume']", "cause == params.x || cause in params.list", "['x'].exists(cause, cause == 'x')",
		"has(self.spec.replicas) && self.spec.replicas > 1", "has(self.spec.some.thing)", "self.?spec.?replicas.orValue(0) + 1",
		"self.spec.?list.orValue([]).size()", "self.?spec.orValue({}) == {}", "self[?'spec'].?replicas.hasValue()", "self.spec.list[?0].?name.orValue('x') + 'y'",
		"self.?spec.?replicas.optMap(n, n + 1).orValue(0) > 0", "self.?spec.optFlatMap(s, s.?name).orValue('') + 'x'",
		"self.spec.?name.or(optional.of('x')).value() + 'y'", "optional.none().orValue(self.spec.replicas) == 1",
		"self.spec.list.all(x, x.size > 1)", "self.spec.list.exists(x, x.name == 'a')", "self.spec.list.exists_one(x, x.name == 'a')",
		"self.spec.list.map(x, x.name).join(',')", "self.spec.list.filter(x, x.size > 1)[0].name + 'x'", "self.spec.list.map(x, x.size > 1, x.name)[0] + 'x'",
		"self.spec.list.all(i, x, i < 3 && x.name != '')", "self.spec.map.all(k, v, k + v != '')", "self.spec.map.all(k, k != '')",
		"self.spec.objects.all(k, v, k != '' && v.size > 1)", "self.spec.objects.any.size + 1", "self.spec.objects[self.spec.name].size + 1",
		"self.spec.transformMap(k, v, string(v))", "self.spec.list.transformList(i, x, x.size + i).sum() > 1", "self.spec.exists(k, k == 'replicas')",
		"self.spec.list.sortBy(x, x.size)[0].name", "self.spec.texts.sort()[0] == 'x'", "(self.spec.texts + ['x']).join(',')",
		"(self.spec.paused ? self.spec.replicas : self.spec.name) == 'x'", "self.spec.paused ? self.spec.list : {}", "(self.spec.paused ? self.spec.either : self.spec.raw).c",
		"self.spec.ratio == 1", "self.spec.replicas == 1.0", "self.spec.ratio > 1 && self.spec.replicas < 1.5", "self.spec.ratio * 2 > 1", "self.spec.ratio * 2.0 > 1",
		"self.spec.replicas == null", "self.spec == null", "self.spec.maybe == null || self.spec.maybe > 1", "null in [self.spec.replicas]",
		"self.spec.port == 1", "self.spec.port == 'http'", "self.spec.port + 1", "self.spec.port.startsWith('h')", "type(self.spec.port) == int ? string(self.spec.port) : self.spec.port",
		"timestamp(self.spec.since) < now", "self.spec.since == '2030-01-01T00:00:00Z'", "unbase64(self.spec.blob) + 'x'", "base64(self.spec.name) == self.spec.blob",
		"self.spec.some.size + 1", "self.spec.some.more.of.it", "self.spec.any.a[0].b + 1", "self.spec.any + 1", "self.spec.raw.a.b", "self.spec.raw['a']",
		"self.spec.resource.metadata.name + self.spec.resource.kind + self.spec.resource.spec.a", "self.spec.either.a + self.spec.either.b",
		"size(self.spec) > 1 && size(self.spec.list) == 1 && size(self.spec.map) == 1 && size(self.spec.name) == 1", "'replicas' in self.spec", "self.spec.name in ['a']", "'a' in self.spec.map",
		"self.spec == old.spec", "old.spec.whatever > 1", "old == null || old.spec.replicas < self.spec.replicas", "diff.all(d, d.path != self.spec.name)",
		"params.any.thing + 1", "cause == 'create'", "now - timestamp(self.metadata.creationTimestamp) > duration('1h')",
		"ready(children.deployment)", "children.pods.all(p, ready(p))", "ready(null)", "children.deployment == {}", "size(children.deployment) == 0", "has(children.deployment.metadata)",
		"children.?deployment.?status.?availableReplicas.orValue(0)", "children['deployment'].spec.replicas + 1", "children[params.name].x", "children.map(name, name + 'x')",
		"children.deployment.metadata.labels['x'] + children.deployment.metadata.uid", "children.deployment.status.conditions.exists(c, c.type == 'Available' && c.status == 'True')",
		"children.deployment.spec.template.spec.containers[0].resources.limits['cpu'] == '1'", "quantity(children.deployment.spec.template.spec.containers[0].resources.limits.cpu).isGreaterThan(quantity('1'))",
		"children.deployment.spec.strategy.rollingUpdate.maxSurge == 1", "children.deployment.spec.template.spec.containers.map(c, c.image)", "children.deployment.metadata.managedFields[0].fieldsV1.x",
		"children.pods.map(p, p.status.podIP)[0] + 'x'", "children.other.any.thing + 1", "children.others.all(o, o.any > 1)", "children.deployment.spec == children.other.spec",
		"related.secrets.filter(s, s.metadata.name == self.spec.name)[0].data['password'] + 'x'", "related.service.spec.ports[0].targetPort == 'http'", "related.service.spec.ports[0].targetPort + 1",
		"[1].all(self, self == 1)", "[{'x': 1}].all(children, children.x == 1)", "self.spec.list.map(self, self.name)", "hash(self.spec) + hash(self.spec.list) + hash(null)",
		"[self.spec.name, self.spec.blob].join('-')", "{'a': self.spec.name, 'b': self.spec.replicas}.a + 1", "'%s-%d'.format([self.spec.name, self.spec.replicas])", "dyn(self.spec.replicas) == 'x'",
		"self.spec.name.matches('^a') && self.spec.name.size() > 1 && self.spec.name.find('a') == ''", "string(self.spec.replicas) + 'x'", "int(self.spec.name) + 1", "double(self.spec.replicas) * 1.5",
		"cidr('10.0.0.0/8').containsIP(self.spec.name)", "url(self.spec.name).getHost() == 'x'", "-self.spec.replicas < 1 && !self.spec.paused", "self.spec.replicas % 2 == 0",
		"cel.bind(s, self.spec, s.replicas > 1 && s.name == 'x')", "merge(self.spec, {'x': 1}).x == 1", "pick(self.spec, ['name']).name == 'x'", "omit(self.spec.map, self.spec.texts) == {}",
		"unjson(self.spec.name).a.b == 1 && unyaml(self.spec.name).a.b == 1", "json(self.spec) + yaml(self.spec.list) + sha256(self.spec.name) + random(self.spec.replicas, self.spec.name)",
		"math.greatest(self.spec.replicas, 3) > 1", "math.least(self.spec.list.map(x, x.size)) > 1",
	}
	c, s := compiler(t), schemas(t)
	for _, text := range tests {
		p, err := c.Value(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if err := check.Program(p, s); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if err := check.Program(p, shape.Schemas{}); err != nil {
			t.Errorf("without schemas: %s: %v", text, err)
		}
	}
}

func TestWhatCannotBeRightIsFound(t *testing.T) {
	var causes []string
	for _, c := range dsl.Causes() {
		causes = append(causes, string(c))
	}
	tests := map[string]string{
		"cel.bind(s, self.spec, s.replcias > 1)":     `1:26: unknown field "replcias" in s (did you mean "replicas"?)`,
		"random(self.spec.name, 'x')":                `1:1: cannot use random() with text (self.spec.name) and text`,
		"self.spec.replcias > 1":                     `1:11: unknown field "replcias" in self.spec (did you mean "replicas"?)`,
		"self.spec\n  .replcias > 1":                 `2:4: unknown field "replcias" in self.spec (did you mean "replicas"?)`,
		"self.stat == 1":                             `1:6: unknown field "stat" in self (want one of metadata, spec, status)`,
		"self.status.xyz":                            `1:13: unknown field "xyz" in self.status (want one of phase, ready)`,
		"'ä' == self.spec.nam":                       `1:18: unknown field "nam" in self.spec (did you mean "name"?)`,
		"has(self.spec.replcias)":                    `1:15: unknown field "replcias" in self.spec (did you mean "replicas"?)`,
		"self.?spec.?replcias.orValue(1)":            `1:13: unknown field "replcias" in self.spec (did you mean "replicas"?)`,
		"self.spec['replcias']":                      `1:11: unknown field "replcias" in self.spec (did you mean "replicas"?)`,
		"self.spec[?'replcias']":                     `1:12: unknown field "replcias" in self.spec (did you mean "replicas"?)`,
		"self['spec'].replcias":                      `1:14: unknown field "replcias" in self['spec'] (did you mean "replicas"?)`,
		"self.spec.list.all(x, x.nam == 'a')":        `1:25: unknown field "nam" in x (did you mean "name"?)`,
		"self.spec.list.all(i, x, x.nam == 'a')":     `1:28: unknown field "nam" in x (did you mean "name"?)`,
		"self.spec.list.filter(x, true)[0].nam":      `1:35: unknown field "nam" (did you mean "name"?)`,
		"self.spec.list.map(x, x)[0].nam":            `1:29: unknown field "nam" (did you mean "name"?)`,
		"self.spec.objects.all(k, v, v.siz > 1)":     `1:31: unknown field "siz" in v (did you mean "size"?)`,
		"self.spec.objects.any.siz":                  `1:23: unknown field "siz" in self.spec.objects.any (did you mean "size"?)`,
		"self.spec.?nam.optMap(n, n + 'x')":          `1:12: unknown field "nam" in self.spec (did you mean "name"?)`,
		"self.?spec.optMap(s, s.replcias)":           `1:24: unknown field "replcias" in s (did you mean "replicas"?)`,
		"children.deploymnt.spec":                    `1:10: unknown child "deploymnt" (did you mean "deployment"?)`,
		"has(children.deploymnt.spec)":               `1:14: unknown child "deploymnt" (did you mean "deployment"?)`,
		"children['deploymnt']":                      `1:10: unknown child "deploymnt" (did you mean "deployment"?)`,
		"children.zzz":                               `1:10: unknown child "zzz" (want one of deployment, other, others, pods)`,
		"1 == 1 &&\n  related.secret == []":          `2:11: unknown relation "secret" (did you mean "secrets"?)`,
		"children.deployment.spec.replcias":          `1:26: unknown field "replcias" in children.deployment.spec (did you mean "replicas"?)`,
		"children.deployment.metadata.lables":        `1:30: unknown field "lables" in children.deployment.metadata (did you mean "labels"?)`,
		"children.pods.all(p, p.stat.x == 1)":        `1:24: unknown field "stat" in p (want one of apiVersion, kind, metadata, spec, status)`,
		"children.pods.spec":                         `1:15: a list (children.pods) has no field "spec"`,
		"ready(children.pods)":                       `1:1: cannot use ready() with a list (children.pods)`,
		"self.spec.replicas + 'x'":                   `1:20: cannot use + with a whole number (self.spec.replicas) and text`,
		"self.spec.name > 3":                         `1:16: cannot use > with text (self.spec.name) and a whole number`,
		"self.spec.replicas + 1.5":                   `1:20: cannot use + with a whole number (self.spec.replicas) and a number`,
		"self.spec.name == 3":                        `1:16: text (self.spec.name) and a whole number are never equal`,
		"self.spec.since < now":                      `1:17: cannot use < with text (self.spec.since) and a time (now)`,
		"self.spec.replicas.startsWith('x')":         `1:20: cannot use startsWith() with a whole number (self.spec.replicas) and text`,
		"size(self.spec.replicas)":                   `1:1: cannot use size() with a whole number (self.spec.replicas)`,
		"self.spec.name && true":                     `1:11: && wants true or false, not text (self.spec.name)`,
		"!self.spec.name":                            `1:1: cannot use ! with text (self.spec.name)`,
		"self.spec.name ? 1 : 2":                     `1:11: ?: wants true or false, not text (self.spec.name)`,
		"self.spec.replicas.x":                       `1:20: a whole number (self.spec.replicas) has no field "x"`,
		"self.spec.replicas.all(x, true)":            `1:20: want a list or a map, found a whole number (self.spec.replicas)`,
		"self.spec.list['x']":                        `1:15: cannot use [] with a list (self.spec.list) and text`,
		"self.spec.list.name":                        `1:16: a list (self.spec.list) has no field "name"`,
		"self.spec.port && true":                     `1:11: && wants true or false, not a whole number or text (self.spec.port)`,
		"self.spec.texts.map(x, x + 1)":              `1:26: cannot use + with text (x) and a whole number`,
		"self.spec.replicas in self.spec.name":       `1:20: cannot use in with a whole number (self.spec.replicas) and text (self.spec.name)`,
		"self.spec.?replicas.orValue(0) + 'x'":       `1:32: cannot use + with a whole number and text`,
		"self.spec.x__dot__y":                        `1:11: unknown field "x__dot__y" in self.spec (write ['x.y'])`,
		"self.spec.?__namespace__":                   `1:12: unknown field "__namespace__" in self.spec (write ['namespace'])`,
		"cause == 'udpate'":                          `1:10: unknown cause "udpate" (did you mean "update"?)`,
		"'reconcile' != cause":                       `1:1: unknown cause "reconcile" (want one of ` + strings.Join(causes, ", ") + `)`,
		"cause in ['create', 'crate']":               `1:21: unknown cause "crate" (did you mean "create"?)`,
		"self.spec.nam + self.metadata.x.y + self.z": `1:11: unknown field "nam" in self.spec (did you mean "name"?); 1:42: unknown field "z" in self (want one of metadata, spec, status)`,
	}
	c, s := compiler(t), schemas(t)
	for text, want := range tests {
		p, err := c.Value(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if err := check.Program(p, s); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}

func TestFurtherVariablesAreCheckedWhereTheyAreKnown(t *testing.T) {
	tests := map[string]string{
		"child.stat.x == 1":                     `1:7: unknown field "stat" in child (want one of apiVersion, kind, metadata, spec, status)`,
		"objects.map(o, o.spec.replcias)":       `1:23: unknown field "replcias" in o.spec (did you mean "replicas"?)`,
		"objects.spec":                          `1:9: a list (objects) has no field "spec"`,
		"unseen.x":                              `1:8: a list (unseen) has no field "x"`,
		"child.status.x == 1":                   `1:14: unknown field "x" in child.status (want one of availableReplicas, collisionCount, conditions, observedGeneration, readyReplicas, replicas, terminatingReplicas, unavailableReplicas, updatedReplicas)`,
		"child.status.replicas + item.any == 1": "",
		"objects.all(o, o.spec.replicas > 1)":   "",
		"unseen.all(o, o.any.thing)":            "",
	}
	c, err := compiler(t).With("child", "objects", "unseen", "item")
	if err != nil {
		t.Fatal(err)
	}
	s := schemas(t)
	s.Vars = map[string]shape.Shape{"child": s.Children["deployment"], "objects": {Schema: s.Self.Schema, List: true}, "unseen": {List: true}}
	for text, want := range tests {
		p, err := c.Value(text)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := check.Program(p, s); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestPathsAreCheckedAgainstSchemas(t *testing.T) {
	tests := map[string]string{
		"spec replicas": "", "spec map a.b": "", "spec any thing": "", "spec raw a b": "", "spec some thing else": "", "spec list 0 name": "",
		"metadata labels x": "", "status": "", "kind": "", "spec x.y": "", "": "",
		"stauts":              `unknown field "stauts" (did you mean "status"?)`,
		"spec replcias":       `unknown field "replcias" in spec (did you mean "replicas"?)`,
		"spec objects a siz":  `unknown field "siz" in spec.objects.a (did you mean "size"?)`,
		"spec replicas value": `a whole number (spec.replicas) has no field "value"`,
	}
	s := schema(t, custom)
	for path, want := range tests {
		got := ""
		if err := check.Path(s, strings.Fields(path)...); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
		if err := check.Path(nil, strings.Fields(path)...); err != nil {
			t.Errorf("%s: without a schema: %v", path, err)
		}
	}
}

func TestOddSchemas(t *testing.T) {
	tests := map[string]struct{ schema, text, want string }{
		"metadata that a CRD restricts":   {`{"properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string"}}}}}`, "self.metadata.labels.x + self.metadata.name", ""},
		"their fields have types":         {`{"properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string"}}}}}`, "self.metadata.name + 1", "1:20: cannot use + with text (self.metadata.name) and a whole number"},
		"the same name twice in has()":    {custom, "has(self.status.status)", `1:17: unknown field "status" in self.status (want one of phase, ready)`},
		"no type but properties":          {`{"properties": {"a": {"properties": {"b": {"type": "integer"}}}}}`, "self.a.c", `1:8: unknown field "c" in self.a (want b)`},
		"a wrapped type":                  {`{"properties": {"a": {"allOf": [{"type": "object", "properties": {"size": {"type": "integer"}}}]}}}`, "self.a.siz", `1:8: unknown field "siz" in self.a (did you mean "size"?)`},
		"a wrapped type that is right":    {`{"properties": {"a": {"allOf": [{"type": "object", "properties": {"size": {"type": "integer"}}}, {"required": ["size"]}]}}}`, "self.a.size + 1", ""},
		"a circle":                        {`{"properties": {"a": {"$ref": "#/components/schemas/A"}}}`, "self.a.b.c + 1", ""},
		"fields by pattern":               {`{"properties": {"a": {"type": "object", "properties": {"x": {}}, "patternProperties": {"^y": {}}}}}`, "self.a.y1", ""},
		"fields and others":               {`{"properties": {"a": {"type": "object", "properties": {"x": {}}, "additionalProperties": true}}}`, "self.a.y", ""},
		"no other fields at all":          {`{"properties": {"a": {"type": "object", "additionalProperties": false}}}`, "self.a.y", `1:8: unknown field "y" in self.a (there are none)`},
		"alternatives with fields":        {`{"properties": {"a": {"type": "object", "properties": {"x": {}}, "oneOf": [{"properties": {"y": {}}}]}}}`, "self.a.y", ""},
		"two types":                       {`{"properties": {"a": {"type": ["integer", "null"]}}}`, "self.a == null || self.a + 1 > 2", ""},
		"two types, neither of them fits": {`{"properties": {"a": {"type": ["integer", "string"]}}}`, "self.a && true", "1:6: && wants true or false, not a whole number or text (self.a)"},
		"alternatives without restraint":  {`{"properties": {"a": {"oneOf": [{"type": "string"}, {}]}}}`, "self.a.b + 1", ""},
		"a quantity of older documents":   {`{"properties": {"a": {"type": "string", "description": "Quantity is a fixed-point representation of a number."}}}`, "self.a + 1", ""},
		"a schema of nothing":             {`{}`, "self.a.b + 1", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := compiler(t).Value(test.text)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := check.Program(p, shape.Schemas{Self: shape.Shape{Schema: schema(t, test.schema)}}); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("%s: %q, want %q", test.text, got, test.want)
			}
		})
	}
}

func TestNamesAreCheckedWithoutSchemas(t *testing.T) {
	s := shape.Schemas{Children: map[string]shape.Shape{"deployment": {}, "pods": {List: true}}, Related: map[string]shape.Shape{}}
	tests := map[string]string{
		"children.deploymnt.x": `1:10: unknown child "deploymnt" (did you mean "deployment"?)`,
		"related.x":            `1:9: unknown relation "x" (there are none)`,
		"children.pods.x":      `1:15: a list (children.pods) has no field "x"`,
		"children.deployment.any.thing + self.any.thing": "",
	}
	for text, want := range tests {
		p, err := compiler(t).Value(text)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := check.Program(p, s); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestAPredicateThatIsNoneIsFoundBySchemas(t *testing.T) {
	c, s := compiler(t), schemas(t)
	for text, want := range map[string]string{
		"self.spec.replicas":               "1:1: the result is a whole number, want true or false",
		"${self.spec.replicas}":            "1:3: the result is a whole number, want true or false",
		"${true && self.spec.pausd}":       `1:21: unknown field "pausd" in self.spec (did you mean "paused"?)`,
		"self.spec.paused":                 "",
		"self.spec.any":                    "",
		"self.?spec.?paused.orValue(1==1)": "",
	} {
		p, err := c.Predicate(text)
		if err != nil {
			t.Fatal(err)
		}
		err = check.Program(p, s)
		if got := ""; err != nil {
			got = err.Error()
			if got != want {
				t.Errorf("%s: %s, want %s", text, got, want)
			}
		} else if want != "" {
			t.Errorf("%s: nothing, want %s", text, want)
		}
	}
}

func TestACheckIsAnErrorOfTheText(t *testing.T) {
	p, err := compiler(t).Value("self.spec.replcias")
	if err != nil {
		t.Fatal(err)
	}
	faulty, ok := errors.AsType[*expr.Error](check.Program(p, schemas(t)))
	if !ok {
		t.Fatal("Check() is no expr.Error")
	}
	want := `1:11: unknown field "replcias" in self.spec (did you mean "replicas"?)`
	if diff := cmp.Diff(want, faulty.Error()); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

// BenchmarkCheck checks a hundred expressions against one schema.
func BenchmarkCheck(b *testing.B) {
	c, s := compiler(b), schemas(b)
	p, err := c.Value("children.deployment.spec.template.spec.containers.all(c, c.image != '' && c.resources.limits['cpu'] != '1')")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		for range 100 {
			if err := check.Program(p, s); err != nil {
				b.Fatal(err)
			}
		}
	}
}
