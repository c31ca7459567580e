// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers"
)

// TestAChildWithoutANameIsOneFault holds that a manifest right under apply, the first thing that people try, is one fault that says
// what is missing, and not one for each of its fields.
func TestAChildWithoutANameIsOneFault(t *testing.T) {
	const text = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: op}
resources:
- resource: foos.v1.example.com
  handlers:
  - id: web
    apply:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: a}
      data: {a: b}
`
	const want = "operator.yaml:10:7: resources[0].handlers[0].apply: want children by names of your choice, as in {web: {apiVersion: …, kind: …}}; found a child without such a name"
	_, err := config.Parse("operator.yaml", []byte(text), handlers.Standard())
	if err == nil {
		t.Fatal("there is no fault")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
