// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package child

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
)

// begun is when the records of these tests were begun.
func begun() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func configMapAt(namespace, name string) Place {
	return Place{schema.GroupKind{Kind: "ConfigMap"}, namespace, name}
}

// at are places of which it is not told what is there.
func at(places ...Place) map[Place]string {
	out := map[Place]string{}
	for _, place := range places {
		out[place] = untold
	}
	return out
}

func TestRecord(t *testing.T) {
	deployment := Place{schema.GroupKind{Group: "apps", Kind: "Deployment"}, "b", "d"}
	many := make([]Place, 500)
	for i := range many {
		many[i] = configMapAt(fmt.Sprint("tenant-", i), "settings")
	}
	tests := map[string]struct {
		record *Record
		text   string
	}{
		"without a child": {
			(*Record)(nil).With(begun(), nil),
			`{"handwerk":1,"uid":"u","since":"2026-01-02T03:04:05Z"}`,
		},
		"children are sorted": {
			(*Record)(nil).With(begun(), at(configMapAt("b", "x"), deployment, Place{schema.GroupKind{Kind: "Node"}, "", "n"}, configMapAt("a", "x"))),
			`{"handwerk":1,"uid":"u","since":"2026-01-02T03:04:05Z","children":["/ConfigMap/a/x","/ConfigMap/b/x","/Node//n","apps/Deployment/b/d"]}`,
		},
		"one that has begun stays as old as it is": {
			(*Record)(nil).With(begun(), at(deployment)).With(begun().Add(time.Hour), at(configMapAt("a", "x"))).Without(deployment),
			`{"handwerk":1,"uid":"u","since":"2026-01-02T03:04:05Z","children":["/ConfigMap/a/x"]}`,
		},
		"what is there is told": {
			(*Record)(nil).With(begun(), at(deployment)).With(begun(), map[Place]string{deployment: "h/n", configMapAt("a", "x"): ""}),
			`{"handwerk":1,"uid":"u","since":"2026-01-02T03:04:05Z","children":["/ConfigMap/a/x ","apps/Deployment/b/d h/n"]}`,
		},
		"many are packed": {(*Record)(nil).With(begun(), at(many...)), ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text, err := tt.record.Encode("u")
			if err != nil || tt.text != "" && text != tt.text || !strings.HasPrefix(text, bookkeeping.StateMark) || len(text) > 4000 {
				t.Errorf("%v: %s", err, text)
			}
			got, err := ParseRecord(text, "u")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.record.Places(), got.Places()); diff != "" || !got.since.Equal(begun()) {
				t.Errorf("since %v, places (-written +read):\n%s", got.since, diff)
			}
			if void, err := ParseRecord(text, "v"); void != nil || err != nil {
				t.Errorf("another object's is read as %v, %v", void, err)
			}
		})
	}
	for _, text := range []string{"x", `{"handwerk":2,"uid":"u"}`, `{"handwerk":1,"uid":"u","children":["x"]}`, `{"handwerk":1,"uid":"u","packed":"x"}`} {
		if got, err := ParseRecord(text, "u"); err == nil {
			t.Errorf("%s is read as %v", text, got)
		}
	}
}

// TestALabelProvesNothing holds for what a label counts, with a record and without one.
func TestALabelProvesNothing(t *testing.T) {
	labelled := func(namespace string, made time.Time) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: tree{"kind": "ConfigMap", "apiVersion": "v1"}}
		u.SetName("c")
		u.SetNamespace(namespace)
		u.SetLabels(map[string]string{keys().Label: "u-1"})
		u.SetAnnotations(map[string]string{keys().Owner: owner().Name().String(), keys().Applied: bookkeeping.AppliedMark + "x"})
		u.SetCreationTimestamp(metav1.NewTime(made))
		return u
	}
	refers := func(namespace string) *unstructured.Unstructured {
		u, yes := labelled(namespace, begun()), true
		u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Foo", Name: "f", UID: "u-1", Controller: &yes}})
		return u
	}
	record := (*Record)(nil).With(begun(), at(configMapAt("there", "c")))
	anywhere := owner()
	anywhere.Namespaced, anywhere.Object = false, anywhere.Object.DeepCopy()
	anywhere.Object.SetNamespace("")
	space := anywhere
	space.Object = &unstructured.Unstructured{Object: tree{"apiVersion": "v1", "kind": "Namespace", "metadata": tree{"name": "there", "uid": "u-1"}}}
	tests := map[string]struct {
		owner     Owner
		record    *Record
		closed    bool
		live      *unstructured.Unstructured
		has, ours bool
	}{
		"what the record lists":                                {owner(), record, true, labelled("there", begun().Add(time.Hour)), true, true},
		"another place":                                        {owner(), record, true, labelled("here", begun().Add(time.Hour)), false, false},
		"made before the record, where it is wanted":           {owner(), record, true, labelled("here", begun().Add(-time.Second)), false, true},
		"made in its first second":                             {owner(), record, false, labelled("here", begun()), false, true},
		"made in its first second, when all have been entered": {owner(), record, true, labelled("here", begun()), false, false},
		"no record yet, where it is wanted":                    {owner(), nil, false, labelled("here", begun()), false, true},
		"a reference in the owner's namespace":                 {owner(), nil, false, refers("ns"), true, true},
		"a reference across namespaces":                        {owner(), record, false, refers("there"), false, false},
		"a reference to an owner that is in no namespace":      {anywhere, record, true, refers("here"), false, false},
		"the same, and the record lists it":                    {anywhere, record, true, refers("there"), true, true},
		"the same, made before the record, where it is wanted": {anywhere, nil, false, refers("here"), false, true},
		"a reference from what is in no namespace either":      {anywhere, record, true, refers(""), true, true},
		"a reference to the namespace that it is in":           {space, nil, false, refers("there"), true, true},
		"a reference to another namespace":                     {space, record, true, refers("here"), false, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.owner.Record, tt.owner.Closed = tt.record, tt.closed
			ours, by := tt.owner.owned(tt.live)
			if tt.owner.Has(tt.live) != tt.has || ours != tt.ours || !ours && by == "" {
				t.Errorf("has %v, ours %v, by %q", tt.owner.Has(tt.live), ours, by)
			}
		})
	}
}
