// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl/source"
)

func TestFilesStandBesideAConfiguration(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"operator.yaml", "crd.yaml", "operator_test.yaml", "README.md"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	operator, crd := filepath.Join(dir, "operator.yaml"), filepath.Join(dir, "crd.yaml")
	tests := map[string]struct{ paths, want []string }{
		"of a file, which comes first":      {[]string{operator}, []string{operator, crd}},
		"in a directory":                    {[]string{dir}, []string{crd, operator}},
		"not of a path that does not exist": {[]string{filepath.Join(dir, "none", "operator.yaml")}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, source.Beside(test.paths)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestObjectsAreReadFromADocumentEach(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string
		err  bool
	}{
		"several":                             {"---\n# first\napiVersion: v1\nkind: A\nmetadata: {name: a}\n---\napiVersion: v1\nkind: B\nmetadata: {name: b}\n", []string{"A a", "B b"}, false},
		"one in braces":                       {"{apiVersion: v1, kind: A, metadata: {name: a}}\n", []string{"A a"}, false},
		"none of an operator":                 {"apiVersion: handwerk.dev/v1alpha1\nkind: Operator\nmetadata: {name: a}\n", nil, false},
		"none of documents that are no maps":  {"- a\n---\ntext\n---\n\n---\na: b\n", nil, false},
		"none without a version":              {"kind: A\nmetadata: {name: a}\n", nil, false},
		"those before a document with faults": {"apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\na: [\n", []string{"A a"}, true},
		"none of a text in a block":           {"apiVersion: v1\nkind: A\nmetadata: {name: a}\ndata:\n  x: |\n    apiVersion: v1\n    ---\n    kind: B\n", []string{"A a"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "objects.yaml")
			if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			objects, err := source.Objects(file)
			if (err != nil) != test.err {
				t.Errorf("error %v", err)
			}
			var got []string
			for _, o := range objects {
				got = append(got, o.GetKind()+" "+o.GetName())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestFilesOfPartsAreFoundInAConfiguration(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	operator := write("operator.yaml", "handlers:\n  - use: {file: parts/a.yaml}\n  - {use: {file: ../up.yaml}}\n---\nuse: {file: missing.yaml}\n---\nfile: no.yaml\nuse: no.yaml\n---\n[\n")
	a := write("parts/a.yaml", "steps: [{use: {file: parts/b.yaml}}, {use: {file: parts/a.yaml}}, {use: {file: operator.yaml}}]\n")
	b := write("parts/b.yaml", "use: {file: parts/a.yaml}\n")
	want := []string{a, b, filepath.Join(dir, "missing.yaml")}
	if diff := cmp.Diff(want, source.Parts([]string{operator})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
