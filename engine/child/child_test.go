// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package child

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type tree = map[string]any

func TestCovers(t *testing.T) {
	named := func(name string, more ...any) tree {
		out := tree{"name": name}
		for i := 0; i < len(more); i += 2 {
			out[more[i].(string)] = more[i+1]
		}
		return out
	}
	tests := map[string]struct {
		desired, live any
		want          bool
	}{
		"defaults of the server are no difference":            {tree{"a": "1"}, tree{"a": "1", "b": "2"}, true},
		"a changed value is":                                  {tree{"a": "1"}, tree{"a": "2"}, false},
		"a missing value is":                                  {tree{"a": "1"}, tree{}, false},
		"an empty map may be left out":                        {tree{"a": tree{}}, tree{}, true},
		"null is missing":                                     {tree{"a": nil}, tree{}, true},
		"entries in order may have defaults":                  {tree{"l": []any{tree{"port": int64(80)}}}, tree{"l": []any{tree{"port": int64(80), "protocol": "TCP"}}}, true},
		"an entry added by others is no difference":           {tree{"l": []any{named("a")}}, tree{"l": []any{named("sidecar"), named("a", "image", "i")}}, true},
		"a named entry with another value is":                 {tree{"l": []any{named("a", "image", "i")}}, tree{"l": []any{named("sidecar"), named("a", "image", "j")}}, false},
		"a named entry that is gone is":                       {tree{"l": []any{named("a")}}, tree{"l": []any{named("b")}}, false},
		"named entries in another order are no difference":    {tree{"l": []any{named("a"), named("b")}}, tree{"l": []any{named("b"), named("a")}}, true},
		"a shorter list is":                                   {tree{"l": []any{"a", "b"}}, tree{"l": []any{"a"}}, false},
		"scalars in a set that others added to are found":     {tree{"l": []any{"a"}}, tree{"l": []any{"b", "a"}}, true},
		"a float and an integer of one value are the same":    {tree{"n": 3.0}, tree{"n": int64(3)}, true},
		"a quantity may be written otherwise":                 {tree{"limits": tree{"cpu": "1000m", "memory": "1Gi"}}, tree{"limits": tree{"cpu": "1", "memory": "1Gi"}}, true},
		"a quantity of another value is a difference":         {tree{"limits": tree{"cpu": "1000m"}}, tree{"limits": tree{"cpu": "2"}}, false},
		"text that looks like a quantity is not one":          {tree{"value": "1000m"}, tree{"value": "1"}, false},
		"a number where text was is a difference":             {tree{"a": "1"}, tree{"a": int64(1)}, false},
		"a map where a list was is a difference":              {tree{"a": []any{"1"}}, tree{"a": tree{"b": "1"}}, false},
		"a list where a map was is a difference, empty or no": {tree{"a": tree{}}, tree{"a": []any{}}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := covers(tt.desired, tt.live, false); got != tt.want {
				t.Errorf("covers() = %v, want %v", got, tt.want)
			}
		})
	}
}

func owner() Owner {
	o := &unstructured.Unstructured{Object: tree{
		"apiVersion": "example.com/v1", "kind": "Foo",
		"metadata": tree{"name": "f", "namespace": "ns", "uid": "u-1"},
	}}
	return Owner{Object: o, Namespaced: true}
}

func TestDesired(t *testing.T) {
	given := tree{"apiVersion": "v1", "kind": "ConfigMap", "metadata": tree{"name": "c", "creationTimestamp": nil}, "data": tree{"n": "1"}, "status": tree{}}
	got, err := owner().Desired(given, true, "foo.handwerk.dev/applied")
	if err != nil {
		t.Fatal(err)
	}
	if ours, _ := owner().owned(got); !ours || got.GetNamespace() != "ns" {
		t.Errorf("desired = %v", got.Object)
	}
	if _, found := got.Object["status"]; found {
		t.Error("an empty status would be applied")
	}
	if !strings.HasPrefix(got.GetAnnotations()["foo.handwerk.dev/applied"], "handwerk:") {
		t.Errorf("annotations = %v", got.GetAnnotations())
	}
	if _, changed := given["metadata"].(tree)["namespace"]; changed {
		t.Error("what the author gave was changed")
	}
}

func TestDesiredRefuses(t *testing.T) {
	meta := tree{"name": "c"}
	for name, given := range map[string]any{
		"what is not an object":    "text",
		"an object without kind":   tree{"apiVersion": "v1", "metadata": meta},
		"an object without name":   tree{"apiVersion": "v1", "kind": "ConfigMap"},
		"a child in another place": tree{"apiVersion": "v1", "kind": "ConfigMap", "metadata": tree{"name": "c", "namespace": "other"}},
		"what JSON cannot hold":    tree{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": func() {}},
	} {
		if _, err := owner().Desired(given, true, "k"); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestSecretValuesAreNotDigested(t *testing.T) {
	mark := func(password string) string {
		secret := tree{"apiVersion": "v1", "kind": "Secret", "metadata": tree{"name": "s"}, "stringData": tree{"password": password}}
		got, err := owner().Desired(secret, true, "k")
		if err != nil {
			t.Fatal(err)
		}
		return got.GetAnnotations()["k"]
	}
	if mark("one") != mark("two") {
		t.Error("the mark tells one password from another")
	}
}
