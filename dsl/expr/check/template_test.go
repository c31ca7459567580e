// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl/expr/check"
)

func TestATemplateThatFitsIsLeftAlone(t *testing.T) {
	deploymentSchema, customSchema := kubernetes(t, "io.k8s.api.apps.v1.Deployment"), schema(t, custom)
	service, secret := kubernetes(t, "io.k8s.api.core.v1.Service"), kubernetes(t, "io.k8s.api.core.v1.Secret")
	tests := map[string]struct {
		tree   string
		target *spec.Schema
	}{
		"a deployment": {strings.NewReplacer("self.spec.ports", "self.spec.list.map(x, x.size)", "self.spec.flag", "self.spec.name").Replace(deployment), deploymentSchema},
		"quantities as numbers and text": {
			`{"spec": {"template": {"spec": {"containers": [{"resources": {"limits": {"cpu": 1, "memory": "1Gi"}, "requests": {"cpu": 0.5, "memory": "${quantity('1Gi')}"}}}]}}}}`,
			deploymentSchema,
		},
		"ports as numbers and text":     {`{"spec": {"ports": [{"port": 80, "targetPort": "http"}, {"port": 81, "targetPort": 8080}, {"targetPort": "${self.spec.port}"}]}}`, service},
		"secrets of text":               {`{"data": {"a": "${base64(self.spec.name)}", "b": "eA=="}, "stringData": {"c": "${string(self.spec.replicas)}"}, "type": "Opaque"}`, secret},
		"labels with odd keys":          {`{"metadata": {"labels": {"app.kubernetes.io/name": "x", "${self.spec.name}": "y"}}}`, deploymentSchema},
		"what is null":                  {`{"spec": {"replicas": null, "template": null}, "metadata": null}`, deploymentSchema},
		"what may not be there":         {`{"spec": {"replicas": "${self.?spec.?replicas}", "paused": "${self.spec.?paused.orValue(false)}"}}`, deploymentSchema},
		"values without a known type":   {`{"spec": {"replicas": "${params.x}", "template": "${params.y}", "selector": "${old.spec}"}}`, deploymentSchema},
		"a whole number for any number": {`{"spec": {"ratio": 1}}`, customSchema},
		"a time":                        {`{"spec": {"since": "${now}", "blob": "${b'x'}"}}`, customSchema},
		"names that are odd in CEL":     {`{"spec": {"a-b": "x", "namespace": "y", "a__b": "z", "x.y": "z"}}`, customSchema},
		"what is open":                  {`{"spec": {"some": {"x": 1, "size": 2}, "any": [1], "raw": {"x": {"y": 1}}, "map": {"x": "y"}}, "metadata": {"name": "a", "labels": {"a": "b"}}}`, customSchema},
		"an embedded object":            {`{"spec": {"resource": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"a": "b"}}}}`, customSchema},
		"apiVersion and kind":           {`{"apiVersion": "a/v1", "kind": "B"}`, customSchema},
		"a text of several pieces":      {`{"spec": {"name": "a-${self.spec.replicas}"}}`, customSchema},
		"lists that are worked out":     {`{"spec": {"texts": "${self.spec.list.map(x, x.name)}", "list": "${self.spec.list.filter(x, x.size > 1)}"}}`, customSchema},
		"without a schema":              {`{"spec": {"replcias": "x"}}`, nil},
		"a schema that says nothing":    {`{"spec": {"replcias": "x"}}`, &spec.Schema{}},
		"one of two kinds":              {`{"spec": {"port": "${self.spec.paused ? 1 : 2}", "replicas": "${self.spec.port}"}}`, customSchema},
	}
	c, s := compiler(t), schemas(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tmpl, err := c.Template(tree(t, test.tree))
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range check.Template(tmpl, s, test.target) {
				t.Error(faults(t, err))
			}
		})
	}
}

