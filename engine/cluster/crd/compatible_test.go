// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

func tree(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestACRDIsChangedOnlyWhereNothingIsLost(t *testing.T) {
	const live = `{spec: {scope: Namespaced, names: {kind: Foo}, versions: [{name: v1, served: true}, {name: v1beta1, served: true}, {name: v1alpha1, served: false}]},
		status: {storedVersions: [v1]}}`
	const same = `{spec: {scope: Namespaced, names: {kind: Foo}, versions: [{name: v1, served: true}, {name: v1beta1, served: true}]}}`
	tests := map[string]struct{ live, desired, want string }{
		"versions that are not served may go":  {live, same, ""},
		"a version may come":                   {live, strings.Replace(same, "versions: [", "versions: [{name: v2, served: true}, ", 1), ""},
		"not while it is being deleted":        {strings.Replace(live, "{spec", `{metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}, spec`, 1), same, "it is being deleted, with all its objects"},
		"not to another kind":                  {live, strings.Replace(same, "Foo", "Bar", 1), "its kind is Foo on the cluster and Bar in the configuration, which cannot be changed"},
		"not to another scope":                 {live, strings.Replace(same, "Namespaced", "Cluster", 1), "its scope is Namespaced on the cluster and Cluster in the configuration, which cannot be changed"},
		"not without a version that is stored": {strings.Replace(live, "[v1]", "[v1, v1alpha1]", 1), same, "objects may be stored as v1alpha1, a version that the configuration does not have"},
		"not without a version that is served": {live, strings.Replace(same, ", {name: v1beta1, served: true}", "", 1), "version v1beta1 is served, and the configuration does not have it"},
		"a version may be served no longer":    {live, strings.Replace(same, "v1beta1, served: true", "v1beta1, served: false", 1), ""},
		"not to what is no CRD":                {live, `{spec: {versions: v1}}`, "reading CRD: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := compatible(&unstructured.Unstructured{Object: tree(t, test.live)}, &unstructured.Unstructured{Object: tree(t, test.desired)})
			switch {
			case test.want == "" && err != nil, test.want != "" && (err == nil || !strings.HasPrefix(err.Error(), test.want)):
				t.Errorf("error is %v, want %q", err, test.want)
			}
		})
	}
}

func TestACRDIsAsItShouldBe(t *testing.T) {
	tests := map[string]struct {
		desired, live string
		want          bool
	}{
		"with what others have added to maps": {`{a: {b: 1}}`, `{a: {b: 1, c: 2}, d: 3}`, true},
		"but not to lists":                    {`{a: [1]}`, `{a: [1, 2]}`, false},
		"in the order of lists":               {`{a: [1, 2]}`, `{a: [2, 1]}`, false},
		"with what is added within lists":     {`{a: [{b: 1}]}`, `{a: [{b: 1, c: 2}]}`, true},
		"with every value":                    {`{a: 1}`, `{a: 2}`, false},
		"with every key":                      {`{a: 1, b: 2}`, `{a: 1}`, false},
		"with keys that have no value":        {`{a: null}`, `{}`, false},
		"with maps where maps should be":      {`{a: {}}`, `{a: 1}`, false},
		"with lists where lists should be":    {`{a: []}`, `{a: {}}`, false},
		"with lists that are empty":           {`{a: []}`, `{a: []}`, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := within(tree(t, test.desired), tree(t, test.live)); got != test.want {
				t.Errorf("%s within %s is %t", test.desired, test.live, got)
			}
		})
	}
}
