// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package form reads what authors write into Go structs, strictly, and describes these structs. It is pure.
//
// A struct's tags define each field: its name (yaml, else json), whether it is required (required is true, or the
// message for a missing field), the fields that make it unnecessary (unless, separated by commas), its least value
// or for a map the least number of entries (min), its names in other tools (mistaken, separated by commas), whether
// elements of a list must differ (unique), its default (shown, not set), and its description (doc). [Decoder] reads
// a YAML node or a plain value into a struct, [Describe] makes its JSON Schema, and an [Outline] of that is what
// people read. A type can define its own form; see [Form] and [Choice].
package form

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Form is a value with its own form, such as text or a list. Such types are pointers.
type Form interface {
	// ReadForm fills the value and reports whether the result can be used.
	ReadForm(d *Decoder, at Path, n *yaml.Node) bool
	// DescribeForm returns its schema.
	DescribeForm(d *Describer) *Schema
}

// Choice is a text that must be one of a few words.
type Choice interface {
	// Choices returns the kind of the words, as in "cause", and the words.
	Choices() (what string, words []string)
}

// Documented is a type with its own description, wherever it is used.
type Documented interface {
	// FormDoc returns the description.
	FormDoc() string
}

// Foreign is another API whose structs are read. Text and lists may be empty there.
type Foreign struct {
	// Form returns the form of a type that cannot have one itself, for a pointer to a value; nil if it needs none.
	Form func(value any) Form
	// Stray is advice for a key that is not similar to any field.
	Stray string
}

// formOf returns a value's own form, or nil.
func (f *Foreign) formOf(value reflect.Value) Form {
	if own, is := reflect.TypeAssert[Form](value.Addr()); is {
		return own
	}
	if f == nil {
		return nil
	}
	return f.Form(value.Addr().Interface())
}

// Fault is one fault.
type Fault struct {
	// At is the path of the faulty value; Line and Column are its place, or 0 for a plain value.
	At           Path
	Line, Column int
	// Message describes the fault in one line.
	Message string

	// about is At; for a missing or mistyped field, it is the path that the field should have.
	about Path
}

// Decoder fills values strictly: unknown keys, duplicate keys and values of the wrong kind are faults, and all
// faults are collected. It remembers the places of values for faults that are found later.
type Decoder struct {
	// With is additional input for types with their own form; their package defines it.
	With any
	// JSON: the structs are those of Go authors, with json tags alone. Null leaves a field as it is, values may be
	// empty, and values other than maps and lists are read as by encoding/json.
	JSON bool
	// Computed reports whether a text stands for a value that is not known yet, which is allowed everywhere. Nil
	// means never.
	Computed func(text string) bool
	// Foreign is set while structs of another API are read.
	Foreign *Foreign
	// What is the authors' word for a key of a struct; by default field.
	What string
	// Faults are the faults so far.
	Faults []Fault

	root   *yaml.Node
	values map[Path]*yaml.Node
	keys   map[Path]*yaml.Node
}

// NewDecoder returns a decoder for a document without aliases and merge keys.
func NewDecoder(root *yaml.Node) *Decoder {
	return &Decoder{What: "field", root: root, values: map[Path]*yaml.Node{}, keys: map[Path]*yaml.Node{}}
}

// Fault notes a fault of the value at a path, or of the nearest value around it.
func (d *Decoder) Fault(at Path, format string, args ...any) {
	d.FaultAt(d.Nearest(at), at, format, args...)
}

// FaultKey notes a fault of the key at a path.
func (d *Decoder) FaultKey(at Path, format string, args ...any) {
	d.FaultAt(d.KeyAt(at), at, format, args...)
}

// KeyAt returns the node of the key at a path, or the nearest value if there is none.
func (d *Decoder) KeyAt(at Path) *yaml.Node {
	if n, found := d.keys[at]; found {
		return n
	}
	return d.Nearest(at)
}

// Missing notes that a value lacks a field.
func (d *Decoder) Missing(at Path, field, format string, args ...any) {
	d.Fault(at, format, args...)
	d.Faults[len(d.Faults)-1].about = at.Key(field)
}

// FaultAt notes a fault of a node.
func (d *Decoder) FaultAt(n *yaml.Node, at Path, format string, args ...any) {
	message := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	d.Faults = append(d.Faults, Fault{At: at, Line: n.Line, Column: n.Column, Message: message, about: at})
}

// Faulty reports whether the value at a path, or one around it or in it, could not be read or is missing although
// it is required. Faults that follow from it should not be reported.
func (d *Decoder) Faulty(at Path) bool {
	return d.Unread(at) || slices.ContainsFunc(d.Faults, func(f Fault) bool { return at.holds(f.about) })
}

// Unread is [Decoder.Faulty] without faults inside the value.
func (d *Decoder) Unread(at Path) bool {
	return slices.ContainsFunc(d.Faults, func(f Fault) bool { return f.about.holds(at) })
}

// Nearest returns the node at a path, or the nearest one around it.
func (d *Decoder) Nearest(at Path) *yaml.Node {
	for ; at != ""; at = at.Parent() {
		if n, found := d.values[at]; found {
			return n
		}
	}
	return d.root
}

// Has reports whether a path has a value, faulty or not.
func (d *Decoder) Has(at Path) bool { return d.values[at] != nil }

// Value fills the value that out points to, and reports whether it could. Text may be empty.
func (d *Decoder) Value(at Path, n *yaml.Node, out any) bool {
	return d.value(at, n, reflect.ValueOf(out).Elem())
}

