// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// pod is the spec of a Pod.
const pod = `{containers: [{name: a, image: "a:1", ports: [{containerPort: 80}], resources: {limits: {cpu: 1}}}]}`

// apart are objects of the kinds whose parts stand apart.
var apart = map[string]string{
	"CronJob":               `{metadata: {name: a}, spec: {schedule: "* * * * *", jobTemplate: {spec: {template: {metadata: {labels: {a: b}}, spec: ` + pod + `}}}}}`,
	"Deployment":            `{metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: ` + pod + `}}}`,
	"Node":                  `{metadata: {name: a}, spec: {podCIDR: 10.0.0.0/24}, status: {capacity: {cpu: 4}}}`,
	"PersistentVolumeClaim": `{metadata: {name: a}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`,
	"Pod":                   `{metadata: {name: a}, spec: ` + pod + `}`,
	"ReplicaSet":            `{metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: ` + pod + `}}}`,
	"StatefulSet":           `{metadata: {name: a}, spec: {serviceName: a, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: ` + pod + `}}}`,
}

// TestPartsThatStayAreNotDecoded decodes an object whose spec or status stays as it is stored. The result is the same as that of
// decoding the whole object.
func TestPartsThatStayAreNotDecoded(t *testing.T) {
	kinds := New()
	for kind := range scheme.Scheme.AllKnownTypes() {
		f, _ := kinds.Builtin(kind).(*form)
		if f == nil || !f.rule.apart {
			continue
		}
		t.Run(kind.Kind, func(t *testing.T) {
			if apart[kind.Kind] == "" {
				t.Fatal("there is no object of this kind in the table")
			}
			stored := decoded(t, f, kind, nil)
			for name, change := range map[string]func(o map[string]any){
				"nothing changes":       func(map[string]any) {},
				"the status changes":    func(o map[string]any) { o["status"] = map[string]any{} },
				"the spec changes":      func(o map[string]any) { delete(o["spec"].(map[string]any), "template") },
				"the metadata changes":  func(o map[string]any) { o["metadata"].(map[string]any)["labels"] = map[string]any{"c": "d"} },
				"the metadata is empty": func(o map[string]any) { o["metadata"] = map[string]any{"name": "a"} },
				"the status goes":       func(o map[string]any) { delete(o, "status") },
			} {
				got, want := runtime.DeepCopyJSON(stored), runtime.DeepCopyJSON(stored)
				change(got)
				change(want)
				whole := *f
				whole.rule.apart = false
				if _, err := f.Decode(got, stored); err != nil {
					t.Fatal(err)
				}
				if _, err := whole.Decode(want, stored); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-whole +apart):\n%s", name, diff)
				}
			}
		})
	}
}

// decoded returns the object of a kind in its form.
func decoded(t *testing.T, f *form, kind schema.GroupVersionKind, stored map[string]any) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(apart[kind.Kind]), &out); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Decode(out, stored); err != nil {
		t.Fatal(err)
	}
	if err := f.Begin(out); err != nil { // a stored object has what admission adds
		t.Fatal(err)
	}
	return out
}
