// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl"
)

// decoder fills values of the form from a document, strictly: what is not known, of the wrong
// kind or there twice is a fault, and all faults are gathered. It keeps the places of what it has
// seen, for faults that are found later.
type decoder struct {
	source   *source
	registry *dsl.Registry
	root     *yaml.Node
	values   map[path]*yaml.Node
	keys     map[path]*yaml.Node
	faults   Faults
}

// form is a part of the form that a plain Go type cannot express. Such types are pointers.
type form interface {
	// read fills the form and reports whether it could.
	read(d *decoder, p path, n *yaml.Node) bool
	// schema describes it.
	schema(s *schemer) *jsonSchema
}

func newDecoder(s *source, registry *dsl.Registry, root *yaml.Node) *decoder {
	return &decoder{
		source: s, registry: registry, root: root,
		values: map[path]*yaml.Node{}, keys: map[path]*yaml.Node{},
	}
}

// fault notes a fault of the value at p, or of the nearest value around it.
func (d *decoder) fault(p path, format string, args ...any) {
	d.faultAt(d.nearest(p), p, format, args...)
}

// faultKey notes a fault of the key at p.
func (d *decoder) faultKey(p path, format string, args ...any) {
	n, found := d.keys[p]
	if !found {
		n = d.nearest(p)
	}
	d.faultAt(n, p, format, args...)
}

func (d *decoder) faultAt(n *yaml.Node, p path, format string, args ...any) {
	message := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	d.faults = append(d.faults, Fault{
		File: d.source.name, Line: n.Line, Column: n.Column, Path: string(p), Message: message,
	})
}

func (d *decoder) nearest(p path) *yaml.Node {
	for ; p != ""; p = p.parent() {
		if n, found := d.values[p]; found {
			return n
		}
	}
	return d.root
}

// has reports whether there is a value at p, faulty or not.
func (d *decoder) has(p path) bool { return d.values[p] != nil }

// value fills out, which can be addressed, from n and reports whether it could.
func (d *decoder) value(p path, n *yaml.Node, out reflect.Value) bool {
	d.values[p] = n
	if isNull(n) && out.Kind() != reflect.Interface {
		d.faultAt(n, p, "must not be empty")
		return false
	}
	switch own := out.Addr().Interface().(type) {
	case form:
		return own.read(d, p, n)
	case encoding.TextUnmarshaler:
		return d.scalar(p, n, out)
	}
	switch out.Kind() {
	case reflect.Pointer:
		target := reflect.New(out.Type().Elem())
		ok := d.value(p, n, target.Elem())
		if ok {
			out.Set(target)
		}
		return ok
	case reflect.Struct:
		return d.structure(p, n, out, nil)
	case reflect.Slice:
		return d.list(p, n, out)
	case reflect.Map:
		return d.mapping(p, n, out)
	case reflect.Interface:
		value, ok := d.plain(p, n)
		if ok && value != nil {
			out.Set(reflect.ValueOf(value))
		}
		return ok
	default:
		return d.scalar(p, n, out)
	}
}

// list fills a slice. Elements that are at fault are zero, so that indexes stay what they are.
func (d *decoder) list(p path, n *yaml.Node, out reflect.Value) bool {
	if n.Kind != yaml.SequenceNode {
		d.faultAt(n, p, "want a list, found %s", found(n))
		return false
	}
	if len(n.Content) == 0 {
		d.faultAt(n, p, "must not be empty")
		return false
	}
	out.Set(reflect.MakeSlice(out.Type(), len(n.Content), len(n.Content)))
	for i, element := range n.Content {
		d.filled(p.index(i), element, out.Index(i))
	}
	return true
}

// filled is value, but text must not be empty. Only among the values of a map it may be.
func (d *decoder) filled(p path, n *yaml.Node, out reflect.Value) bool {
	if out.Kind() == reflect.String && isBlank(n) {
		d.values[p] = n
		d.faultAt(n, p, "must not be empty")
		return false
	}
	return d.value(p, n, out)
}

// mapping fills a map with text for keys.
func (d *decoder) mapping(p path, n *yaml.Node, out reflect.Value) bool {
	out.Set(reflect.MakeMap(out.Type()))
	return d.entries(p, n, func(name string, at path, value *yaml.Node) {
		element := reflect.New(out.Type().Elem()).Elem()
		if d.value(at, value, element) {
			out.SetMapIndex(reflect.ValueOf(name).Convert(out.Type().Key()), element)
		}
	})
}

// entries calls visit for each entry of a map, but for those whose keys are no text or there
// twice.
func (d *decoder) entries(p path, n *yaml.Node, visit func(name string, at path, value *yaml.Node)) bool {
	if n.Kind != yaml.MappingNode {
		d.faultAt(n, p, "want a map, found %s", found(n))
		return false
	}
	first := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || isNull(key) {
			d.faultAt(key, p, "want text for a key, found %s", found(key))
			continue
		}
		at := p.key(key.Value)
		if earlier, twice := first[key.Value]; twice {
			d.faultAt(key, at, "the key is there twice (first in line %d)", earlier.Line)
			continue
		}
		first[key.Value] = key
		d.keys[at] = key
		visit(key.Value, at, value)
	}
	return true
}
