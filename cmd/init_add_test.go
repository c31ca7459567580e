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
			if note := strings.Contains(b.err.String(), "note: ./crd.yaml stays"); note != (edit != "") {
				t.Errorf("what it says of crd.yaml: %q", b.err.String())
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

// TestInitAddsBesideTheCRDsOfOthers holds that a file with them stays, and that somebody hears of it.
func TestInitAddsBesideTheCRDsOfOthers(t *testing.T) {
	b := beginner(t)
	putFile(t, "shop/operator.yaml", written)
	putFile(t, "shop/crd.yaml", "# another team's\n")
	if code := b.execute(t.Context(), strings.Fields("init shop --add crons.v1.example.com")); code != exitOK {
		t.Fatal(b.err.String())
	}
	if text, err := os.ReadFile("shop/crd.yaml"); err != nil || string(text) != "# another team's\n" {
		t.Errorf("crd.yaml is now %q (%v)", text, err)
	}
	if !strings.Contains(b.err.String(), "note: shop/crd.yaml stays") {
		t.Errorf("stderr: %q", b.err.String())
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
		"to nothing":                 {"", "--add crons.v1.example.com", "there is no shop/operator.yaml"},
		"a resource of the core":     {written, "--add pods", "has no version, or no group of its own"},
		"beside another resource":    {written, "--add crons.v1.example.com --resource pods.v1", "--add is for an operator in YAML"},
		"with a checkout for Go":     {written, "--add crons.v1.example.com --replace ..", "--add is for an operator in YAML"},
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

// TestInitAddsTheSamePluralOfAnotherGroup holds that no file of the first resource is in the way, and that the case means
// the second one.
func TestInitAddsTheSamePluralOfAnotherGroup(t *testing.T) {
	b := beginner(t)
	putFile(t, "shop/operator.yaml", written)
	said(t, b, "init shop --add crons.v1.example.com --child CronJob")
	if got := said(t, b, "init shop --add crons.v1.example.org --child ConfigMap"); !strings.Contains(got, "wrote shop/crons.example.org_test.yaml") {
		t.Error(got)
	}
	cases.Run(t, "shop", handlers.Standard())
}

// TestInitAddsAllOrNothing holds that files that cannot be written leave those before them as they were.
func TestInitAddsAllOrNothing(t *testing.T) {
	b := beginner(t)
	putFile(t, "shop/operator.yaml", written)
	if err := os.MkdirAll("shop/crons_test.yaml", 0o700); err != nil {
		t.Fatal(err)
	}
	if code := b.execute(t.Context(), strings.Fields("init shop --add crons.v1.example.com --force")); code == exitOK {
		t.Error("it wrote a folder")
	}
	files, _ := filepath.Glob("shop/*")
	if data, _ := os.ReadFile("shop/operator.yaml"); string(data) != written || len(files) > 2 {
		t.Errorf("it left %v\n%s", files, data)
	}
}

// TestInsertResource holds that nothing but the list changes, however it is written.
func TestInsertResource(t *testing.T) {
	const added = "  - resource: b\n    x: 1\n"
	for name, test := range map[string]struct{ operator, want string }{
		"the list is last":         {"a: 1\nresources:\n  - resource: a\n", "a: 1\nresources:\n  - resource: a\n  - resource: b\n    x: 1\n"},
		"no line break at the end": {"resources:\n- resource: a", "resources:\n- resource: a\n- resource: b\n  x: 1\n"},
		"line breaks of Windows":   {"resources:\r\n- resource: a\r\nz: 1\r\n", "resources:\r\n- resource: a\r\n- resource: b\r\n  x: 1\r\nz: 1\r\n"},
		"line breaks of old Macs":  {"resources:\r- resource: a\rz: 1\r", "resources:\r- resource: a\r- resource: b\r  x: 1\rz: 1\r"},
		"a line break in a text":   {"resources:\n- resource: \"a\u2028b\"\nz: 1\n", "resources:\n- resource: \"a\u2028b\"\n- resource: b\n  x: 1\nz: 1\n"},
		"blank lines of a text":    {"resources:\n- text: |+\n    a\n\n\nz: 1\n", "resources:\n- text: |+\n    a\n\n\n- resource: b\n  x: 1\nz: 1\n"},
		"the dash has its own line": {
			"resources:\n  - # the first\n    resource: a\n\n# about z\nz: 1\n", "resources:\n  - # the first\n    resource: a\n  - resource: b\n    x: 1\n\n# about z\nz: 1\n",
		},
		"a document behind it":                 {"resources:\n- resource: a\n---\n", "resources:\n- resource: a\n- resource: b\n  x: 1\n---\n"},
		"the document has ended":               {"resources:\n- resource: a\n...\n", "resources:\n- resource: a\n- resource: b\n  x: 1\n...\n"},
		"a document before it":                 {"---\n---\nresources: &all\n- resource: a\n", "---\n---\nresources: &all\n- resource: a\n- resource: b\n  x: 1\n"},
		"text without a line break at the end": {"resources:\n- text: |\n    a", ""},
		"an alias":                             {"x: &x\n- resource: a\nresources: *x\n", ""},
		"all in brackets":                      {"{resources: [{resource: a}]}", ""},
		"a key with a mark":                    {"? resources\n: - resource: a\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := insertResource(test.operator, added)
			if (err == nil) != (test.want != "") {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
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
