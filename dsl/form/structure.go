// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package form

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl/words"
)

// Others handles the entries of a map for which its struct has no field.
type Others struct {
	// Names are the entries to handle.
	Names []string
	// Take is called for each of these entries.
	Take func(name string, at Path, value *yaml.Node)
	// Strayed is called for each other entry.
	Strayed func()
	// Elsewhere says where an entry belongs that is unknown here, for its message; empty if that is not known. Optional.
	Elsewhere func(name string) string
}

// Struct fills the struct that out points to from a map; rest may be nil.
func (d *Decoder) Struct(at Path, n *yaml.Node, out any, rest *Others) bool {
	return d.structure(at, n, reflect.ValueOf(out).Elem(), rest)
}

func (d *Decoder) structure(place Path, n *yaml.Node, out reflect.Value, rest *Others) bool {
	names, fields := fieldsOf(out.Type(), d.JSON)
	rest = cmp.Or(rest, &Others{})
	known := slices.Concat(names, rest.Names)
	given := map[string]bool{}
	isMap := d.Entries(place, n, func(name string, at Path, value *yaml.Node) {
		given[name] = true
		field, isField := fields[name]
		switch {
		case isField:
			if into := fieldOf(out, field.Index); d.filled(at, value, into) {
				d.least(at, value, field, into)
				d.unique(at, value, field)
			}
		case slices.Contains(rest.Names, name):
			rest.Take(name, at, value)
		default:
			if rest.Strayed != nil {
				rest.Strayed()
			}
			meant, near := words.Nearest(name, known)
			if other := mistakenFor(name, fields); !near && other != "" {
				name, meant, near = other, other, true
			}
			given[meant] = given[meant] || near
			hint := words.Hint(name, known)
			if d.Foreign != nil && !near {
				hint = d.Foreign.Stray
			}
			if rest.Elsewhere != nil && !near {
				hint = cmp.Or(rest.Elsewhere(name), hint)
			}
			d.FaultKey(at, "unknown %s (%s)", d.What, hint)
			if near {
				d.Faults[len(d.Faults)-1].about = place.Key(meant)
			}
		}
	})
	delete(given, "") // an empty name means that the field has none
	if isMap && !d.JSON {
		d.lacks(place, names, fields, given)
	}
	return isMap
}

// mistakenFor returns the field that has the name in other tools; empty if there is none.
func mistakenFor(name string, fields map[string]reflect.StructField) string {
	for _, known := range slices.Sorted(maps.Keys(fields)) {
		if others := strings.Split(fields[known].Tag.Get("mistaken"), ","); name != "" && slices.Contains(others, name) {
			return known
		}
	}
	return ""
}

// lacks notes missing required fields.
func (d *Decoder) lacks(place Path, names []string, fields map[string]reflect.StructField, given map[string]bool) {
	for _, name := range names {
		tag := fields[name].Tag
		message := tag.Get("required")
		if message == "true" {
			message = name + " is required"
		}
		instead := func(other string) bool { return given[other] }
		if message != "" && !given[name] && !slices.ContainsFunc(strings.Split(tag.Get("unless"), ","), instead) {
			d.Missing(place, name, "%s", message)
		}
	}
}

// Fields returns the names of a struct's fields for authors, in their order.
func Fields(t reflect.Type) []string {
	names, _ := fieldsOf(t, false)
	return names
}

// JSONFields returns the fields that encoding/json writes for a struct, by name, and their names in order.
func JSONFields(t reflect.Type) (names []string, fields map[string]reflect.StructField) {
	return fieldsOf(t, true)
}

// fieldsOf returns the names of a struct's fields in order, and the fields by name. A field without a tag has its
// Go name. Of two fields with one name, the less deeply embedded one counts.
func fieldsOf(t reflect.Type, asJSON bool) (names []string, fields map[string]reflect.StructField) {
	fields = map[string]reflect.StructField{}
	for _, field := range reflect.VisibleFields(t) {
		name := tagged(field, asJSON)
		if name == "" && !field.Anonymous {
			name = field.Name
		}
		if name == "" || name == "-" || !field.IsExported() || !reachable(t, field.Index, asJSON) {
			continue
		}
		earlier, twice := fields[name]
		if !twice {
			names = append(names, name)
		}
		if !twice || len(field.Index) < len(earlier.Index) {
			fields[name] = field
		}
	}
	return names, fields
}

// tagged returns the name in a field's tag. With asJSON, only the json tag counts.
func tagged(field reflect.StructField, asJSON bool) string {
	tag := field.Tag.Get("json")
	if !asJSON {
		tag = cmp.Or(field.Tag.Get("yaml"), tag)
	}
	name, _, _ := strings.Cut(tag, ",")
	return name
}

// reachable reports whether a field belongs to the struct: the fields on the path to it are embedded, without a
// name of their own and without pointers that cannot be set.
func reachable(t reflect.Type, index []int, asJSON bool) bool {
	for i := range index[:len(index)-1] {
		on := t.FieldByIndex(index[:i+1])
		if tagged(on, asJSON) != "" || on.Type.Kind() == reflect.Pointer && !on.IsExported() {
			return false
		}
	}
	return true
}

// fieldOf returns a field, and allocates embedded structs on the way to it.
func fieldOf(out reflect.Value, index []int) reflect.Value {
	for i, step := range index {
		if i > 0 && out.Kind() == reflect.Pointer {
			if out.IsNil() {
				out.Set(reflect.New(out.Type().Elem()))
			}
			out = out.Elem()
		}
		out = out.Field(step)
	}
	return out
}

// Unknown is the message for a word that is not a known one.
func Unknown(what, word string, known []string) string {
	return fmt.Sprintf("unknown %s %s (%s)", what, Quoted(word), words.Hint(word, known))
}
