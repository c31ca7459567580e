// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	_ "embed" // for the types
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/handwerk-dev/handwerk/dsl/plain/scan"
)

// fieldTypesText has the types of the fields of built-in kinds: a line for each, with its name and its JSON. They are those of client-go,
// which reads the types of all kinds at once: that takes 80 ms of processor time, and few kinds are written to.
//
//go:embed fieldtypes.txt
var fieldTypesText []byte

// fieldTypes reads the types of the kinds that are asked for, once in a process.
type fieldTypes struct {
	mu    sync.Mutex
	texts map[string][]byte // by name; nil before they are needed
	read  map[string]fieldType
	kinds map[schema.GroupVersionKind]managedfields.TypeConverter
}

// fieldType is a type, and the names of those that it refers to.
type fieldType struct {
	smd.TypeDef
	refers []string
}

var builtinTypes = &fieldTypes{read: map[string]fieldType{}, kinds: map[schema.GroupVersionKind]managedfields.TypeConverter{}}

// of returns the types of a kind's fields. The kind is one of client-go's scheme.
func (f *fieldTypes) of(kind schema.GroupVersionKind) managedfields.TypeConverter {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.kinds[kind]
	if known == nil {
		parser := &typed.Parser{}
		if name, err := scheme.Scheme.ToOpenAPIDefinitionName(kind); err == nil {
			parser.Schema.Types = f.below(name)
		}
		known = managedfields.NewSchemeTypeConverter(scheme.Scheme, parser)
		f.kinds[kind] = known
	}
	return known
}

// below returns a type with all that it refers to.
func (f *fieldTypes) below(name string) (out []smd.TypeDef) {
	seen := sets.New(name)
	for queue := []string{name}; len(queue) > 0; queue = queue[1:] {
		one := f.one(queue[0])
		out = append(out, one.TypeDef)
		for _, next := range one.refers {
			if !seen.Has(next) {
				seen.Insert(next)
				queue = append(queue, next)
			}
		}
	}
	return out
}

// one returns a type.
func (f *fieldTypes) one(name string) fieldType {
	if f.texts == nil {
		f.texts = map[string][]byte{}
		for line := range bytes.Lines(fieldTypesText) {
			name, text, _ := bytes.Cut(line, []byte("\t"))
			f.texts[string(name)] = text
		}
	}
	known, read := f.read[name]
	if !read {
		known.Name = name
		known.refers = readAtom(&known.Atom, f.texts[name])
		f.read[name] = known
	}
	return known
}

// readAtom reads a type without its name, and returns the names of those that it refers to. Members of other kinds are left out.
func readAtom(to *smd.Atom, text []byte) (refers []string) {
	for key, value := range scan.Members(text) {
		switch string(key) {
		case "scalar":
			to.Scalar = new(smd.Scalar(scan.Text(value)))
		case "list":
			to.List, refers = readList(value, refers)
		case "map":
			to.Map, refers = readMap(value, refers)
		}
	}
	return refers
}

func readList(text []byte, refers []string) (*smd.List, []string) {
	out := &smd.List{}
	for each := range scan.Elements(scan.Member(text, "keys")) {
		out.Keys = append(out.Keys, scan.Text(each))
	}
	return out, readElements(&out.ElementType, &out.ElementRelationship, text, refers)
}

func readMap(text []byte, refers []string) (*smd.Map, []string) {
	out := &smd.Map{}
	for each := range scan.Elements(scan.Member(text, "fields")) {
		field := smd.StructField{}
		for key, value := range scan.Members(each) {
			switch string(key) {
			case "name":
				field.Name = scan.Text(value)
			case "type":
				refers = readReference(&field.Type, value, refers)
			case "default":
				field.Default = scan.Value(value)
			}
		}
		out.Fields = append(out.Fields, field)
	}
	return out, readElements(&out.ElementType, &out.ElementRelationship, text, refers)
}

// readElements reads the type of the elements of a list or a map, and whether they have managers of their own.
func readElements(to *smd.TypeRef, relationship *smd.ElementRelationship, text []byte, refers []string) []string {
	for key, value := range scan.Members(text) {
		switch string(key) {
		case "elementType":
			refers = readReference(to, value, refers)
		case "elementRelationship":
			*relationship = smd.ElementRelationship(scan.Text(value))
		}
	}
	return refers
}

// readReference reads a type that is named, or that stands in the place of a name.
func readReference(to *smd.TypeRef, text []byte, refers []string) []string {
	for key, value := range scan.Members(text) {
		switch string(key) {
		case "namedType":
			to.NamedType = new(scan.Text(value))
			refers = append(refers, *to.NamedType)
		case "elementRelationship":
			to.ElementRelationship = new(smd.ElementRelationship(scan.Text(value)))
		case "nullable":
			to.Nullable = string(value) == "true"
		}
	}
	return append(refers, readAtom(&to.Inlined, text)...)
}
