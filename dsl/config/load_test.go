// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/dsl/source"
)

const header = "apiVersion: handwerk.dev/v1alpha1\nkind: Operator\nmetadata: {name: demo}\n"

func watching(resource string) string {
	return header + "resources: [{resource: " + resource + ", handlers: [{id: a, causes: [create], call: demo.Run}]}]\n"
}

func TestLoad(t *testing.T) {
	other := strings.Replace(watching("bars"), "name: demo", "name: domo", 1)
	tests := map[string]struct {
		files map[string]string
		paths []string
		want  []string // the resources, in order
		fault string   // the faults
		// skipped are the documents that are no part of it
		skipped []string
	}{
		"one file, whatever its name": {
			files: map[string]string{"operator.conf": watching("foos")},
			paths: []string{"operator.conf"},
			want:  []string{"foos"},
		},
		"a directory, in the order of the names": {
			files: map[string]string{"b.yaml": watching("bars"), "c.yml": watching("cars"), "a.yaml": watching("foos")},
			paths: []string{"."},
			want:  []string{"foos", "bars", "cars"},
		},
		"files in the order given": {
			files: map[string]string{"b.yaml": watching("bars"), "a.yaml": watching("foos")},
			paths: []string{"b.yaml", "a.yaml"},
			want:  []string{"bars", "foos"},
		},
		"a file given twice is read once": {
			files: map[string]string{"a.yaml": watching("foos")},
			paths: []string{"a.yaml", ".", "./a.yaml"},
			want:  []string{"foos"},
		},
		"what is no YAML file, hidden or a directory is left out": {
			files: map[string]string{
				"a.yaml": watching("foos"), "README.md": "no", "..data/b.yaml": "no", ".c.yaml": "no", "d.yaml/e.yaml": "no",
			},
			paths: []string{"."},
			want:  []string{"foos"},
		},
		"a file without a document is left out": {
			files: map[string]string{"a.yaml": watching("foos"), "b.yaml": "# later\n"},
			paths: []string{"."},
			want:  []string{"foos"},
		},
		"a folder as init writes it: its CRD and its example are skipped": {
			files: map[string]string{
				"operator.yaml": watching("foos"), "crd.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: foos.example.com}\n",
				"example.yaml": "# an object\n---\napiVersion: example.com/v1\nkind: Foo\nspec: {a: &a 1, b: *a, a: 2}\n",
			},
			paths:   []string{"."},
			want:    []string{"foos"},
			skipped: []string{"crd.yaml:1:1: CustomResourceDefinition of apiextensions.k8s.io/v1", "example.yaml:3:1: Foo of example.com/v1"},
		},
		"documents of others beside it in its file": {
			files:   map[string]string{"a.yaml": "{apiVersion: v1, kind: ConfigMap}\n---\n" + watching("foos")},
			paths:   []string{"a.yaml"},
			want:    []string{"foos"},
			skipped: []string{"a.yaml:1:1: ConfigMap of v1"},
		},
		"documents of others alone": {
			files: map[string]string{"a.yaml": "{apiVersion: v1, kind: ConfigMap}\n"},
			paths: []string{"."},
			fault: "a.yaml:1:1: want an operator (apiVersion handwerk.dev/v1alpha1, kind Operator), found ConfigMap of v1",
		},
		"half of an operator with a group that is nearly ours": {
			files: map[string]string{"a.yaml": watching("foos"), "b.yaml": strings.Replace(watching("bars"), "handwerk.dev", "handwerk.dv", 1)},
			paths: []string{"."},
			fault: `b.yaml:1:13: apiVersion: unknown apiVersion "handwerk.dv/v1alpha1" (did you mean "handwerk.dev/v1alpha1"?)`,
		},
		"settings in a file of their own": {
			files: map[string]string{"a.yaml": header + "settings: {qps: 5}\n", "b.yaml": watching("foos")},
			paths: []string{"."},
			want:  []string{"foos"},
		},
		"no path": {
			fault: "configuration: no file was given",
		},
		"a file that is not there": {
			paths: []string{"a.yaml"},
			fault: "a.yaml: reading configuration: no such file or directory",
		},
		"a directory without YAML": {
			files: map[string]string{"d/README.md": "no"},
			paths: []string{"d"},
			fault: "d: reading configuration: the directory holds no *.yaml and no *.yml file",
		},
		"an empty file": {
			files: map[string]string{"a.yaml": ""},
			paths: []string{"a.yaml"},
			fault: "a.yaml:1:1: there is no operator in here (want a document of kind Operator)",
		},
		"one resource in two spellings": {
			files: map[string]string{"a.yaml": watching("pods"), "b.yaml": watching("pods.v1")},
			paths: []string{"."},
			fault: "b.yaml:4:24: resources[0].resource: pods.v1 has the same objects as pods: put the handlers of both under one (first at a.yaml:4:24)",
		},
		"one resource in two versions": {
			files: map[string]string{"a.yaml": watching("foos.v2.example.com"), "b.yaml": watching("foos.v1.example.com")},
			paths: []string{"."},
			fault: "b.yaml:4:24: resources[0].resource: foos.v1.example.com has the same objects as foos.v2.example.com: put the handlers of both under one (first at a.yaml:4:24)",
		},
		"all faults of all files, in order": {
			files: map[string]string{"a.yaml": watching("foos") + "x: 1\n", "b.yaml": watching("foos") + "scope: {}\n", "c.yaml": "a: [\n"},
			paths: []string{"c.yaml", "missing.yaml", "b.yaml", "a.yaml"},
			fault: "a.yaml:4:24: resources[0].resource: foos is declared twice: put the handlers of both under one (first at b.yaml:4:24)\n" +
				"a.yaml:5:1: x: unknown field (want one of apiVersion, kind, metadata, scope, settings, let, indexes, startup, cleanup, health, ready, admission, resources)\n" +
				"b.yaml:5:8: scope: must not be empty\n" +
				"c.yaml:2:1: invalid YAML: did not find expected node content\n" +
				"missing.yaml: reading configuration: no such file or directory",
		},
		"two operators": {
			files: map[string]string{"a.yaml": watching("foos"), "b.yaml": other},
			paths: []string{"."},
			fault: `b.yaml:3:18: metadata.name: "domo" is another operator than "demo" at a.yaml:3:18; load them apart`,
		},
		"no resources in any document": {
			files: map[string]string{"a.yaml": header, "b.yaml": header + "settings: {qps: 5}\n"},
			paths: []string{"."},
			fault: "a.yaml:1:1: resources: want at least one",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for name, text := range test.files {
				write(t, name, text)
			}
			op, err := config.Load(test.paths, registry(t))
			if got := message(err); got != test.fault {
				t.Fatalf("error:\n%s\nwant:\n%s", got, test.fault)
			}
			if diff := cmp.Diff(test.want, resources(op)); diff != "" {
				t.Errorf("resources (-want +got):\n%s", diff)
			}
			if op != nil && !slices.Equal(op.Skipped, test.skipped) {
				t.Errorf("skipped %q, want %q", op.Skipped, test.skipped)
			}
		})
	}
}

