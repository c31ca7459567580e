// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/sandbox/cases"
)

// written has an operator with comments, a list at the margin, and a section after it.
const written = `# Ours.
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: shop}
resources:
# The shops.
- resource: shops.v1.example.com # no schema: the CRD is another team's
  handlers:
  - id: hello
    event: {reason: Hello, message: "Hello."} # stays

# How it runs.
settings:
  history: 1Mi
`

// TestInitAddsAResource holds that nothing else of the file changes, and that the operator with both resources works.
func TestInitAddsAResource(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	b := beginner(t)
	putFile(t, "shop/operator.yaml", written)
	got := said(t, b, "init shop --add crons.v1.example.com --child CronJob,ConfigMap")
	for _, file := range []string{"operator.yaml", "example-crons.yaml", "crons_test.yaml"} {
		data, err := os.ReadFile(filepath.Join("shop", file))
		if err != nil {
			t.Fatalf("%v\n%s", err, got)
		}
		got += fmt.Sprintf("-- %s --\n%s", file, data)
	}
	cases.Run(t, "shop", handlers.Standard())
	t.Chdir(here)
	golden(t, "init-add.golden", got)
}

// TestInitAddsToItsOwnOperator holds that crd.yaml follows, unless somebody has changed it.
func TestInitAddsToItsOwnOperator(t *testing.T) {
	for name, edit := range map[string]string{"it is as operator crd prints it": "", "somebody has changed it": "# mine\n"} {
		t.Run(name, func(t *testing.T) {
			b := beginner(t)
			said(t, b, "init webapp --resource webapps.v1.example.com")
			crds := filepath.Join("webapp", "crd.yaml")
			text, err := os.ReadFile(crds)
			if err != nil {
				t.Fatal(err)
			}
			putFile(t, crds, edit+string(text))
			t.Chdir("webapp")
			said(t, b, "init --add crons.v1.example.com --child CronJob")
			said(t, b, "init --add books.v1.example.com --child ConfigMap --machine")
			cases.Run(t, ".", handlers.Standard())
			now, err := os.ReadFile("crd.yaml")
			if err != nil {
				t.Fatal(err)
			}
			if edit != "" {
				if diff := cmp.Diff(edit+string(text), string(now)); diff != "" {
					t.Errorf("crd.yaml (-edited +now):\n%s", diff)
				}
				return
			}
			b.out.text.Reset()
			if code := b.execute(t.Context(), []string{"crd", "--config", "operator.yaml"}); code != exitOK {
				t.Fatal(b.err.String())
			}
			if diff := cmp.Diff(b.out.String(), string(now)); diff != "" {
				t.Errorf("crd.yaml (-operator crd +now):\n%s", diff)
			}
		})
	}
}

func TestInitDoesNotAdd(t *testing.T) {
	for name, test := range map[string]struct{ operator, args, want string }{
		"a resource that is there": {written, "--add shops.v1.example.com", "shop/operator.yaml has it already"},
		"to a list in brackets": {
			strings.ReplaceAll(written[:strings.Index(written, "resources:")], "# Ours.\n", "") + "resources: [{resource: shops.v1.example.com, handlers: [{id: a, log: {message: hello}}]}]\n",
			"--add crons.v1.example.com", "resources is written in brackets",
		},
		"to an operator with faults": {strings.Replace(written, "event:", "evnt:", 1), "--add crons.v1.example.com", "shop/operator.yaml:10:"},
		"to nothing":                 {"", "--add crons.v1.example.com", "reading the operator"},
		"a resource of the core":     {written, "--add pods", "has no version, or no group of its own"},
		"beside another resource":    {written, "--add crons.v1.example.com --resource pods.v1", "--add is for an operator in YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			b := beginner(t)
			if test.operator != "" {
				putFile(t, "shop/operator.yaml", test.operator)
			}
			code := b.execute(t.Context(), strings.Fields("init shop "+test.args))
			if code == exitOK || !strings.Contains(b.err.String(), test.want) {
				t.Errorf("exit code %d, want %q in %s", code, test.want, b.err.String())
			}
			files, _ := filepath.Glob("shop/*")
			if data, _ := os.ReadFile("shop/operator.yaml"); string(data) != test.operator || len(files) > 1 {
				t.Errorf("it changed the operator: %v\n%s", files, data)
			}
		})
	}
}

func putFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
