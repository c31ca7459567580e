// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl_test

import (
	"bytes"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// compiled returns what opens the export data of package dsl, and of those that it imports.
func compiled(t *testing.T) func(path string) (io.ReadCloser, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}", ".").Output()
	if err != nil {
		t.Fatalf("listing packages: %v", err)
	}
	files := map[string]string{}
	for line := range bytes.Lines(out) {
		path, file, _ := strings.Cut(strings.TrimSpace(string(line)), "=")
		files[path] = file
	}
	return func(path string) (io.ReadCloser, error) {
		if files[path] == "" {
			return nil, errors.New("it is not imported")
		}
		return os.Open(files[path])
	}
}

// TestWhatOnlyReadsCannotWrite holds that the compiler refuses a filter, or a relation, that writes.
func TestWhatOnlyReadsCannotWrite(t *testing.T) {
	const filter, relation = "foo.OnCreate(`id`, nil, dsl.When(func(s *dsl.Subject) (bool, error) { BODY; return true, nil }))",
		"foo.Relates(dsl.Relation{Select: func(s *dsl.Subject) (dsl.Selection, error) { BODY; return dsl.Selection{}, nil }})"
	tests := map[string]struct {
		form, body string
		err        string // empty: it compiles
	}{
		"a filter reads children":                {filter, "s.Children.List(`configmaps.v1`); s.Children.All(); s.Children.Get(`configmaps.v1`, `c`)", ""},
		"a filter reads parts of the object":     {filter, "var spec struct{}; s.Into(`spec`, &spec)", ""},
		"a relation looks at the object":         {relation, "_ = s.Object.GetName()", ""},
		"a filter applies a child":               {filter, "s.Children.Apply(nil, nil)", "s.Children.Apply undefined"},
		"a filter enters a child":                {filter, "s.Children.Enter(nil)", "s.Children.Enter undefined"},
		"a filter removes a child":               {filter, "s.Children.Remove(nil, dsl.ChildObject{})", "s.Children.Remove undefined"},
		"a filter deletes a child":               {filter, "s.Children.Delete(nil, `configmaps.v1`, `c`)", "s.Children.Delete undefined"},
		"a filter changes the object":            {filter, "s.Patch.SetStatus(`ok`, true)", "s.Patch undefined"},
		"a filter writes with the client":        {filter, "s.Client.Apply(nil, nil)", "s.Client undefined"},
		"a filter reports":                       {filter, "s.Events.Event(dsl.Normal, `R`, `n`)", "s.Events undefined"},
		"a relation applies a child":             {relation, "s.Children.Apply(nil, nil)", "s.Children.Apply undefined"},
		"a filter takes what a handler is given": {"foo.OnCreate(`id`, nil, dsl.When(func(r *dsl.Request) (bool, error) { return true, nil }))", "", "as dsl.Predicate value"},
	}
	files := token.NewFileSet()
	imports := importer.ForCompiler(files, "gc", compiled(t))
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			text := "package p\nimport `github.com/handwerk-dev/handwerk/dsl`\nfunc declare(foo *dsl.Resource) {" + strings.ReplaceAll(test.form, "BODY", test.body) + "}"
			file, err := parser.ParseFile(files, "p.go", text, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			_, err = (&types.Config{Importer: imports}).Check("p", files, []*ast.File{file}, nil)
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("the compiler says %v, want %q", err, test.err)
			}
		})
	}
}
