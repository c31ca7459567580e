// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/sandbox/cases"
)

// widgets is a CRD as kubectl gets it. Its schema has most features of schemas.
const widgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.example.org
  uid: 00000000-0000-4000-8000-000000000000
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}", example.org/kept: "true"}
spec:
  group: example.org
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  scope: Cluster
  versions:
    - {name: v1alpha1, served: false, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          required: [spec]
          properties:
            spec:
              type: object
              required: [size, color, host, since, most, tags, more, ratio, defaulted, enabled]
              properties:
                size: {type: integer, minimum: 3, maximum: 2147483647}
                color: {type: string, enum: [red, blue]}
                host: {type: string, pattern: '^[a-z]+\.[a-z]+$', maxLength: 20}
                since: {type: string, format: date-time}
                most: {x-kubernetes-int-or-string: true}
                tags: {type: array, minItems: 2, items: {type: string, minLength: 9}}
                more: {type: object, required: [inner], properties: {inner: {type: string}, other: {type: string}}}
                ratio: {type: number, maximum: 0.5, exclusiveMaximum: true, multipleOf: 0.25}
                defaulted: {type: string, default: here, pattern: ^here$}
                enabled: {type: boolean}
                optional: {type: string}
            status: {type: object, required: [phase], properties: {phase: {type: string}}}
status: {storedVersions: [v1]}
`

// TestInitWritesAnOperatorForAnExistingKind holds what init --existing writes, and that its case passes.
func TestInitWritesAnOperatorForAnExistingKind(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	b := beginner(t)
	if err := os.WriteFile("widgets.yaml", []byte(widgets), 0o600); err != nil {
		t.Fatal(err)
	}
	got := said(t, b, "init watcher --existing widgets.yaml")
	for _, file := range []string{"operator.yaml", "crd.yaml", "example.yaml", "operator_test.yaml", "AGENTS.md"} {
		text, err := os.ReadFile(filepath.Join("watcher", file))
		if err != nil {
			t.Fatalf("%v\n%s", err, got)
		}
		got += fmt.Sprintf("-- %s --\n%s", file, text)
	}
	if strings.Contains(got, "install-crds") {
		t.Error("it tells to install the CRD of somebody else")
	}
	cases.Run(t, "watcher", handlers.Standard())
	t.Chdir(here)
	golden(t, "init-existing.golden", got)
}

// TestExistingKindsOfOthersHaveExamples holds that the operators which init writes for the CRDs of samples pass their own cases: the
// API server of the cases validates the examples.
func TestExistingKindsOfOthersHaveExamples(t *testing.T) {
	files, err := filepath.Glob("../samples/*/crd.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("found %d CRDs (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			b := beginner(t)
			if err := os.WriteFile("all.yaml", text, 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{"init", "--existing=all.yaml", "--dir=out"}
			if b.execute(t.Context(), args); strings.Contains(b.err.String(), "choose by --kind one of ") {
				_, kinds, _ := strings.Cut(strings.TrimSpace(b.err.String()), "--kind one of ")
				first, _, _ := strings.Cut(kinds, ",")
				b.err.text.Reset()
				b.execute(t.Context(), append(args, "--kind="+first))
			}
			if _, err := config.Load([]string{"out"}, handlers.Standard()); err != nil {
				t.Fatalf("%v\n%s", err, b.err.String())
			}
			if strings.Contains(b.err.String(), "note:") {
				t.Fatalf("the example lacks a value: %s", b.err.String())
			}
			cases.Run(t, "out", handlers.Standard())
		})
	}
}

func TestInitRefusesWhatIsNoExistingKind(t *testing.T) {
	const unserved = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b.c}\nspec: {versions: [{name: v1, served: false}]}\n"
	tests := map[string]struct{ file, args, want string }{
		"a name in the cluster": {"", "--existing widgets.example.org", "for a CRD of the cluster: kubectl get crd widgets.example.org -o yaml > crd.yaml"},
		"CRDs in a list of kubectl": {
			"apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(widgets), "\n", "\n  ") + "\n- " + strings.ReplaceAll(strings.TrimSpace(strings.ReplaceAll(widgets, "idget", "adget")), "\n", "\n  ") + "\n",
			"--existing file.yaml", "choose by --kind one of Widget, Wadget",
		},
		"a file without a CRD":         {"kind: ConfigMap\n", "--existing file.yaml", "file.yaml has no CustomResourceDefinition"},
		"another kind":                 {widgets, "--existing file.yaml --kind Gadget", "file.yaml has no CRD of kind Gadget; it has those of Widget"},
		"several kinds":                {widgets + "---\n" + strings.ReplaceAll(widgets, "idget", "adget"), "--existing file.yaml", "choose by --kind one of Widget, Wadget"},
		"a CRD that is not served":     {unserved, "--existing file.yaml", "CRD a.b.c has no version that is served"},
		"flags of another beginning":   {widgets, "--existing file.yaml --child Deployment", "--existing goes with --kind, --dir and --force alone"},
		"a text that cannot be parsed": {"a: [", "--existing file.yaml", "reading file.yaml: "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := beginner(t)
			if err := os.WriteFile("file.yaml", []byte(tt.file), 0o600); err != nil {
				t.Fatal(err)
			}
			if code := b.execute(t.Context(), strings.Fields("init "+tt.args)); code == exitOK || !strings.Contains(b.err.String(), tt.want) {
				t.Errorf("exit code %d, want %q in %s", code, tt.want, b.err.String())
			}
			if files, _ := filepath.Glob("*/*"); len(files) > 0 {
				t.Errorf("files were written: %v", files)
			}
		})
	}
}

func TestNumbersOfExamples(t *testing.T) {
	tests := map[string]struct {
		schema string
		want   any
	}{
		"without bounds":               {`{"type":"integer"}`, int64(1)},
		"a minimum":                    {`{"type":"integer","minimum":3}`, int64(3)},
		"a minimum that is excluded":   {`{"type":"integer","minimum":3,"exclusiveMinimum":true}`, int64(4)},
		"a maximum":                    {`{"type":"integer","maximum":0}`, int64(0)},
		"multiples":                    {`{"type":"integer","minimum":11,"multipleOf":5}`, int64(15)},
		"a fraction below a maximum":   {`{"type":"number","maximum":0.5,"exclusiveMaximum":true,"multipleOf":0.25}`, 0.25},
		"a maximum that is a fraction": {`{"type":"integer","maximum":0.5}`, int64(0)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var of apiextensions.JSONSchemaProps
			if err := json.Unmarshal([]byte(tt.schema), &of); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, number(&of)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
