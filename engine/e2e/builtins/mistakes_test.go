// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtins

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// TestMistakesAreRefusedInTheWordsOfARealServer holds the words that package builtin's own test has against a real
// server.
func TestMistakesAreRefusedInTheWordsOfARealServer(t *testing.T) {
	real := realServer(t)
	for _, m := range read[mistake](t, "mistakes.yaml") {
		t.Run(m.Name, func(t *testing.T) {
			if diff := cmp.Diff(m.Want, real.refusal(t, m)); diff != "" {
				t.Errorf("the words of a real server (-in the table +real):\n%s", diff)
			}
		})
	}
}

// refusal returns why a server refuses a mistake.
func (s endpoint) refusal(t *testing.T, m mistake) string {
	t.Helper()
	if m.Create != nil {
		_, err := s.create(t, m.Create, metav1.FieldValidationStrict)
		return words(err)
	}
	given, err := s.create(t, m.Given, metav1.FieldValidationStrict)
	if err != nil {
		t.Fatalf("creating the given object: %v", err)
	}
	defer s.remove(t, given)
	data, err := json.Marshal(m.Patch)
	if err != nil {
		t.Fatalf("encoding the patch: %v", err)
	}
	_, err = s.reach(t, given).Patch(t.Context(), given.GetName(), types.MergePatchType, data, metav1.PatchOptions{})
	return words(err)
}

// words returns the text of an error, or that there is none.
func words(err error) string {
	if err == nil {
		return "accepted"
	}
	return err.Error()
}

// read reads a table of package builtin.
func read[T any](t *testing.T, name string) (out []T) {
	t.Helper()
	data, err := os.ReadFile("../../../sandbox/server/builtin/testdata/" + name)
	if err != nil {
		t.Fatalf("reading the table: %v", err)
	}
	if err := yaml.Unmarshal(data, &out); err != nil {
		t.Fatalf("reading the table: %v", err)
	}
	return out
}