// Filled is [Decoder.Value], but text must not be empty, except for the values of a map.
func (d *Decoder) Filled(at Path, n *yaml.Node, out any) bool {
	return d.filled(at, n, reflect.ValueOf(out).Elem())
}

func (d *Decoder) filled(at Path, n *yaml.Node, out reflect.Value) bool {
	_, reads := reflect.TypeAssert[encoding.TextUnmarshaler](out.Addr())
	if (reads || out.Kind() == reflect.String) && IsText(n) && n.Value == "" && !d.mayBeEmpty() {
		d.values[at] = n
		d.FaultAt(n, at, "must not be empty")
		return false
	}
	return d.value(at, n, out)
}

// mayBeEmpty reports whether text and lists may be empty.
func (d *Decoder) mayBeEmpty() bool { return d.JSON || d.Foreign != nil }

// value fills out, which must be addressable.
func (d *Decoder) value(at Path, n *yaml.Node, out reflect.Value) bool {
	d.values[at] = n
	own := d.Foreign.formOf(out)
	if (own == nil || d.Foreign == nil) && d.nothing(at, n, out) {
		return false
	}
	if own != nil {
		return own.ReadForm(d, at, n)
	}
	if readsItself(out.Type(), d.JSON) {
		return d.scalar(at, n, out)
	}
	switch out.Kind() {
	case reflect.Pointer:
		target := reflect.New(out.Type().Elem())
		ok := d.value(at, n, target.Elem())
		if ok {
			out.Set(target)
		}
		return ok
	case reflect.Struct:
		return d.structure(at, n, out, nil)
	case reflect.Slice:
		return d.list(at, n, out)
	case reflect.Map:
		return d.mapping(at, n, out)
	case reflect.Interface:
		value, ok := d.Plain(at, n)
		if ok && value != nil {
			out.Set(reflect.ValueOf(value))
		}
		return ok
	default:
		return d.scalar(at, n, out)
	}
}

// nothing reports whether a node has no value to read now. That may be a fault.
func (d *Decoder) nothing(at Path, n *yaml.Node, out reflect.Value) bool {
	_, judges := reflect.TypeAssert[json.Unmarshaler](out.Addr())
	switch {
	case d.Computed != nil && IsText(n) && d.Computed(n.Value):
		return true
	case !IsNull(n), out.Kind() == reflect.Interface && !d.JSON, d.JSON && judges:
		return false
	case !d.JSON:
		d.FaultAt(n, at, "must not be empty")
	}
	return true
}

// readsItself reports whether a type is read as a whole, by its own method.
func readsItself(t reflect.Type, asJSON bool) bool {
	p := reflect.PointerTo(t)
	switch {
	case p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return true
	case t.Kind() == reflect.Interface:
		return t.NumMethod() > 0
	case !asJSON:
		return false
	}
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || t == reflect.TypeFor[[]byte]()
}

// list fills a slice. Elements with faults are zero, so that indexes stay correct.
func (d *Decoder) list(at Path, n *yaml.Node, out reflect.Value) bool {
	if n.Kind != yaml.SequenceNode {
		d.FaultAt(n, at, "want a list, found %s", Found(n))
		return false
	}
	if len(n.Content) == 0 && !d.mayBeEmpty() {
		d.FaultAt(n, at, "must not be empty")
		return false
	}
	out.Set(reflect.MakeSlice(out.Type(), len(n.Content), len(n.Content)))
	for i, element := range n.Content {
		d.filled(at.Index(i), element, out.Index(i))
	}
	return true
}

// mapping fills a map.
func (d *Decoder) mapping(at Path, n *yaml.Node, out reflect.Value) bool {
	out.Set(reflect.MakeMap(out.Type()))
	return d.Entries(at, n, func(name string, at Path, value *yaml.Node) {
		element := reflect.New(out.Type().Elem()).Elem()
		key := reflect.New(out.Type().Key()).Elem()
		if err := readKey(name, key); err != nil {
			d.FaultKey(at, "%s is no key here: %v", Quoted(name), err)
		} else if d.value(at, value, element) {
			out.SetMapIndex(key, element)
		}
	})
}

// readKey reads the key of a map as by encoding/json.
func readKey(name string, out reflect.Value) error {
	if text, reads := reflect.TypeAssert[encoding.TextUnmarshaler](out.Addr()); reads {
		return text.UnmarshalText([]byte(name))
	}
	if out.Kind() == reflect.String {
		out.SetString(name)
		return nil
	}
	if json.Unmarshal([]byte(name), out.Addr().Interface()) != nil {
		return errors.New("want " + wanted(out.Type()))
	}
	return nil
}

// Entries calls visit for each entry of a map, except those whose keys are not text or are duplicates.
func (d *Decoder) Entries(at Path, n *yaml.Node, visit func(name string, at Path, value *yaml.Node)) bool {
	d.values[at] = n
	if n.Kind != yaml.MappingNode {
		d.FaultAt(n, at, "want a map, found %s", Found(n))
		return false
	}
	first := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || IsNull(key) {
			d.FaultAt(key, at, "want text for a key, found %s", Found(key))
			continue
		}
		place := at.Key(key.Value)
		if earlier, twice := first[key.Value]; twice {
			d.FaultAt(key, place, "the key is there twice (first in line %d)", earlier.Line)
			continue
		}
		first[key.Value] = key
		d.keys[place] = key
		visit(key.Value, place, value)
	}
	return true
}
