// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// mistake is an object that is refused, or a change of one.
type mistake struct {
	Name   string
	Given  map[string]any
	Create map[string]any
	Patch  map[string]any
	Want   string
}

// TestMistakesAreRefused holds each mistake of the table, and the words of a real server for it.
func TestMistakesAreRefused(t *testing.T) {
	data, err := os.ReadFile("testdata/mistakes.yaml")
	if err != nil {
		t.Fatalf("reading the table: %v", err)
	}
	var mistakes []mistake
	if err := yaml.UnmarshalStrict(data, &mistakes); err != nil {
		t.Fatalf("reading the table: %v", err)
	}
	for _, m := range mistakes {
		t.Run(m.Name, func(t *testing.T) {
			err := newServer(t).refusal(t, m)
			if err == nil {
				t.Fatal("the object is accepted")
			}
			if diff := cmp.Diff(m.Want, err.Error()); diff != "" {
				t.Errorf("the answer (-want +got):\n%s", diff)
			}
		})
	}
}

// refusal returns why the server refuses a mistake.
func (s endpoint) refusal(t *testing.T, m mistake) error {
	t.Helper()
	if m.Create != nil {
		o := &unstructured.Unstructured{Object: m.Create}
		_, err := s.reach(t, o).Create(t.Context(), o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		return err
	}
	given := s.create(t, m.Given)
	data, err := json.Marshal(m.Patch)
	if err != nil {
		t.Fatalf("encoding the patch: %v", err)
	}
	_, err = s.reach(t, given).Patch(t.Context(), given.GetName(), types.MergePatchType, data, metav1.PatchOptions{})
	return err
}
