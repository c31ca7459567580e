// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
)

// TestWhatIsNotThereSelectsNothing holds that a relation does not select more than is meant when
// something that it is worked out from is missing.
func TestWhatIsNotThereSelectsNothing(t *testing.T) {
	tests := map[string]struct {
		relation, spec string
		namespace      string
		selects        bool
	}{
		"the object's own namespace, when none is said":    {`{name: them, resource: secrets.v1}`, "", "own", true},
		"a namespace that is worked out":                   {`{name: them, resource: secrets.v1, namespace: "${self.spec.ns}"}`, "other", "other", true},
		"all namespaces, when that is said":                {`{name: them, resource: secrets.v1, namespace: "*"}`, "", "", true},
		"a namespace that is not there is not all":         {`{name: them, resource: secrets.v1, namespace: "${self.spec.?ns}"}`, "", "", false},
		"nor is an empty one, for an object by name":       {`{name: them, resource: secrets.v1, namespace: "${self.spec.?ns.orValue('')}", object: x}`, "", "", false},
		"labels that are worked out":                       {`{name: them, resource: secrets.v1, selector: {matchLabels: {app: "${self.spec.ns}"}}}`, "other", "own", true},
		"a label that is not there is not any":             {`{name: them, resource: secrets.v1, selector: {matchLabels: {app: "${self.spec.?ns}"}}}`, "", "", false},
		"nor is it left out among others that are there":   {`{name: them, resource: secrets.v1, selector: {matchLabels: {app: "${self.spec.?ns}", tier: gold}}}`, "", "", false},
		"null is no label either":                          {`{name: them, resource: secrets.v1, selector: {matchLabels: {app: "${null}"}}}`, "", "", false},
		"a label without a value is one that can be asked": {`{name: them, resource: secrets.v1, selector: {matchLabels: {app: "${''}"}}}`, "", "own", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			op, err := config.Parse("operator.yaml", []byte(`{apiVersion: handwerk.dev/v1alpha1, kind: Operator, metadata: {name: x},
  resources: [{resource: foos.v1.example.com, related: [`+tt.relation+`], handlers: [{id: h, causes: [create], call: demo.Farewell}]}]}`), registry(t))
			if err != nil {
				t.Fatal(err)
			}
			spec := map[string]any{}
			if tt.spec != "" {
				spec["ns"] = tt.spec
			}
			object := map[string]any{"metadata": map[string]any{"namespace": "own"}, "spec": spec}
			got, err := op.Resources()[0].Relations()[0].Select(&dsl.Subject{Object: &unstructured.Unstructured{Object: object}})
			if err != nil {
				t.Fatal(err)
			}
			selects := got.Names == nil || len(got.Names) > 0
			if selects != tt.selects || selects && got.Namespace != tt.namespace {
				t.Errorf("selection %+v", got)
			}
		})
	}
}
