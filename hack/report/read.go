// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// pkg is a package of product code.
type pkg struct {
	path      string
	files     int
	types     []*typ
	importers []string
}

// typ is a struct type.
type typ struct {
	name            string
	fields, methods int
	functions       []string
	embeds          []string
}

// count is how often a word occurs.
type count struct {
	name string
	n    int
}

// read parses the packages under a folder.
func read(root string) (out []*pkg, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); name == "testdata" || name == "e2e" || name == "scenarios" {
			return filepath.SkipDir
		}
		p, err := readPackage(path)
		if p != nil {
			out = append(out, p)
		}
		return err
	})
	embedded(out)
	return out, err
}

// readPackage parses the product files of one folder, nil where there are none.
func readPackage(dir string) (*pkg, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	p, byName, methods := &pkg{path: dir}, map[string]*typ{}, map[string]int{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		if filepath.Base(name) != "doc.go" {
			p.files++
		}
		for _, d := range file.Decls {
			p.declare(d, byName, methods)
		}
	}
	if p.files == 0 {
		return nil, nil
	}
	for name, n := range methods {
		if t := byName[name]; t != nil {
			t.methods = n
		}
	}
	return p, nil
}

// declare notes the struct types and methods of a declaration.
func (p *pkg) declare(d ast.Decl, byName map[string]*typ, methods map[string]int) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil {
			methods[base(d.Recv.List[0].Type)]++
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			spec, is := s.(*ast.TypeSpec)
			if !is {
				continue
			}
			t := &typ{name: p.path + "." + spec.Name.Name}
			if of, is := spec.Type.(*ast.StructType); is {
				t.read(of)
			}
			p.types, byName[spec.Name.Name] = append(p.types, t), t
		}
	}
}

// read counts the fields of a struct.
func (t *typ) read(of *ast.StructType) {
	for _, f := range of.Fields.List {
		if len(f.Names) == 0 {
			t.fields++
			t.embeds = append(t.embeds, base(f.Type))
		}
		t.fields += len(f.Names)
		if _, is := f.Type.(*ast.FuncType); is {
			for _, name := range f.Names {
				t.functions = append(t.functions, name.Name)
			}
		}
	}
}

// embedded adds the fields of embedded structs of the same package to those of the types that embed them.
func embedded(packages []*pkg) {
	for _, p := range packages {
		fields := map[string]int{}
		for _, t := range p.types {
			fields[t.name] = t.fields
		}
		for _, t := range p.types {
			for _, e := range t.embeds {
				t.fields += fields[p.path+"."+e]
			}
		}
	}
}

// base names the type of a receiver or an embedded field.
func base(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return base(e.X)
	case *ast.IndexExpr:
		return base(e.X)
	case *ast.SelectorExpr:
		return base(e.X) + "." + e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// readImporters asks go list who imports the packages.
func readImporters(packages []*pkg) error {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		return fmt.Errorf("listing packages: %w", err)
	}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var one struct {
			ImportPath string
			Imports    []string
		}
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("listing packages: %w", err)
		}
		for _, p := range packages {
			if slices.ContainsFunc(one.Imports, func(i string) bool { return strings.HasSuffix(i, "/handwerk/"+p.path) }) {
				p.importers = append(p.importers, one.ImportPath[strings.Index(one.ImportPath, "/handwerk")+1:])
			}
		}
	}
}

// words are what is counted in comments.
var words = []struct {
	name string
	re   *regexp.Regexp
}{
	{"of which", regexp.MustCompile(`(?i)\bof which\b`)},
	{"nobody", regexp.MustCompile(`(?i)\bnobody\b`)},
	{"told, tells", regexp.MustCompile(`(?i)\b(told|tells)\b`)},
	{"is none", regexp.MustCompile(`(?i)\bis none\b`)},
	{"what it is", regexp.MustCompile(`(?i)\bwhat (\w+ )?(is|was|are|were)\b`)},
}

// comments counts words in the comments of product code, and the lines of these comments.
func comments(root string) (counts []count, lines int, err error) {
	for _, w := range words {
		counts = append(counts, count{name: w.name})
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "bench" || strings.HasPrefix(d.Name(), ".") && path != root) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		for _, group := range file.Comments {
			text := group.Text()
			lines += strings.Count(text, "\n")
			for i, w := range words {
				counts[i].n += len(w.re.FindAllString(text, -1))
			}
		}
		return nil
	})
	return counts, lines, err
}