func TestAFileThatGoesAwayWhileTheDirectoryIsRead(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "a.yaml", watching("foos"))
	if err := os.Symlink("gone", "b.yaml"); err != nil {
		t.Fatal(err)
	}
	_, err := config.Load([]string{"."}, registry(t))
	if got, want := message(err), "b.yaml: reading configuration: no such file or directory"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	if _, ok := errors.AsType[source.Faults](err); !ok {
		return "not faults: " + err.Error()
	}
	return err.Error()
}

func resources(op *dsl.Operator) []string {
	var out []string
	if op == nil {
		return out
	}
	for _, r := range op.Resources() {
		out = append(out, r.Name.String())
	}
	return out
}

func TestTextThatIsNotReadable(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"not UTF-8": {
			"a: b\nc: \xff\n", "x.yaml:2:4: the text is not UTF-8",
		},
		"UTF-16": {
			"\xff\xfea\x00", "x.yaml:1:1: the text is not UTF-8",
		},
		"a control character": {
			"a: b\nü: \x00\n", "x.yaml:2:4: the character U+0000 must not be in YAML",
		},
		"a byte order mark within": {
			"a: \uFEFFb\n", "x.yaml:1:4: the character U+FEFF must not be in YAML",
		},
		"more than a configuration": {
			strings.Repeat("#", 1<<20) + "\n", "x.yaml: the file is larger than 1 MiB",
		},
		"a column counts characters": {
			watching("foos") + "\"ü\": {ä: 1, ä: 2}\nscope: {\"ü\": 1, namespaces: [ä]}\n",
			"x.yaml:5:1: [\"ü\"]: unknown field (want one of apiVersion, kind, metadata, scope, settings, let, indexes, startup, cleanup, health, ready, admission, resources)\n" +
				"x.yaml:6:9: scope[\"ü\"]: unknown field (want one of namespaces, namespaceSelector)\n" +
				"x.yaml:6:30: scope.namespaces[0]: want a namespace or a glob such as team-*: ",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse("x.yaml", []byte(test.text), registry(t))
			if got := message(err); !strings.HasPrefix(got, test.want) || test.want == "" {
				t.Errorf("error:\n%s\nwant:\n%s", got, test.want)
			}
		})
	}
}

// TestFilesThatAreNotRead holds that neither a pipe nor a device is opened, and that files without end, or too many large
// ones, do not fill the memory.
func TestFilesThatAreNotRead(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(dir, "large.yaml")
	if err := os.WriteFile(large, []byte(strings.Repeat("# comment\n", 1<<18)), 0o600); err != nil {
		t.Fatal(err)
	}
	many := filepath.Join(dir, "many")
	if err := os.Mkdir(many, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if err := os.WriteFile(filepath.Join(many, fmt.Sprintf("%02d.yaml", i)), []byte(strings.Repeat("# comment\n", 100_000)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct{ path, want string }{
		"a pipe":           {pipe, pipe + ": reading configuration: it is not a regular file"},
		"a device":         {"/dev/zero", "/dev/zero: reading configuration: it is not a regular file"},
		"a large file":     {large, large + ": the file is larger than 1 MiB"},
		"many large files": {many, many + "/16.yaml: reading configuration: the files of the configuration are larger than 16 MiB together"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := config.Load([]string{tt.path}, registry(t))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v, want %q in it", err, tt.want)
			}
		})
	}
}
