// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"errors"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl/form"
	text "github.com/handwerk-dev/handwerk/dsl/source"
)

// File is a file with cases.
type File struct {
	// Name is the name of the file as it was given.
	Name string
	// Cases are its cases in their order.
	Cases []*Case

	document
	decoder *form.Decoder
	text    *text.Text
	// objects are those of other files that the cases name, by the name as it is written.
	objects map[string][]*unstructured.Unstructured
}

// Find returns the files with cases among these paths. A directory stands for those in it and below.
func Find(paths []string) ([]string, error) {
	var out []string
	for _, path := range paths {
		err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && (text.IsCases(name) || name == path) {
				out = append(out, name)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// Read reads a file with cases. The error is of type [text.Faults] if the file has faults.
func Read(name string) (*File, error) {
	var reader text.Reader
	data, err := reader.ReadFile(name)
	if err != nil {
		return nil, text.Faults{text.Unread(name, err)}
	}
	return parse(name, data)
}

// parse reads the text of a file.
func parse(name string, data []byte) (*File, error) {
	s, faults := text.Read(name, data)
	if len(faults) > 0 {
		return nil, faults
	}
	roots, fault := s.Documents()
	switch {
	case fault != nil:
		return nil, text.Faults{*fault}
	case len(roots) == 0:
		return nil, text.Faults{{File: name, Line: 1, Column: 1, Message: "there are no cases in here"}}
	case len(roots) > 1:
		return nil, text.Faults{{File: name, Line: roots[1].Line, Column: roots[1].Column, Message: "a file of cases has one document; all cases stand under cases"}}
	}
	var size text.Size
	tree, faults := s.Expand(roots[0], &size)
	if len(faults) > 0 {
		return nil, faults
	}
	f := &File{Name: name, decoder: form.NewDecoder(tree), text: s, objects: map[string][]*unstructured.Unstructured{}}
	if f.decoder.Struct("", tree, &f.document, nil) {
		f.link()
	}
	if faults := f.faults(); len(faults) > 0 {
		return nil, faults
	}
	return f, nil
}

// link gives the parts their places, and reads the files that they name.
func (f *File) link() {
	first := map[string]form.Path{}
	f.resolve(f.Given)
	for i := range f.document.Cases {
		c := &f.document.Cases[i]
		c.file, c.at = f, form.Path("cases").Index(i)
		f.Cases = append(f.Cases, c)
		if at, twice := first[c.Name]; twice && c.Name != "" {
			f.decoder.Fault(c.at.Key("name"), "another case has this name (in line %d)", f.decoder.Nearest(at).Line)
		}
		first[c.Name] = c.at.Key("name")
		if len(f.Given)+len(c.Given)+len(c.Steps) == 0 && (c.Expect == nil || reflect.ValueOf(*c.Expect).IsZero()) && !f.decoder.Faulty(c.at) {
			f.decoder.Fault(c.at, "nothing happens here, so the case asserts nothing: a case needs given, steps or expect")
		}
		f.resolve(c.Given)
		f.expect(c.Expect, c.at.Key("expect"))
		for j := range c.Steps {
			s := &c.Steps[j]
			f.resolve(s.Apply)
			f.resolve(s.Create)
			f.expect(s.Expect, s.at.Key("expect"))
		}
	}
}

// expect gives an expectation its place, and finds faults that would let it hold whatever happens.
func (f *File) expect(e *expectation, at form.Path) {
	if e == nil {
		return
	}
	e.at = at
	counts := func(list string, i int, c counted) {
		if c.Times != nil && c.AtMost != nil {
			f.decoder.FaultKey(at.Key(list).Index(i).Key("atMost"), "times says it already")
		}
	}
	for i, want := range e.Events {
		counts("events", i, want.counted)
	}
	for i, want := range e.Log {
		counts("log", i, want.counted)
	}
	for i, want := range e.Calls {
		counts("calls", i, want.counted)
	}
	for i, want := range e.Requests {
		counts("requests", i, want.counted)
		if strings.Contains(want.Name, "/") {
			f.decoder.Fault(at.Key("requests").Index(i).Key("name"), "want the name alone, without resource and namespace")
		}
	}
	for _, name := range sortedKeys(e.Conditions) {
		if len(e.Conditions[name]) == 0 {
			f.decoder.FaultKey(at.Key("conditions").Key(name), "must not be empty")
		}
	}
	for _, name := range sortedKeys(e.State) {
		if states, several := e.State[name].(map[string]any); several && len(states) == 0 {
			f.decoder.FaultKey(at.Key("state").Key(name), "must not be empty")
		}
	}
}

// resolve reads the files with objects that are named.
func (f *File) resolve(list objects) {
	for _, s := range list {
		if s.file == "" || f.objects[s.file] != nil {
			continue
		}
		found, err := f.read(s.file)
		if err == nil && len(found) == 0 {
			err = errors.New("there are no objects in it")
		}
		if err != nil {
			f.decoder.Fault(s.at, "reading %s: %v", s.file, cut(err))
		}
		f.objects[s.file] = found
	}
}

// read reads the objects of a file in the directory of this one, or below it.
func (f *File) read(name string) ([]*unstructured.Unstructured, error) {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return nil, errors.New("it is not in the directory of this file, or below")
	}
	data, err := text.ReadBelow(filepath.Dir(f.Name), filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	return text.ObjectsIn(data)
}

// cut removes the name of a file from an error that names it.
func cut(err error) error {
	if path, is := errors.AsType[*fs.PathError](err); is {
		return path.Err
	}
	return err
}

// beside returns a path that is relative to the file.
func (f *File) beside(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(f.Name), name)
}

// config returns the paths of the configuration under test.
func (f *File) config() []string { return f.paths(f.Config) }

// paths returns the paths of a configuration; by default the directory of the file.
func (f *File) paths(given []string) (out []string) {
	if len(given) == 0 {
		given = []string{"."}
	}
	for _, name := range given {
		out = append(out, f.beside(name))
	}
	return out
}

func (f *File) faults() (out text.Faults) {
	for _, one := range f.decoder.Faults {
		out = append(out, text.Fault{File: f.Name, Line: one.Line, Column: one.Column, Path: string(one.At), Message: one.Message})
	}
	return out.Sorted()
}

// line is the line of a case.
func (c *Case) line() int { return c.file.node(c.at.Key("name")).Line }

// node returns the node at a path, or the nearest one around it.
func (f *File) node(at form.Path) *yaml.Node { return f.decoder.KeyAt(at) }
