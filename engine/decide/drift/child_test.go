// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// child returns a ConfigMap in flow style, with entries of managedFields, each as manager and fields.
func child(t *testing.T, rest string, managers ...[2]string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("{apiVersion: v1, kind: ConfigMap, "+strings.TrimPrefix(rest, "{")), &u.Object); err != nil {
		t.Fatal(err)
	}
	u.SetManagedFields(managed(managers...))
	return u
}

func managed(managers ...[2]string) (out []metav1.ManagedFieldsEntry) {
	for _, m := range managers {
		out = append(out, metav1.ManagedFieldsEntry{Manager: m[0], APIVersion: "v1", FieldsV1: metav1.NewFieldsV1(m[1])})
	}
	return out
}

// person and ours are entries of somebody and of the operator for one field of the data.
func person(key string) [2]string {
	return [2]string{"kubectl-edit", `{"f:data":{"f:` + key + `":{}}}`}
}
func ours(key string) [2]string { return [2]string{"op", `{"f:data":{"f:` + key + `":{}}}`} }

// TestOf holds which differences of a child are changes by others, and by whom.
func TestOf(t *testing.T) {
	const desired = "{data: {a: '1', b: '1'}}"
	tests := map[string]struct {
		live    string
		managed []metav1.ManagedFieldsEntry
		more    Added
		same    bool
		want    Drift
	}{
		"nothing differs": {desired, managed(ours("a")), Added{}, true, Drift{}},
		"a field that somebody else manages": {
			"{data: {a: '2', b: '1'}}", managed(person("a")), Added{}, false, Drift{Fields: []string{"data.a"}, Managers: []string{"kubectl-edit"}},
		},
		"a field that the operator manages: the template has changed": {
			"{data: {a: '2', b: '1'}}", managed(ours("a"), person("b")), Added{}, true, Drift{},
		},
		"a field without a manager, and the template is the same: somebody has removed it": {
			"{data: {b: '1'}}", managed(ours("b")), Added{}, true, Drift{Fields: []string{"data.a"}},
		},
		"a field without a manager, and the template is another one: it is new": {
			"{data: {b: '1'}}", managed(ours("b")), Added{}, false, Drift{},
		},
		"managedFields are not known, and the template is the same":    {"{data: {a: '2', b: '1'}}", nil, Added{}, true, Drift{Fields: []string{"data.a"}}},
		"managedFields are not known, and the template is another one": {"{data: {a: '2', b: '1'}}", nil, Added{}, false, Drift{}},
		"fields that people have added": {
			desired, managed(ours("a")), Added{Paths: []string{"data.c"}, Managers: []string{"kubectl-patch"}}, true,
			Drift{Added: []string{"data.c"}, Managers: []string{"kubectl-patch"}},
		},
		"an added field below one that is replaced as a whole": {
			desired, managed(ours("a")), Added{Paths: []string{"data.c"}, Whole: []string{"data"}}, true, Drift{Fields: []string{"data"}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := Of(Question{
				Desired: child(t, desired), Live: child(t, tt.live), More: tt.more, Managed: tt.managed, Manager: "op", Same: tt.same,
			})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("drift (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTouched holds that a person's changes are found by the managedFields that a cache has.
func TestTouched(t *testing.T) {
	for name, tt := range map[string]struct {
		live     string
		managers [][2]string
		want     bool
	}{
		"a person manages the field that differs": {"{data: {a: '2'}}", [][2]string{person("a")}, true},
		"a person manages another field":          {"{data: {a: '2', b: '2'}}", [][2]string{person("b")}, false},
		"nothing differs":                         {"{data: {a: '1'}}", [][2]string{person("a")}, false},
		"the cache has no managedFields":          {"{data: {a: '2'}}", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			q := Question{Desired: child(t, "{data: {a: '1'}}"), Live: child(t, tt.live, tt.managers...)}
			if got := q.Touched(); got != tt.want {
				t.Errorf("touched %t, want %t", got, tt.want)
			}
		})
	}
}

// TestAdded holds which fields of people are to be removed.
func TestAdded(t *testing.T) {
	const more = "{metadata: {labels: {app: web, team: red}}, data: {a: '1', b: '2'}}"
	all := [2]string{"kubectl-edit", `{"f:data":{"f:a":{},"f:b":{}},"f:metadata":{"f:labels":{"f:team":{}}}}`}
	tests := map[string]struct {
		desired string
		manager [2]string
		strict  bool
		want    []string
	}{
		"entries of maps that the template has":      {"{metadata: {labels: {app: web}}, data: {a: '1'}}", all, false, []string{"data.b", "metadata.labels.team"}},
		"entries of maps that the template has not":  {"{metadata: {name: x}}", all, false, nil},
		"every field, strictly":                      {"{metadata: {name: x}}", all, true, []string{"data", "metadata.labels.team"}},
		"fields that the template has, too":          {more, all, true, nil},
		"an entry that does not count":               {"{data: {a: '1'}}", [2]string{"kube-controller-manager", all[1]}, true, nil},
		"labels of the operator make no map its own": {"{metadata: {labels: {op/owner: x}}, data: {a: '1'}}", all, false, []string{"data.b"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			how := Search{Own: []string{"op/owner"}, Strict: tt.strict}
			got := how.Added(child(t, tt.desired), child(t, more, tt.manager))
			if diff := cmp.Diff(tt.want, append(got.Whole, got.Paths...)); diff != "" {
				t.Errorf("added (-want +got):\n%s", diff)
			}
			if got.Empty() != (tt.want == nil) || len(got.Managers) > 0 != (tt.want != nil) {
				t.Errorf("empty %t, managers %v", got.Empty(), got.Managers)
			}
		})
	}
}

// TestUpdated holds which changes of a write come from the template.
func TestUpdated(t *testing.T) {
	tests := map[string]struct {
		desired, before, after string
		theirs                 Drift
		same                   bool
		want                   []string
	}{
		"nothing":                           {"{data: {a: '1'}}", "{data: {a: '1'}}", "{data: {a: '1'}}", Drift{}, false, nil},
		"a new value":                       {"{data: {a: '2'}}", "{data: {a: '1'}}", "{data: {a: '2'}}", Drift{}, false, []string{"data.a"}},
		"a value that somebody had changed": {"{data: {a: '1'}}", "{data: {a: '2'}}", "{data: {a: '1'}}", Drift{Fields: []string{"data.a"}}, true, nil},
		"a field that the template has not any more": {"{data: {a: '1'}}", "{data: {a: '1', b: '1'}}", "{data: {a: '1'}}", Drift{}, false, []string{"data.b"}},
		"a field that somebody had added":            {"{data: {a: '1'}}", "{data: {a: '1', b: '1'}}", "{data: {a: '1'}}", Drift{Added: []string{"data.b"}}, false, nil},
		"labels, one by one": {
			"{metadata: {labels: {app: web}}}", "{metadata: {name: x}}", "{metadata: {labels: {app: web, op/owner: x}}}", Drift{}, false, []string{"metadata.labels.app"},
		},
		"the status does not count": {"{data: {a: '1'}}", "{data: {a: '1'}, status: {x: 1}}", "{data: {a: '1'}, status: {x: 2}}", Drift{}, false, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := Write{
				Desired: child(t, tt.desired), Before: child(t, tt.before), After: child(t, tt.after), Manager: "op", Same: tt.same,
				Own: []string{"op/owner"},
			}
			if diff := cmp.Diff(tt.want, w.Updated(tt.theirs)); diff != "" {
				t.Errorf("updated (-want +got):\n%s", diff)
			}
		})
	}
}
