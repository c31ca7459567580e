// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// around is what the Go of the pages leaves out: a package of the reader's own.
const around = `
func announceScale(context.Context, *dsl.Request) error { return nil }

func farewell(context.Context, *dsl.Request) error { return nil }

type theirs struct{ Order dsl.Func; Declare func(*dsl.Operator) }

var shop theirs
`

// TestGoOfTheDocumentsCompiles holds that a reader can copy Go out of any page.
func TestGoOfTheDocumentsCompiles(t *testing.T) {
	found := 0
	inPages(t, goBlock, func(page, block string) {
		found++
		compiles(t, page, block)
	})
	if found < 2 {
		t.Errorf("the pages have %d blocks of Go", found)
	}
}

// compiles compiles a block: statements stand before its functions.
func compiles(t *testing.T, page, block string) {
	t.Helper()
	statements, functions, found := strings.Cut("\n"+block, "\nfunc ")
	if found {
		functions = "func " + functions
	}
	source := "package main\n\nimport (\n"
	for name, path := range map[string]string{"context.": "context", "time.": "time", "dsl.": module + "dsl", "handlers.": module + "handlers", "cmd.": module + "cmd"} {
		if strings.Contains(block+around, name) {
			source += "\t\"" + path + "\"\n"
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
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", os.DevNull, file).CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s\n%s", page, err, out, source)
	}
}

const module = "github.com/handwerk-dev/handwerk/"
