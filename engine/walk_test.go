// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestThePathOfAnEventExists holds that both walks of docs/design.md lead through functions that are where they say, in
// ten steps, and hardly ever back to a file that was left.
func TestThePathOfAnEventExists(t *testing.T) {
	page, err := os.ReadFile("../docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## The path of an event\n")
	section, _, _ = strings.Cut(section, "\n## ")
	steps := regexp.MustCompile("(?m)^([0-9]+)\\. `([^`]+)`, `([^`]+)`: ").FindAllStringSubmatch(section, -1)
	if len(steps) != 20 {
		t.Fatalf("there are %d steps, want two walks of ten", len(steps))
	}
	for _, walk := range [][][]string{steps[:10], steps[10:]} {
		var files []string
		returns := 0
		for _, step := range walk {
			file, function := step[2], step[3]
			if !slices.Contains(functionsOf(t, "../"+file), function) {
				t.Errorf("step %s: %s has no function %s", step[1], file, function)
			}
			if at := slices.Index(files, file); at >= 0 && at < len(files)-1 {
				returns++
			}
			files = append(files, file)
		}
		if returns > 5 {
			t.Errorf("the walk returns %d times to a file that it had left: %v", returns, files)
		}
	}
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
		f, is := d.(*ast.FuncDecl)
		if !is {
			continue
		}
		name := f.Name.Name
		if f.Recv != nil {
			name = receiver(f.Recv.List[0].Type) + "." + name
		}
		out = append(out, name)
	}
	return out
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
