// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
)

type tree = map[string]any

func TestDesired(t *testing.T) {
	given := tree{"apiVersion": "v1", "kind": "ConfigMap", "metadata": tree{"name": "c", "creationTimestamp": nil}, "data": tree{"n": "1"}, "status": tree{}}
	got, err := desiredOf(given, dsl.ChildSpec{})
	if err != nil {
		t.Fatal(err)
	}
	if ours, _ := owner().Owned(got); !ours || got.GetNamespace() != "ns" {
		t.Errorf("desired = %v", got.Object)
	}
	if _, found := got.Object["status"]; found {
		t.Error("an empty status would be applied")
	}
	if !strings.HasPrefix(got.GetAnnotations()["op.handwerk.dev/applied"], "handwerk:") {
		t.Errorf("annotations = %v", got.GetAnnotations())
	}
	if _, changed := given["metadata"].(tree)["namespace"]; changed {
		t.Error("what the author gave was changed")
	}
}

// TestACopyOfTheOwnersMarksIsNotApplied holds that marks that Go code has copied do not make the child another owner, and that no
// finalizer holds it for ever.
func TestACopyOfTheOwnersMarksIsNotApplied(t *testing.T) {
	const prefix = "op.handwerk.dev"
	got, err := desiredOf(tree{"apiVersion": "v1", "kind": "ConfigMap", "metadata": tree{
		"name": "c", "finalizers": []any{prefix + "/finalizer", "example.com/hold"},
		"annotations": tree{prefix + "/state": "x", prefix + "/children": "x", prefix + "/retry": "x", prefix + "/paused": "by the template", "note": "mine"},
	}}, dsl.ChildSpec{})
	if err != nil {
		t.Fatal(err)
	}
	notes := got.GetAnnotations()
	delete(notes, prefix+"/applied")
	if diff := cmp.Diff(map[string]string{prefix + "/paused": "by the template", "note": "mine"}, notes); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"example.com/hold"}, got.GetFinalizers()); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
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
		if _, err := desiredOf(given, dsl.ChildSpec{}); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestSecretValuesAreNotDigested(t *testing.T) {
	mark := func(password string) string {
		secret := tree{"apiVersion": "v1", "kind": "Secret", "metadata": tree{"name": "s"}, "stringData": tree{"password": password}}
		got, err := desiredOf(secret, dsl.ChildSpec{})
		if err != nil {
			t.Fatal(err)
		}
		return got.GetAnnotations()["op.handwerk.dev/applied"]
	}
	if mark("one") != mark("two") {
		t.Error("the mark distinguishes two passwords")
	}
}
