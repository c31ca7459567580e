// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package samples_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/samples/functions"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// TestDocumentsLoad holds that a reader can copy a configuration out of any page, without a fault or a warning.
func TestDocumentsLoad(t *testing.T) {
	found := 0
	inPages(t, yamlBlock, func(page, block string) {
		if !strings.Contains(block, "kind: Operator") {
			return
		}
		found++
		op, err := config.Parse(page, []byte(block), functions.Registry())
		if err != nil {
			t.Errorf("%v", err)
			return
		}
		nothingIsReportedOf(t, op)
	})
	if found == 0 {
		t.Error("no page shows a configuration")
	}
}

// inPages calls a function with what each match has in the pages of the documentation.
func inPages(t *testing.T, match *regexp.Regexp, see func(page, block string)) {
	t.Helper()
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range match.FindAllStringSubmatch(string(text), -1) {
			see(page, block[1])
		}
	}
}

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// around is what the Go of the pages leaves out: a package of the reader's own.
const around = `
func announceScale(context.Context, *dsl.Request) error { return nil }

func farewell(context.Context, *dsl.Request) error { return nil }

type theirs struct{ Order dsl.Func; Declare func(*dsl.Operator) }

var shop theirs

type Shop struct{ metav1.ObjectMeta; Spec struct{ Title string }; Status struct{ Sign string } }

var _ corev1.Pod

type Foo struct{ metav1.ObjectMeta; Spec struct{ Size int } }

var foo *dsl.Resource

var ctx context.Context

var config *rest.Config
`

// TestGoOfTheDocumentsCompiles holds that a reader can copy Go out of any page. Blocks that are whole files are those of
// one program, whose tests pass.
func TestGoOfTheDocumentsCompiles(t *testing.T) {
	found := 0
	programs := map[string][]string{}
	inPages(t, goBlock, func(page, block string) {
		if strings.Contains(block, "ctrl.NewManager") {
			return // controller-runtime is not in this module; the tests of hack/example-manager hold it
		}
		if found++; strings.HasPrefix(block, "package ") {
			programs[page] = append(programs[page], block)
			return
		}
		compiles(t, page, block)
	})
	for page, files := range programs {
		passes(t, page, files)
	}
	if found < 2 {
		t.Errorf("the pages have %d blocks of Go", found)
	}
}

// compiles checks the types of a block: statements stand before its functions. It is not linked, which would take seconds.
func compiles(t *testing.T, page, block string) {
	t.Helper()
	statements, functions, found := strings.Cut("\n"+block, "\nfunc ")
	if found {
		functions = "func " + functions
	}
	source := "package main\n\nimport (\n"
	for name, path := range map[string]string{"context.": "context", "time.": "time", "dsl.": module + "dsl", "handlers.": module + "handlers", "cmd.": module + "cmd", "workloads.": module + "sandbox/workloads",
		"admissionv1.": "k8s.io/api/admission/v1", "corev1.": "k8s.io/api/core/v1", "slices.": "slices", "rand.": "math/rand/v2", "rest.": "k8s.io/client-go/rest", "errors.": "errors", "unstructured.": "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured", "metav1.": "k8s.io/apimachinery/pkg/apis/meta/v1"} {
		if strings.Contains(block+around, name) {
			source += "\t" + strings.Replace(name, ".", " ", 1) + "\"" + path + "\"\n"
		}
	}
	source += ")\n\nfunc init() {\n" + statements + "\n}\n\n" + functions + around
	if !strings.Contains(functions, "func main()") {
		source += "\nfunc main() {}\n"
	}
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "vet", file).CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s\n%s", page, err, out, source)
	}
}

// passes runs the tests of a program.
func passes(t *testing.T, page string, files []string) {
	t.Helper()
	dir, args := t.TempDir(), []string{"test", "-v"}
	for i, text := range files {
		name := filepath.Join(dir, fmt.Sprintf("file%d.go", i))
		if strings.Contains(text, "*testing.T)") {
			name = filepath.Join(dir, fmt.Sprintf("file%d_test.go", i))
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, name)
	}
	out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: ") {
		t.Errorf("%s: %v\n%s", page, err, out)
	}
}

const module = "github.com/handwerk-dev/handwerk/"
