// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestAnEventsPath runs one plain event through the code, the update of an object that has one handler in Go, which sets its
// status. It traces entries and returns of functions of this package and of package reconcile, but for those of at most three
// lines. The trace has to read in the order of the path in docs/design.md.
func TestAnEventsPath(t *testing.T) {
	trace := traced(t, "./scenarios/writes", "TestAPlainEventCostsARunAndAWrite", ".", "reconcile")
	if os.Getenv("HANDWERK_PATH") != "" {
		for _, step := range trace {
			t.Log(step)
		}
	}
	at := 0
	for _, s := range pathOf(t)[0] {
		if !strings.HasPrefix(s.file, "engine/reconcile/") {
			continue
		}
		next := slices.IndexFunc(trace[at:], func(e step) bool { return e.enters && e.function == s.function })
		if next < 0 {
			t.Errorf("the trace does not come to %s in the order of docs/design.md", s.function)
			continue
		}
		at += next
	}
}

// TestThePathsOfTheDocsExist holds that both paths in docs/design.md lead through functions that are where they say.
func TestThePathsOfTheDocsExist(t *testing.T) {
	for _, path := range pathOf(t) {
		if len(path) != 10 {
			t.Errorf("a path has %d steps, want 10", len(path))
		}
		for _, s := range path {
			if !slices.Contains(functionsOf(t, "../"+s.file), s.function) {
				t.Errorf("%s has no function %s", s.file, s.function)
			}
		}
	}
}

// step is an entry into a function of a file, or a return to one.
type step struct {
	file, function string
	enters         bool
	depth          int
}

func (s step) String() string {
	sign := "<"
	if s.enters {
		sign = ">"
	}
	return fmt.Sprintf("%s%s %s %s", strings.Repeat("  ", s.depth), sign, s.file, s.function)
}

// pathOf reads the paths in docs/design.md: that of an event, and that of a child's.
func pathOf(t *testing.T) (out [2][]step) {
	t.Helper()
	page, err := os.ReadFile("../docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## The path of an event\n")
	section, _, _ = strings.Cut(section, "\n## ")
	which := -1
	for _, m := range regexp.MustCompile("(?m)^([0-9]+)\\. `([^`]+)`, `([^`]+)`: ").FindAllStringSubmatch(section, -1) {
		if m[1] == "1" {
			which++
		}
		out[which] = append(out[which], step{file: m[2], function: m[3]})
	}
	return out
}

// traced runs a test of a package with each function of the folders traced, and returns the steps of the worker that it
// follows.
func traced(t *testing.T, where, test string, folders ...string) []step {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	for _, folder := range folders {
		overlay(t, folder, filepath.Join(dir, strings.ReplaceAll(folder, ".", "engine")), replace)
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	config, out := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "trace")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "-overlay", config, "-run", "^"+test+"$", where)
	command.Env = append(os.Environ(), "HANDWERK_TRACE="+out)
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("running %s with a trace: %v\n%s", test, err, said)
	}
	lines, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return follow(t, strings.Split(strings.TrimSpace(string(lines)), "\n"))
}

// follow returns the steps of the first reconcile after the mark of the test in which a handler ran.
func follow(t *testing.T, lines []string) (out []step) {
	t.Helper()
	mark := slices.Index(lines, "mark")
	worker, stack := "", []step{}
	for _, line := range lines[mark+1:] {
		goroutine, rest, _ := strings.Cut(line, " ")
		sign, rest, _ := strings.Cut(rest, " ")
		file, function, _ := strings.Cut(rest, " ")
		enters := sign == ">"
		switch {
		case worker == "" && enters && function == "Controller.reconcileKey":
			worker = goroutine
		case worker != goroutine:
			continue
		}
		if enters {
			stack = append(stack, step{file, function, true, len(stack)})
			out = append(out, stack[len(stack)-1])
			continue
		}
		if stack = stack[:len(stack)-1]; len(stack) == 0 {
			return out
		}
		back := stack[len(stack)-1]
		back.enters = false
		out = append(out, back)
	}
	t.Fatalf("the trace has no whole pass: %d lines", len(lines))
	return nil
}

// overlay writes the files of a folder with a line in each function that traces it.
func overlay(t *testing.T, folder, to string, replace map[string]string) {
	t.Helper()
	here, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(here, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		t.Fatal(err)
	}
	name := ""
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		var text string
		name, text = withTraces(t, file)
		replace[file] = filepath.Join(to, filepath.Base(file))
		if err := os.WriteFile(replace[file], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tracer := filepath.Join(here, "tracer.go")
	replace[tracer] = filepath.Join(to, "tracer.go")
	if err := os.WriteFile(replace[tracer], []byte("package "+name+"\n"+tracerCode), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tracerCode writes an entry, and the return, to the file of the trace.
const tracerCode = `
import (
	"bytes"
	"os"
	"runtime"
)

func traceFunction(where string) func() {
	stack := make([]byte, 64)
	goroutine := string(bytes.Fields(stack[:runtime.Stack(stack, false)])[1])
	traceLine(goroutine + " > " + where)
	return func() { traceLine(goroutine + " < " + where) }
}

func traceLine(text string) {
	f, err := os.OpenFile(os.Getenv("HANDWERK_TRACE"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text + "\n"); err != nil {
		panic(err)
	}
}
`

// withTraces returns a file's package and text, with a line in each function of more than three lines.
func withTraces(t *testing.T, path string) (name, text string) {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	from := 0
	for _, d := range file.Decls {
		f, is := d.(*ast.FuncDecl)
		if !is || f.Body == nil || set.Position(f.Body.Rbrace).Line-set.Position(f.Body.Lbrace).Line-1 <= 3 {
			continue
		}
		at := set.Position(f.Body.Lbrace).Offset + 1
		out.Write(source[from:at])
		fmt.Fprintf(&out, " defer traceFunction(%q)();", filepath.Base(path)+" "+nameOf(f))
		from = at
	}
	out.Write(source[from:])
	return file.Name.Name, out.String()
}

// functionsOf names the functions of a file, methods after their types.
func functionsOf(t *testing.T, path string) (out []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Errorf("reading %s: %v", path, err)
		return nil
	}
	for _, d := range file.Decls {
		if f, is := d.(*ast.FuncDecl); is {
			out = append(out, nameOf(f))
		}
	}
	return out
}

// nameOf names a function, a method after its type.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	return receiver(f.Recv.List[0].Type) + "." + f.Name.Name
}

// receiver names the type of a method.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
