// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const mixed = `# a comment
---
apiVersion: v1
kind: Namespace
metadata: {name: one}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: foos.example.com
--- # another
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: bars.example.com}
`

func TestReadCRDs(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"a.yaml":    mixed,
		"b/c.yml":   "kind: CustomResourceDefinition\nmetadata: {name: bazes.example.com}",
		"b/d.json":  "{]",
		"other.txt": "kind: CustomResourceDefinition\nmetadata: {name: quxes.example.com}",
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		paths []string
		want  []string
	}{
		"nothing asked, nothing read":    {},
		"a folder's YAML files are read": {[]string{dir}, []string{"foos.example.com", "bars.example.com", "bazes.example.com"}},
		"a file is read whatever its name is": {
			[]string{filepath.Join(dir, "other.txt")}, []string{"quxes.example.com"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			crds, err := readCRDs(test.paths)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, crd := range crds {
				got = append(got, crd.name)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestReadCRDsErrors(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	if err := os.WriteFile(broken, []byte("kind: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{broken, filepath.Join(t.TempDir(), "missing")} {
		if _, err := readCRDs([]string{path}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error is %v", path, err)
		}
	}
}

func TestConditionTrue(t *testing.T) {
	tests := map[string]struct {
		object string
		want   bool
	}{
		"true":           {`{"status":{"conditions":[{"type":"A","status":"False"},{"type":"Ready","status":"True"}]}}`, true},
		"false":          {`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`, false},
		"not there":      {`{}`, false},
		"not even there": {``, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := conditionTrue([]byte(test.object), "Ready"); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
