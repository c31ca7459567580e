// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

func compiler(t testing.TB) *expr.Compiler {
	t.Helper()
	c, err := expr.New()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func subject() *dsl.Subject {
	return &dsl.Subject{
		Object: &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"replicas": int64(3), "ports": []any{int64(80)}},
		}},
		Old: map[string]any{"spec": map[string]any{"replicas": int64(1)}}, Cause: dsl.Update,
	}
}

// faults writes the faults of a configuration as "path line:column: message".
func faults(t *testing.T, err error) (out []string) {
	t.Helper()
	var all []error
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	} else if err != nil {
		all = []error{err}
	}
	for _, err := range all {
		fault, ok := errors.AsType[*shape.Misfit](err)
		if !ok {
			t.Fatalf("%v is no shape.Misfit", err)
		}
		out = append(out, fmt.Sprintf("%s %d:%d: %s", strings.Join(fault.Path, "."), fault.Line, fault.Column, fault.Message))
	}
	return out
}

// deployment is a template like those that operators have.
const deployment = `{
  "apiVersion": "apps/v1", "kind": "Deployment",
  "metadata": {"name": "${self.metadata.name}", "labels": {"app": "web", "app.kubernetes.io/instance": "${self.metadata.name}"}},
  "spec": {
    "replicas": "${self.?spec.?replicas.orValue(1)}",
    "selector": {"matchLabels": {"app": "web"}},
    "template": {
      "metadata": {"labels": {"app": "web"}, "annotations": {"example.com/config": "${hash(self.spec.ports)}"}},
      "spec": {"containers": [{
        "name": "web", "image": "registry.example.com/web:${self.spec.flag}", "args": ["--verbose", "--limit=10"],
        "ports": "${self.spec.ports.map(p, {'containerPort': p})}",
        "resources": {"limits": {"memory": "100Mi", "cpu": "1"}}
      }]}
    }
  }
}`

func tree(t testing.TB, text string) any {
	t.Helper()
	var out any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}
