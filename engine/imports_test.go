// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/handwerk-dev/handwerk/"

var update = flag.Bool("update", false, "write the map of docs/design.md")

// borders say what the packages of an area may not import. An area is the packages under a path. Go itself forbids rings.
var borders = []struct {
	area  string
	but   []string // areas within it for which this does not hold
	never []string
	why   string
}{
	{"dsl", nil, []string{"engine", "handlers", "cmd", "samples"}, "an operator is a value that others read"},
	{"handlers", nil, []string{"engine", "cmd", "samples"}, "an action works with what its request offers"},
	{"engine", kits, []string{"handlers", "cmd", "samples", "dsl/actions", "dsl/config", "dsl/crd", "dsl/draw", "dsl/expr", "dsl/form", "dsl/source"}, "the engine sees neither YAML nor CEL"},
	{"engine", kits, []string{"sandbox"}, "an operator in a cluster needs no API server in memory"},
	{"sandbox", kits, []string{"engine", "handlers", "cmd", "samples", "dsl/config"}, "an API server in memory knows nothing of the operators that use it"},
	{"cmd", []string{"cmd/operator"}, []string{"handlers"}, "main chooses the actions"},
	{"cmd", []string{"cmd/operator"}, []string{"samples"}, "a sample is a program of its own"},
}

// kits are what tests run operators with. They may use everything.
var kits = []string{"engine/e2e", "engine/scenarios", "sandbox/kit", "sandbox/cases"}

// within reports whether a package is in an area.
func within(name string, areas ...string) bool {
	return slices.ContainsFunc(areas, func(area string) bool { return name == area || strings.HasPrefix(name, area+"/") })
}

// TestNoImportCrossesABorder holds the borders between the areas of the module.
func TestNoImportCrossesABorder(t *testing.T) {
	for _, p := range packages(t) {
		for _, border := range borders {
			if !within(p.name, border.area) || within(p.name, border.but...) {
				continue
			}
			for _, ours := range p.ours {
				if within(ours, border.never...) {
					t.Errorf("%s imports %s: %s", p.name, ours, border.why)
				}
			}
		}
		if p.name == "dsl" && slices.ContainsFunc(p.ours, func(i string) bool { return within(i, "dsl/config", "dsl/expr", "dsl/form", "dsl/source") }) {
			t.Errorf("dsl imports %v: authors in Go need neither YAML nor CEL", p.ours)
		}
		ofSample := func(i string) bool { return strings.HasPrefix(i, "samples/") }
		if within(p.name, "cmd/operator") && slices.ContainsFunc(p.ours, ofSample) || p.name == "samples" && len(p.ours) > 0 {
			t.Errorf("%s imports %v: operator carries the files of samples, and none of their functions", p.name, p.ours)
		}
	}
}

// areas are those of the engine, from the lowest to the highest: a package imports its own area and lower ones.
var areas = []struct{ path, does string }{
	{"engine/observe", "answers people"},
	{"engine/cluster", "reaches the API server"},
	{"engine/decide", "decides from values"},
	{"engine/cache", "knows the objects of the cluster, and what happened to them"},
	{"engine/children", "makes and deletes children"},
	{"engine/reconcile", "runs handlers over one object"},
	{"engine/operate", "runs once, at the start, at the end, or when a person asks"},
	{"engine", "wires the areas"},
}

// areaOf returns the area of a package of the engine. Other packages, and kits for tests, have none.
func areaOf(name string) string {
	if !within(name, "engine") || within(name, kits...) {
		return ""
	}
	for _, area := range areas {
		if within(name, area.path) {
			return area.path
		}
	}
	return ""
}

// TestNoImportLeadsToAHigherArea holds the order of the engine's areas, and that only the wiring has no area of its own.
func TestNoImportLeadsToAHigherArea(t *testing.T) {
	height := map[string]int{}
	for i, area := range areas {
		height[area.path] = i
	}
	for _, p := range packages(t) {
		if areaOf(p.name) == "engine" && p.name != "engine" {
			t.Errorf("%s is in no area of the engine", p.name)
		}
		for _, ours := range p.ours {
			if areaOf(p.name) != "" && areaOf(ours) != "" && height[areaOf(ours)] > height[areaOf(p.name)] {
				t.Errorf("%s imports %s, which is in a higher area", p.name, ours)
			}
		}
	}
}

// TestPurePackagesSendNoRequests holds that decisions are apart from actions: a package whose doc says that it is pure has no way
// to the API server and no context. Package dsl alone has a context, in the types of functions.
func TestPurePackagesSendNoRequests(t *testing.T) {
	found := 0
	for _, p := range packages(t) {
		if !p.pure {
			continue
		}
		found++
		for _, i := range p.Imports {
			if strings.HasPrefix(i, "k8s.io/client-go") || i == "net/http" || i == "context" && p.name != "dsl" {
				t.Errorf("%s imports %s, and its doc says that it is pure", p.name, i)
			}
		}
	}
	if found < 20 {
		t.Errorf("%d packages say that they are pure", found)
	}
}

const (
	mapBegins = "<!-- map: go test ./engine -run TestTheMap -update -->\n"
	mapEnds   = "<!-- end of the map -->\n"
)

