// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/samples/functions"
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
		"unknown-ending":  {"graph --config testdata/operator.yaml -o testdata/none/x.png", false},
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
				b.load, b.registry = config.Load, functions.Registry()
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
	for file, begins := range map[string]string{"x.svg": "<svg", "x.dot": "digraph", "x.gv": "digraph", "x.md": "**operator foo**", "x": "**operator foo**"} {
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

// Drawings in documents stand between two marks. The first one has the command line that prints them.
const drawingBegins, drawingEnds = "<!-- operator graph ", "<!-- end of the drawing -->\n"

// TestDrawingsInDocumentsAreCurrent holds that they are what the command prints; with -update they are renewed.
func TestDrawingsInDocumentsAreCurrent(t *testing.T) {
	all := 0
	for _, file := range allPages(t) {
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
		b.load, b.registry = config.Load, functions.Registry()
		inTree := strings.ReplaceAll(args, "--config ", "--config ../")
		if code := b.execute(t.Context(), append([]string{"graph"}, strings.Fields(inTree)...)); code != exitOK {
			t.Fatalf("%s: operator graph %s: %s", file, args, b.err.String())
		}
		out += before + drawingBegins + args + " -->\n" + b.out.String() + drawingEnds
		text = after
		drawings++
	}
}

// TestDrawingsOfSamplesOpen holds that what is written to files is what other programs read: XML of one picture, and graphs of
// Graphviz in which each edge is between nodes that there are.
func TestDrawingsOfSamplesOpen(t *testing.T) {
	files, err := filepath.Glob("../samples/*/operator.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("samples: %v, %v", files, err)
	}
	for _, file := range append(files, writeFile(t, "operator.yaml", oddTexts)) {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			drawn := func(name string) string {
				t.Helper()
				path := filepath.Join(t.TempDir(), name)
				b := newBench(t)
				b.load, b.registry = config.Load, functions.Registry()
				if code := b.execute(t.Context(), []string{"graph", "--config", file, "--out", path}); code != exitOK {
					t.Fatalf("exit code %d: %s", code, b.err.String())
				}
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				return string(text)
			}
			if wrong := wrongXML(drawn("x.svg")); wrong != "" {
				t.Error(wrong)
			}
			if wrong := wrongGraphs(drawn("x.dot")); wrong != "" {
				t.Error(wrong)
			}
		})
	}
}

// oddTexts has texts with what means something to the formats of drawings.
const oddTexts = `apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: odd}
resources:
  - resource: foos.v1.example.com
    schema: {kind: Foo}
    machine:
      states:
        - {name: One, doc: 'He said "go" & <b>left</b> } \\', transitions: [{to: Two, when: self.metadata.name == "a", why: 'a "quote', manual: false}]}
        - {name: Two, terminal: true}
`

// wrongXML says why a text is no picture in XML, empty where it is one.
func wrongXML(text string) string {
	texts := 0
	for decoder, depth := xml.NewDecoder(strings.NewReader(text)), 0; ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			if texts == 0 {
				return "the picture has no text"
			}
			return ""
		}
		if err != nil {
			return "reading the picture: " + err.Error()
		}
		switch at := token.(type) {
		case xml.StartElement:
			if depth == 0 && (at.Name.Local != "svg" || at.Name.Space != "http://www.w3.org/2000/svg") {
				return fmt.Sprintf("the picture is a %v", at.Name)
			}
			if depth++; at.Name.Local == "text" {
				texts++
			}
		case xml.EndElement:
			depth--
		}
	}
}

var (
	quotes = regexp.MustCompile(`"(\\.|[^"\\])*"`)
	node   = regexp.MustCompile(`^\s*(\w+) \[`)
	edge   = regexp.MustCompile(`^\s*(\w+) -> (\w+)( \[.*)?$`)
)

// wrongGraphs says why a text has no graphs as Graphviz reads them, empty where it has.
func wrongGraphs(text string) string {
	open, edges, nodes := 0, 0, map[string]bool{}
	for line := range strings.Lines(quotes.ReplaceAllString(text, "q")) {
		line = strings.TrimRight(line, ";\n")
		if strings.HasPrefix(line, "digraph ") {
			clear(nodes)
		}
		open += strings.Count(line, "{") - strings.Count(line, "}")
		if strings.Contains(line, `"`) {
			return "a text does not end: " + line
		}
		if is := edge.FindStringSubmatch(line); is != nil {
			if edges++; !nodes[is[1]] || !nodes[is[2]] {
				return "an edge without nodes: " + line
			}
		} else if is := node.FindStringSubmatch(line); is != nil {
			nodes[is[1]] = true
		}
	}
	if open != 0 || edges == 0 {
		return fmt.Sprintf("%d braces are not closed, and there are %d edges", open, edges)
	}
	return ""
}

// TestValidateReportsTheAnnotationOfAWish holds that the resource of a machine is reported with the annotation in which a person says where an
// object is to go.
func TestValidateReportsTheAnnotationOfAWish(t *testing.T) {
	const text = "apiVersion: handwerk.dev/v1alpha1\nkind: Operator\nmetadata: {name: sites}\nresources:\n  - resource: sites.v1.example.com\n    schema: {kind: Site}\n    machine:\n" +
		"      - {states: [{name: One, terminal: true}]}\n      - {name: traffic, states: [{name: Open, terminal: true}]}\n"
	file := filepath.Join(t.TempDir(), "sites.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBench(t)
	b.load, b.registry = config.Load, functions.Registry()
	if code := b.execute(t.Context(), []string{"validate", "--verbose", "--config", file}); code != exitOK {
		t.Fatalf("exit code %d: %s", code, b.err.String())
	}
	for line, want := range map[string]string{
		"handler machine looks at status.state, ":         `, metadata.annotations["sites.handwerk.dev/goto"]`,
		"handler traffic looks at status.traffic.state, ": `, metadata.annotations["sites.handwerk.dev/traffic"]`,
	} {
		_, rest, _ := strings.Cut(b.out.String(), line)
		if first, _, _ := strings.Cut(rest, "\n"); !strings.HasSuffix(first, want) {
			t.Errorf("%q goes on with %q, want %q at its end:\n%s", line, first, want, b.out.String())
		}
	}
}
