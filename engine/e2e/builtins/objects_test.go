// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtins

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestObjectsAreCompletedAsByARealServer compares what two servers make of the objects of the table: their defaults,
// their first status and their generation.
func TestObjectsAreCompletedAsByARealServer(t *testing.T) {
	memory, real := inMemory(t), realServer(t)
	for _, object := range read[map[string]any](t, "objects.yaml") {
		o := &unstructured.Unstructured{Object: object}
		t.Run(fmt.Sprintf("%s %s", o.GetKind(), o.GetName()), func(t *testing.T) {
			want, err := real.create(t, object, metav1.FieldValidationStrict)
			if err != nil {
				t.Fatalf("creating the object on the real server: %v", err)
			}
			defer real.remove(t, want)
			got, err := memory.create(t, object, metav1.FieldValidationStrict)
			if err != nil {
				t.Fatalf("creating the object in memory: %v", err)
			}
			if diff := cmp.Diff(comparable(want, ""), comparable(got, "")); diff != "" {
				t.Errorf("the object (-real +in memory):\n%s", diff)
			}
		})
	}
}

// own are the fields that each server chooses, by path.
var own = map[string]bool{
	".status.lastPhaseTransitionTime": true,
	".metadata.uid":                   true, ".metadata.creationTimestamp": true, ".metadata.resourceVersion": true,
	".spec.clusterIP": true, ".spec.clusterIPs": true, ".spec.ports.nodePort": true,
	".spec.selector.matchLabels.batch.kubernetes.io/controller-uid":     true,
	".spec.template.metadata.labels.batch.kubernetes.io/controller-uid": true,
	".spec.template.metadata.labels.controller-uid":                     true,
	".metadata.labels.batch.kubernetes.io/controller-uid":               true,
	".metadata.labels.controller-uid":                                   true,
}

// later are the fields that are not compared: managed fields are in the table of another test, and the server in memory
// does not protect claims and volumes, since no controller of its own would end that.
var later = map[string]bool{".metadata.managedFields": true, ".metadata.finalizers": true}

// comparable returns a part of an object with the kind of each own value in place of the value.
func comparable(value any, path string) any {
	if own[path] {
		return fmt.Sprintf("a %T", value)
	}
	switch value := value.(type) {
	case *unstructured.Unstructured:
		return comparable(value.Object, path)
	case map[string]any:
		out := map[string]any{}
		for key, each := range value {
			if later[path+"."+key] {
				continue
			}
			out[key] = comparable(each, path+"."+key)
		}
		return out
	case []any:
		var out []any
		for _, each := range value {
			out = append(out, comparable(each, path))
		}
		return out
	}
	return value
}
