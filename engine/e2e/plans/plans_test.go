// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// edit is a change of a configuration.
type edit struct{ name, old, new string }

// kept are edits of a sample.
type kept struct {
	sample string
	edits  []edit
}

const account = "          account: {apiVersion: v1, kind: ServiceAccount, metadata: {name: \"${self.metadata.name}\"}}\n"

func keptEdits() []kept {
	hello := "      - id: hello\n        apply: {hello: {apiVersion: v1, kind: ConfigMap, metadata: {name: \"${self.metadata.name}-hello\"}, data: {a: b}}}\n"
	return []kept{
		{"webapp", []edit{
			{"a field of a template", "image: ${self.spec.image}", "image: mirror/${self.spec.image}"},
			{"a template that is new", "          service:\n", account + "          service:\n"},
			{"a template that is dropped", "          ingress:\n            includeWhen: has(self.spec.host)\n", "          ingress:\n            includeWhen: \"false\"\n"},
			{"a condition of a template", "            includeWhen: has(self.spec.maxReplicas)\n", "            includeWhen: self.spec.replicas == 2\n"},
			{"a handler that is new", "      - id: status\n", hello + "      - id: status\n"},
			{"nothing", "", ""},
			{"a value of the status", "'http://' + self.spec.host", "'https://' + self.spec.host"},
			{"a name of a child", "          config:\n            apiVersion: v1\n            kind: ConfigMap\n            metadata: {name: \"${self.metadata.name}\"}", "          config:\n            apiVersion: v1\n            kind: ConfigMap\n            metadata: {name: \"${self.metadata.name}-env\"}"},
			{"a label of a child", "            kind: Service\n            metadata: {name: \"${self.metadata.name}\"}", "            kind: Service\n            metadata: {name: \"${self.metadata.name}\", labels: {tier: web}}"},
		}},
		{"foo-yaml", []edit{
			{"a field of a template", "nginx:latest", "nginx:1.29"},
			{"a template that is new", "          deployment:\n            apiVersion", account + "          deployment:\n            apiVersion"},
			{"a template in another place", `metadata: {name: "${self.spec.deploymentName}"}`, `metadata: {name: "${self.spec.deploymentName}-web"}`},
			{"a value of the status", `"${available}"`, `"${available + 1}"`},
			{"a handler that is new", "      - id: status\n", hello + "      - id: status\n"},
			{"nothing", "", ""},
			{"a template that the schemas contradict", "replicas: ${self.spec.replicas}", "replicas: ${self.spec.replicas}-x"},
		}},
		{"tenant", []edit{
			{"an annotation of Namespaces", "    handlers:\n", "    handlers:\n      - {id: new, set: {annotations: {example.com/new: \"${self.metadata.name}\"}}}\n"},
		}},
		{"approval", []edit{
			{"a transition that is new", "transitions: [*edited]", "transitions: [*edited, {to: Rejected}]"},
			{"a text in the place of a map", "data: ${self.spec.settings}", "data: ${self.spec.settings}-x"},
		}},
	}
}

// TestAPlanIsWhatHappens changes the configuration of an operator whose objects are there, and holds that the operator changes
// the objects and the fields that the plan has, and no others.
func TestAPlanIsWhatHappens(t *testing.T) {
	for _, k := range keptEdits() {
		s := sampleOf(t, k.sample)
		for i, e := range k.edits {
			t.Run(k.sample+"/"+e.name, func(t *testing.T) {
				t.Parallel()
				before := s.read(t)
				text := before[operatorFile]
				if !strings.Contains(text, e.old) {
					t.Fatalf("%s has no %q", s.name, e.old)
				}
				after := maps.Clone(before)
				after[operatorFile] = strings.Replace(text, e.old, e.new, 1)
				l := newLife(t, s, fmt.Sprintf("%s-%d", s.name, i), before, after)
				if diff, warnings := l.compare(); diff != "" || len(warnings) > 0 {
					t.Errorf("warnings: %q, (-happened +planned):\n%s", warnings, diff)
				}
			})
		}
	}
}
