// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package form reads what authors write into Go structs, strictly, and describes these structs.
// It is pure.
//
// A struct's tags say all there is to know of a field: its name (yaml, else json), whether it is required
// (required is true, or what is said where it is missing), unless which other ones are there (unless, with commas), its
// least value, of a map the least number of entries (min), what other tools call it (mistaken, with commas), whether a list has no element twice (unique), its
// default (shown, not set), and what it means (doc). [Decoder] reads a YAML node or a plain value into it,
// [Describe] makes its JSON Schema, and [Reference] the tables for people. What a Go type cannot say, a type says
// itself: see [Form] and [Choice].
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

// Form is a value with a form of its own, such as text or a list. Such types are pointers.
type Form interface {
	// ReadForm fills the value and reports whether there is something to go on with.
	ReadForm(d *Decoder, at Path, n *yaml.Node) bool
	// DescribeForm returns its schema.
	DescribeForm(d *Describer) *Schema
}

// Choice is a text that is one of a few words.
type Choice interface {
	// Choices returns what the words are, as in "cause", and the words.
	Choices() (what string, words []string)
}

// Documented is a type that says itself what it means, wherever it stands.
type Documented interface {
	// FormDoc returns what it means.
	FormDoc() string
}

// Foreign is an API of others whose structs are read. Text and lists may be empty there.
type Foreign struct {
	// Form returns the form of a type that cannot have one itself, for a pointer to a value; nil where it needs none.
	Form func(value any) Form
	// Stray says what may be meant by a key that is like none.
	Stray string
}

// formOf returns the form that a value has of its own, nil when there is none.
func (f *Foreign) formOf(value reflect.Value) Form {
	if own, is := reflect.TypeAssert[Form](value.Addr()); is {
		return own
	}
	if f == nil {
		return nil
	}
	return f.Form(value.Addr().Interface())
}

// Fault is one thing that is wrong.
type Fault struct {
	// At leads to the place, Line and Column are where it stands; 0 for a plain value.
	At           Path
	Line, Column int
	// Message says what is wrong, in one line.
	Message string

	// about is At, but of a field that is missing or mistyped, where it would be.
	about Path
}

// Decoder fills values strictly: what is not known, of the wrong kind or there twice is a fault, and all
// faults are gathered. It keeps the places of what it has seen, for faults that are found later.
type Decoder struct {
	// With is what forms of their own have to know beside the node, as their package says.
	With any
	// JSON: the structs are those of Go authors, with json tags and no others. Null leaves a field as it is, values may
	// be empty, and what is no map or list is read as encoding/json does.
	JSON bool
	// Computed reports whether a text stands for a value that is not known yet; it may stand anywhere.
	// Nil means that none does.
	Computed func(text string) bool
	// Foreign is set while structs of another API are read.
	Foreign *Foreign
	// What is what a key of a struct is to authors: field by default.
	What string
	// Faults are what was found so far.
	Faults []Fault

	root   *yaml.Node
	values map[Path]*yaml.Node
	keys   map[Path]*yaml.Node
}

// NewDecoder returns a decoder for a document without aliases and merge keys.
func NewDecoder(root *yaml.Node) *Decoder {
	return &Decoder{What: "field", root: root, values: map[Path]*yaml.Node{}, keys: map[Path]*yaml.Node{}}
}

// Fault notes a fault of the value at a place, or of the nearest value around it.
func (d *Decoder) Fault(at Path, format string, args ...any) {
	d.FaultAt(d.Nearest(at), at, format, args...)
}

// FaultKey notes a fault of the key at a place.
func (d *Decoder) FaultKey(at Path, format string, args ...any) {
	d.FaultAt(d.KeyAt(at), at, format, args...)
}

// KeyAt returns the node of the key at a place, or the nearest value where there is none.
func (d *Decoder) KeyAt(at Path) *yaml.Node {
	if n, found := d.keys[at]; found {
		return n
	}
	return d.Nearest(at)
}

// Missing notes at a value that a field of it is missing.
func (d *Decoder) Missing(at Path, field, format string, args ...any) {
	d.Fault(at, format, args...)
	d.Faults[len(d.Faults)-1].about = at.Key(field)
}

// FaultAt notes a fault of a node.
func (d *Decoder) FaultAt(n *yaml.Node, at Path, format string, args ...any) {
	message := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	d.Faults = append(d.Faults, Fault{At: at, Line: n.Line, Column: n.Column, Message: message, about: at})
}

// Faulty reports whether what stands at a place, or a value around it or in it, could not be read, or was not there
// though it must be: what follows from it is not worth telling.
func (d *Decoder) Faulty(at Path) bool {
	return d.Unread(at) || slices.ContainsFunc(d.Faults, func(f Fault) bool { return at.holds(f.about) })
}

// Unread is [Decoder.Faulty] without what is faulty in the value.
func (d *Decoder) Unread(at Path) bool {
	return slices.ContainsFunc(d.Faults, func(f Fault) bool { return f.about.holds(at) })
}

// Nearest returns the node at a place, or the nearest one around it.
func (d *Decoder) Nearest(at Path) *yaml.Node {
	for ; at != ""; at = at.Parent() {
		if n, found := d.values[at]; found {
			return n
		}
	}
	return d.root
}

// Has reports whether there is a value at a place, faulty or not.
func (d *Decoder) Has(at Path) bool { return d.values[at] != nil }

// Value fills what out points to from a node that may be empty text, and reports whether it could.
func (d *Decoder) Value(at Path, n *yaml.Node, out any) bool {
	return d.value(at, n, reflect.ValueOf(out).Elem())
}

// Filled is [Decoder.Value], but text must not be empty. Only among the values of a map it may be.
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

// value fills out, which can be addressed.
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

// nothing reports whether a node holds nothing that could be read now, which may be a fault.
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

// readsItself reports whether a type is read whole.
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

// list fills a slice. Elements that are at fault are zero, so that indexes stay what they are.
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

// readKey reads the key of a map as encoding/json does.
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

// Entries calls visit for each entry of a map, but for those whose keys are no text or there twice.
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
