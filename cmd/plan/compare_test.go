// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestCompare holds how an object before and after becomes a change.
func TestCompare(t *testing.T) {
	const made = `uid: a, annotations: {sites.handwerk.dev/applied: 'handwerk:x'}, ownerReferences: [{apiVersion: v1, kind: Site, name: b, uid: c, controller: true}]`
	for name, tt := range map[string]struct {
		kind, before, after string
		status              bool
		// want is the action, the effect if there is one, and the fields.
		want []string
	}{
		"no difference":                           {"ConfigMap", `{metadata: {uid: a, resourceVersion: "1"}, data: {a: b}}`, `{metadata: {uid: a, resourceVersion: "2"}, data: {a: b}}`, false, nil},
		"a field":                                 {"ConfigMap", `{metadata: {uid: a}, data: {a: b}}`, `{metadata: {uid: a}, data: {a: c, d: e}}`, false, []string{"changed", "~ data.a: b → c", "+ data.d: e"}},
		"a value of a Secret":                     {"Secret", `{metadata: {uid: a}, data: {a: b, c: d}}`, `{metadata: {uid: a}, data: {a: c}}`, false, []string{"changed", "~ data.a: (hidden) → (hidden, another value)", "- data.c: (hidden)"}},
		"values of a Secret in an annotation":     {"Secret", `{metadata: {uid: a, annotations: {kubectl.kubernetes.io/last-applied-configuration: x}}}`, `{metadata: {uid: a}}`, false, nil},
		"an annotation of the operator":           {"ConfigMap", `{metadata: {uid: a}}`, `{metadata: {uid: a, annotations: {sites.handwerk.dev/state: x}}}`, false, []string{"marked"}},
		"what the controller of Deployments adds": {"Deployment", `{metadata: {uid: a}}`, `{metadata: {uid: a, annotations: {deployment.kubernetes.io/revision: "2"}}}`, false, nil},
		"the status, which others write":          {"ConfigMap", `{metadata: {uid: a}, status: {a: 1}}`, `{metadata: {uid: a}, status: {a: 2}}`, false, nil},
		"the status, which the operator writes":   {"ConfigMap", `{metadata: {uid: a}, status: {a: 1}}`, `{metadata: {uid: a}, status: {a: 2}}`, true, []string{"changed", "~ status.a: 1 → 2"}},
		"a condition": {"ConfigMap", `{metadata: {uid: a}, status: {conditions: [{type: A, status: "True"}, {type: B, status: "True", lastTransitionTime: x}]}}`,
			`{metadata: {uid: a}, status: {conditions: [{type: B, status: "False", lastTransitionTime: y}, {type: A, status: "True"}]}}`, true, []string{"changed", `~ status.conditions[B].status: True → False`}},
		"a template of Pods":        {"Deployment", `{metadata: {uid: a}, spec: {template: {spec: {containers: [{image: a}]}}}}`, `{metadata: {uid: a}, spec: {template: {spec: {containers: [{image: b}]}}}}`, false, []string{"changed", "its Pods restart", "~ spec.template.spec.containers[0].image: a → b"}},
		"an object that is new":     {"ConfigMap", "", `{metadata: {uid: a}, data: {a: b}}`, false, []string{"created", "+ data.a: b"}},
		"an object that goes":       {"ConfigMap", `{metadata: {uid: a}, data: {a: b}}`, "", false, []string{"deleted"}},
		"an object that waits":      {"ConfigMap", `{metadata: {uid: a, finalizers: [x/y]}}`, `{metadata: {uid: a, finalizers: [x/y], deletionTimestamp: "2026-01-01T00:00:00Z"}}`, false, []string{"deleted", "waits for x/y"}},
		"another object of a name":  {"ConfigMap", `{metadata: {uid: a}, data: {a: b}}`, `{metadata: {uid: b}, data: {a: c}}`, false, []string{"recreated", "~ data.a: b → c"}},
		"a child that is given up":  {"ConfigMap", `{metadata: {` + made + `}}`, `{metadata: {uid: a}}`, false, []string{"orphaned", `- metadata.ownerReferences: ["Site b"]`}},
		"a list that grows":         {"ConfigMap", `{metadata: {uid: a}, data: {a: [{b: 1}]}}`, `{metadata: {uid: a}, data: {a: [{b: 1}, {b: 2}]}}`, false, []string{"changed", "+ data.a[1].b: 2"}},
		"a list of plain values":    {"ConfigMap", `{metadata: {uid: a}, data: {a: [u]}}`, `{metadata: {uid: a}, data: {a: [u, v]}}`, false, []string{"changed", `~ data.a: ["u"] → ["u","v"]`}},
		"a map that is empty":       {"ConfigMap", `{metadata: {uid: a}, data: {}}`, `{metadata: {uid: a}}`, false, nil},
		"a key with a dot":          {"ConfigMap", `{metadata: {uid: a}}`, `{metadata: {uid: a}, data: {a.b: c}}`, false, []string{"changed", `+ data["a.b"]: c`}},
		"an owner of the same name": {"ConfigMap", `{metadata: {uid: a, ownerReferences: [{kind: Site, name: b, uid: c}]}}`, `{metadata: {uid: a, ownerReferences: [{kind: Site, name: b, uid: d}]}}`, false, []string{"changed", `~ metadata.ownerReferences[0]: Site c → Site d`}},
	} {
		t.Run(name, func(t *testing.T) {
			c := NewComparer(dsl.New("sites"), "ops").Compare(objectOf(t, tt.kind, tt.before), objectOf(t, tt.kind, tt.after), nil, tt.status)
			var got []string
			if c != nil {
				got = []string{string(c.Action)}
				if c.Effect != "" {
					got = append(got, c.Effect)
				}
				for _, f := range c.Fields {
					got = append(got, f.String())
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// objectOf returns the object of a text, or nil for none.
func objectOf(t *testing.T, kind, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	o := &unstructured.Unstructured{}
	if err := utilyaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	o.SetKind(kind)
	o.SetAPIVersion("v1")
	if kind == "Deployment" {
		o.SetAPIVersion("apps/v1")
	}
	o.SetName("one")
	return o
}
