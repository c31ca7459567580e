// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/cmd/test"
	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/handlers"
)

// greeter is a program with a function that ends its process.
func greeter() Program {
	registry := handlers.Standard()
	registry.Func("greeter.Panic", func(context.Context, *dsl.Request) error {
		done := make(chan bool)
		go func() { close(done); panic("what a pity") }() // nothing recovers from a panic in a goroutine of its own
		<-done
		select {}
	})
	registry.Func("greeter.Hang", func(context.Context, *dsl.Request) error {
		<-elsewhere
		return nil
	})
	return Program{Registry: registry}
}

// elsewhere is of no case, as a connection is: virtual time does not pass while somebody waits for it.
var elsewhere = make(chan bool)

// worker is the child process of the command test.
func worker() { greeter().Main() }

var (
	tooks  = regexp.MustCompile(`[0-9]+\.[0-9]+s|"seconds": [0-9.e-]+|time="[0-9.]+"`)
	stacks = regexp.MustCompile(`(?s)\n    goroutine [0-9].*?(\n[^ ]|"|&#xA;[^ ])`)
)

// TestCasesInAChildProcess compares what a person sees of the command test, with all that it does.
func TestCasesInAChildProcess(t *testing.T) {
	const good, bad, faulty = "testdata/cases/good_test.yaml", "testdata/cases/bad_test.yaml", "testdata/cases/faulty_test.yaml"
	tests := map[string]string{
		"test-good":                good + " --coverage",
		"test-bad":                 bad + " --run Somebody",
		"test-bad-json":            bad + " --run Somebody -o json",
		"test-bad-junit":           bad + " " + faulty + " --run Somebody -o junit",
		"test-a-process-that-ends": bad + " " + good,
		"test-faulty":              faulty,
		"test-bad-expression":      good + " --run (",
		"test-no-match":            good + " --run Nobody",
	}
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			var out, err strings.Builder
			code := greeter().Run(t.Context(), append([]string{"test"}, strings.Fields(args)...), Streams{Out: &out, Err: &err, Env: os.Environ()})
			got := fmt.Sprintf("$ operator test %s\n-- exit %d --\n-- stdout --\n%s-- stderr --\n%s", args, code, out.String(), err.String())
			got = stacks.ReplaceAllString(tooks.ReplaceAllString(got, "(time)"), "\n    (stack)$1")
			file := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, failed := os.ReadFile(file)
			if failed != nil {
				t.Fatal(failed)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if lookup(os.Environ(), test.Worker) != "" {
		t.Error("the variable of child processes has come to this one")
	}
}

// TestACaseThatDoesNotGoOnFails holds that a function which waits for something outside of its case is named, and that the
// other cases run.
func TestACaseThatDoesNotGoOnFails(t *testing.T) {
	var out, err strings.Builder
	code := greeter().Run(t.Context(), []string{"test", "testdata/stuck", "--timeout", "5s"}, Streams{Out: &out, Err: &err, Env: os.Environ()})
	for _, want := range []string{
		"stuck_test.yaml:3: the case did not go on before --timeout", "cmd.greeter.func2", "1 of 2 cases failed",
	} {
		if code != 1 || !strings.Contains(out.String(), want) {
			t.Errorf("exit %d, and %q is missing in:\n%s%s", code, want, &out, &err)
		}
	}
}

// TestUpdateMakesCasesPass holds that --update says what it changes, and that the cases pass then.
func TestUpdateMakesCasesPass(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/cases")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "bad_test.yaml")
	run := func(args ...string) (int, string, string) {
		var out, err strings.Builder
		code := greeter().Run(t.Context(), append([]string{"test", file, "--run", "Somebody"}, args...), Streams{Out: &out, Err: &err, Env: os.Environ()})
		return code, out.String(), err.String()
	}
	const changed = `:6: cases[0].expect.objects["greetings/one"].status.text was "Good bye, World", is now "Hello, World"`
	if code, out, _ := run("--update"); code != 0 || !strings.HasPrefix(out, file+changed+"\nok ") {
		t.Errorf("--update exits with %d and says:\n%s", code, out)
	}
	if code, out, err := run("--update", "-o", "json"); code != 0 || err != "" {
		t.Errorf("the case does not pass then: exit %d\n%s%s", code, out, err)
	}
}
