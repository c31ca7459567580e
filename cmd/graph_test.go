// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers"
)

// addMachines makes it an operator with two machines.
func addMachines(op *dsl.Operator) {
	op.Name = "shop"
	op.Resource("orders.v1.example.com", func(r *dsl.Resource) {
		r.Machine(dsl.Machine{Name: "payment", States: []dsl.State{
			{Name: "Open", Enter: nothing, Transitions: []dsl.Transition{{To: "Paid", Manual: true, Why: "money is there"}}},
			{Name: "Paid", Terminal: true},
		}})
	})
	op.Resource("parcels.v1.example.com", func(r *dsl.Resource) {
		r.Machine(dsl.Machine{States: []dsl.State{{Name: "Sent", Terminal: true}}})
	})
}

func TestGraphCommand(t *testing.T) {
	tests := map[string]struct {
		args     string
		machines bool
	}{
		"help":            {"graph --help", false},
		"mermaid":         {"graph --config testdata/operator.yaml", false},
		"dot":             {"graph --config testdata/operator.yaml --format dot", false},
		"svg":             {"graph --config testdata/operator.yaml --format svg", false},
		"with-machines":   {"graph", true},
		"one-machine":     {"graph --machine payment --format dot", true},
		"machine-of":      {"graph --machine parcels/machine", true},
		"near-machine":    {"graph --machine payments", true},
		"unknown-machine": {"graph --machine pods/x", true},
		"no-machines":     {"graph --config testdata/operator.yaml --machine x", false},
		"unknown-format":  {"graph --config testdata/operator.yaml --format png", false},
		"format-as-file":  {"graph --config testdata/operator.yaml -o svg", false},
		"no-such-folder":  {"graph --config testdata/operator.yaml -o testdata/none/x.svg", false},
		"with-faults":     {"graph --config testdata/faulty.yaml", false},
		"without-config":  {"graph", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := reading(t)
			if test.machines {
				b.extra = append(b.extra, addMachines)
			}
			golden(t, "graph/"+name+".golden", said(t, b, test.args))
		})
	}
}

// TestSamplesAreDrawn holds the drawings of each sample, and that they come out the same each time.
func TestSamplesAreDrawn(t *testing.T) {
	files, err := filepath.Glob("../samples/*/operator.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("samples: %v, %v", files, err)
	}
	for _, file := range files {
		sample := filepath.Base(filepath.Dir(file))
		t.Run(sample, func(t *testing.T) {
			draw := func(format string) string {
				b := newBench(t)
				b.load, b.registry = config.Load, handlers.Standard()
				return said(t, b, "graph --config "+file+" --format "+format)
			}
			golden(t, "graph/sample-"+sample+".golden", draw("mermaid"))
			for _, format := range graphFormats {
				if diff := cmp.Diff(draw(format), draw(format)); diff != "" {
					t.Errorf("%s comes out in two ways:\n%s", format, diff)
				}
			}
		})
	}
}

func TestTheEndingOfAFileSaysTheFormat(t *testing.T) {
	for file, begins := range map[string]string{"x.svg": "<svg", "x.dot": "digraph", "x.gv": "digraph", "x.md": "**operator foo**", "x": "**operator foo**", "x.txt": "**operator foo**"} {
		path := filepath.Join(t.TempDir(), file)
		b := reading(t)
		if code := b.execute(t.Context(), []string{"graph", "--config", "testdata/operator.yaml", "-o", path}); code != exitOK || b.out.String() != "" {
			t.Errorf("%s: exit code %d: %s%s", file, code, b.out.String(), b.err.String())
		}
		text, err := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(string(text), begins) {
			t.Errorf("%s: want %q first, found %.40q: %v", file, begins, text, err)
		}
	}
	path := filepath.Join(t.TempDir(), "x.svg")
	b := reading(t)
	b.execute(t.Context(), []string{"graph", "--config", "testdata/operator.yaml", "--format", "dot", "-o", path})
	if text, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(text), "digraph") {
		t.Errorf("with --format dot, found %.40q: %v", text, err)
	}
}

// Drawings in documents stand between two marks, of which the first has the command line that prints them.
const drawingBegins, drawingEnds = "<!-- operator graph ", "<!-- end of the drawing -->\n"

// TestDrawingsInDocumentsAreCurrent holds that they are what the command prints; with -update they are renewed.
func TestDrawingsInDocumentsAreCurrent(t *testing.T) {
	all := 0
	for _, pattern := range []string{"README.md", "docs/*.md", "samples/*.md", "samples/*/*.md"} {
		files, err := filepath.Glob(filepath.Join("..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want, drawings := redrawn(t, file, string(data))
			all += drawings
			if *update && want != string(data) {
				if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if diff := cmp.Diff(want, string(data)); diff != "" {
				t.Errorf("%s is not current, run this test with -update (-printed +file):\n%s", file, diff)
			}
		}
	}
	if all == 0 {
		t.Error("there is no drawing in any document")
	}
}

// redrawn returns a document with its drawings as they are now, and how many there are.
func redrawn(t *testing.T, file, text string) (out string, drawings int) {
	t.Helper()
	for {
		before, rest, found := strings.Cut(text, drawingBegins)
		if !found {
			return out + text, drawings
		}
		args, rest, closed := strings.Cut(rest, " -->\n")
		_, after, ended := strings.Cut(rest, drawingEnds)
		if !closed || !ended {
			t.Fatalf("%s: the drawing of %q has no end (want %q)", file, args, drawingEnds)
		}
		b := newBench(t)
		b.load, b.registry = config.Load, handlers.Standard()
		inTree := strings.ReplaceAll(args, "--config ", "--config ../")
		if code := b.execute(t.Context(), append([]string{"graph"}, strings.Fields(inTree)...)); code != exitOK {
			t.Fatalf("%s: operator graph %s: %s", file, args, b.err.String())
		}
		out += before + drawingBegins + args + " -->\n" + b.out.String() + drawingEnds
		text = after
		drawings++
	}
}