func TestATemplateThatDoesNotFitIsFound(t *testing.T) {
	deploymentSchema, customSchema := kubernetes(t, "io.k8s.api.apps.v1.Deployment"), schema(t, custom)
	status := customSchema.Properties["status"]
	tests := map[string]struct {
		tree   string
		target *spec.Schema
		want   []string
	}{
		"unknown fields, also in lists": {
			`{"spec": {"replcias": 1, "template": {"spec": {"containers": [{"name": "a"}, {"imge": "x"}]}}}, "metadata": {"lables": {}}}`, deploymentSchema,
			[]string{
				`apply.metadata.lables 0:0: unknown field "lables" (did you mean "labels"?)`,
				`apply.spec.replcias 0:0: unknown field "replcias" (did you mean "replicas"?)`,
				`apply.spec.template.spec.containers.1.imge 0:0: unknown field "imge" (did you mean "image"?)`,
			},
		},
		"below an unknown field only expressions are looked at": {
			`{"spek": {"replicas": "x", "a": "${self.x.y}"}}`, customSchema,
			[]string{
				`apply.spek 0:0: unknown field "spek" (did you mean "spec"?)`,
				`apply.spek.a 1:8: unknown field "x" in self (want one of metadata, spec, status)`,
			},
		},
		"plain values of other kinds": {
			`{"spec": {"replicas": "3", "name": 3, "paused": "true", "list": {}, "texts": ["a", 1, true], "map": {"a": 1}, "port": 1.5, "raw": "x"}}`, customSchema,
			[]string{
				`apply.spec.list 0:0: want a list, found a map`,
				`apply.spec.map.a 0:0: want text, found a number (put it in quotes)`,
				`apply.spec.name 0:0: want text, found a number (put it in quotes)`,
				`apply.spec.paused 0:0: want true or false, found text`,
				`apply.spec.raw 0:0: want a map, found text`,
				`apply.spec.replicas 0:0: want a whole number, found text`,
				`apply.spec.texts.1 0:0: want text, found a number (put it in quotes)`,
				`apply.spec.texts.2 0:0: want text, found true or false (put it in quotes)`,
			},
		},
		"expressions of other kinds": {
			`{"spec": {"replicas": "${self.spec.name}", "name": "${self.spec.replicas}", "paused": "${self.spec.?name}", "texts": "${self.spec.list.map(x, x.size)}", "list": "${self.spec.map}", "ratio": "${now}"}}`, customSchema,
			[]string{
				`apply.spec.list 1:3: want a list, found a map`,
				`apply.spec.name 1:3: want text, found a whole number: string(…) makes it text`,
				`apply.spec.paused 1:3: want true or false, found text`,
				`apply.spec.ratio 1:3: want a number, found a time`,
				`apply.spec.replicas 1:3: want a whole number, found text: int(…) makes it a number`,
				`apply.spec.texts 1:3: in its elements: want text, found a whole number: string(…) makes it text`,
			},
		},
		"data that a Secret cannot have": {
			`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x", "labels": {"a/b": "c"}}, "data": {"a/b": "eA==", "b": "user:${self.spec.name}", "ok-${self.spec.name}": "eA==${self.spec.name}"}, "stringData": {"a b": "c", "${self.spec.name}/x": "c", "${self.spec.name}": "c"}}`, kubernetes(t, "io.k8s.api.core.v1.Secret"),
			[]string{
				`apply.data.a/b 0:0: is not a valid key: want letters, digits, '-', '_' and '.', at most 253, and neither . nor ..`,
				`apply.data.b 0:0: want base64, found other text (stringData takes it as it stands)`,
				`apply.stringData.${self.spec.name}/x 0:0: is not a valid key: want letters, digits, '-', '_' and '.', at most 253, and neither . nor ..`,
				`apply.stringData.a b 0:0: is not a valid key: want letters, digits, '-', '_' and '.', at most 253, and neither . nor ..`,
			},
		},
		"texts of several pieces": {
			`{"spec": {"replicas": "${self.spec.replicas}0", "paused": " ${self.spec.paused}"}}`, customSchema,
			[]string{`apply.spec.paused 0:0: want true or false, found text`, `apply.spec.replicas 0:0: want a whole number, found text`},
		},
		"only the first of two faults, when one follows from the other": {
			`{"spec": {"replicas": "${string(self.spec.nam)}"}}`, customSchema,
			[]string{`apply.spec.replicas 1:20: unknown field "nam" in self.spec (did you mean "name"?)`},
		},
		"expressions in texts and keys": {
			`{"spec": {"name": "ä\n ${self.spec.nam}-${children.x}", "map": {"${self.spec.replicas}": "x"}}}`, customSchema,
			[]string{
				`apply.spec.map.${self.spec.replicas} 1:3: want text, found a whole number: string(…) makes it text`,
				`apply.spec.name 2:14: unknown field "nam" in self.spec (did you mean "name"?)`,
				`apply.spec.name 2:30: unknown child "x" (want one of deployment, other, others, pods)`,
			},
		},
		"names without a schema": {
			`["${children.deploymnt.x}"]`, nil,
			[]string{`apply.0 1:12: unknown child "deploymnt" (did you mean "deployment"?)`},
		},
		"a part of an object": {
			`{"ready": "${self.spec.name}", "phas": "x"}`, &status,
			[]string{
				`apply.phas 0:0: unknown field "phas" (did you mean "phase"?)`,
				`apply.ready 1:3: want a whole number, found text: int(…) makes it a number`,
			},
		},
	}
	c, s := compiler(t), schemas(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tmpl, err := c.Template(tree(t, test.tree), "apply")
			if err != nil {
				t.Fatal(err)
			}
			got := faults(t, errors.Join(check.Template(tmpl, s, test.target)...))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}