// TestTheMapIsWhatTheCodeSays holds the map of docs/design.md equal to the packages that there are, with the first sentence
// of the doc of each. Within an area of the engine the order is that of the imports.
func TestTheMapIsWhatTheCodeSays(t *testing.T) {
	const path = "../docs/design.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(page), mapBegins)
	now, after, ends := strings.Cut(rest, mapEnds)
	if !begins || !ends {
		t.Fatalf("%s has no map between its marks", path)
	}
	want := drawn(packages(t))
	if *update {
		if err := os.WriteFile(path, []byte(before+mapBegins+want+mapEnds+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, now); diff != "" {
		t.Errorf("the map is not current, go test ./engine -run TestTheMap -update writes it (-want +page):\n%s", diff)
	}
}

// drawn is the map: areas by name, and those of the engine from the lowest to the highest.
func drawn(all []goPackage) string {
	var out strings.Builder
	line := func(p goPackage) {
		pure := ""
		if p.pure {
			pure = "pure: "
		}
		fmt.Fprintf(&out, "%-24s %s%s\n", p.name, pure, p.synopsis())
	}
	out.WriteString("```\n")
	for _, area := range []string{"cmd", "dsl", "handlers"} {
		for _, p := range all {
			if within(p.name, area) {
				line(p)
			}
		}
		out.WriteString("\n")
	}
	for _, area := range areas {
		fmt.Fprintf(&out, "%s: %s\n", area.path, area.does)
		for _, p := range sorted(all, area.path) {
			line(p)
		}
		out.WriteString("\n")
	}
	for _, p := range all {
		if within(p.name, "sandbox") && !within(p.name, kits...) {
			line(p)
		}
	}
	out.WriteString("\ntests of operators\n")
	for _, p := range all {
		if within(p.name, kits...) {
			line(p)
		}
	}
	out.WriteString("```\n")
	return out.String()
}

// sorted returns the packages of an area of the engine, each after those that it imports.
func sorted(all []goPackage, area string) (out []goPackage) {
	done := map[string]bool{}
	var add func(p goPackage)
	add = func(p goPackage) {
		if done[p.name] || areaOf(p.name) != area {
			return
		}
		done[p.name] = true
		for _, imported := range all {
			if slices.Contains(p.ours, imported.name) {
				add(imported)
			}
		}
		out = append(out, p)
	}
	for _, p := range all {
		add(p)
	}
	return out
}

// TestTheAPIServerIsNotLinked holds that the program stays small: a package of the API server easily
// brings all of it along, with its webhooks and tracing, and 20 MB of memory.
func TestTheAPIServerIsNotLinked(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", module+"cmd/operator").Output()
	if err != nil {
		t.Fatalf("listing packages: %v", err)
	}
	for name := range strings.Lines(string(out)) {
		for _, heavy := range []string{"google.golang.org/grpc", "k8s.io/apiserver/pkg/endpoints", "k8s.io/apiserver/pkg/server", "go.opentelemetry.io/otel/exporters"} {
			if strings.HasPrefix(name, heavy) && strings.TrimSpace(name) != "k8s.io/apiserver/pkg/endpoints/request" { // which is small
				t.Errorf("the operator links %s", name)
			}
		}
	}
}

// TestALibraryBringsNoCEL holds that a program which embeds the engine does not get the API server's schemas and CEL, which only the
// commands and the YAML form need.
func TestALibraryBringsNoCEL(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", module+"engine").Output()
	if err != nil {
		t.Fatalf("listing packages: %v", err)
	}
	for name := range strings.Lines(string(out)) {
		for _, heavy := range []string{"k8s.io/apiserver/", "k8s.io/apiextensions-apiserver/", "github.com/google/cel-go/"} {
			if strings.HasPrefix(name, heavy) {
				t.Errorf("the engine brings %s", name)
			}
		}
	}
}

// goPackage is a package of the module, as go list knows it.
type goPackage struct {
	ImportPath, Dir, Doc string
	GoFiles, Imports     []string

	name string   // the import path without that of the module
	ours []string // those of Imports that are in the module, without its path
	pure bool     // the doc says so
}

// synopsis is what the doc of a package says first, without the name.
func (p goPackage) synopsis() string {
	text, _, _ := strings.Cut(strings.TrimSuffix(p.Doc, "."), ": ")
	words := strings.SplitN(text, " ", 3) // Package NAME …
	return strings.NewReplacer("[", "", "]", "").Replace(words[len(words)-1])
}

// packages lists the packages of the module that have more than tests.
func packages(t *testing.T) (all []goPackage) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,Doc,GoFiles,Imports", module+"...").Output()
	if err != nil {
		t.Fatalf("listing packages: %v", err)
	}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if len(p.GoFiles) == 0 {
			continue
		}
		p.name = strings.TrimPrefix(p.ImportPath, module)
		for _, i := range p.Imports {
			if ours, ok := strings.CutPrefix(i, module); ok {
				p.ours = append(p.ours, ours)
			}
		}
		p.pure = saysPure(t, p)
		all = append(all, p)
	}
}

// saysPure reports whether the doc of a package says that it is pure.
func saysPure(t *testing.T, p goPackage) bool {
	t.Helper()
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(file.Doc.Text()), " ")
		if strings.Contains(text, "It is pure") {
			return true
		}
	}
	return false
}
