// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl"
)

// others takes the entries of a map that its struct has no field for.
type others struct {
	// names are the entries it takes.
	names []string
	take  func(name string, at path, value *yaml.Node)
	// strayed is called for each entry that nobody takes.
	strayed func()
}

// structure fills a struct from a map. Fields without a yaml tag are left alone.
func (d *decoder) structure(p path, n *yaml.Node, out reflect.Value, rest *others) bool {
	names, fields := fieldsOf(out.Type())
	if rest == nil {
		rest = &others{strayed: func() {}}
	}
	known := slices.Concat(names, rest.names)
	given := map[string]bool{}
	isMap := d.entries(p, n, func(name string, at path, value *yaml.Node) {
		given[name] = true
		if field, ok := fields[name]; ok {
			if into := out.FieldByIndex(field.Index); d.filled(at, value, into) {
				d.least(at, value, field, into)
			}
			return
		}
		if slices.Contains(rest.names, name) {
			rest.take(name, at, value)
			return
		}
		rest.strayed()
		meant, near := dsl.Nearest(name, known)
		given[meant] = given[meant] || near
		d.faultKey(at, "unknown field (%s)", suggestion(meant, near, known))
	})
	for _, name := range names {
		tag := fields[name].Tag
		instead := tag.Get("unless")
		if isMap && tag.Get("required") != "" && !given[name] && (instead == "" || !given[instead]) {
			d.faultAt(n, p, "%s is required", name)
		}
	}
	return isMap
}

// fieldsOf returns the yaml names of a struct's fields in their order, and the fields by name.
func fieldsOf(t reflect.Type) (names []string, fields map[string]reflect.StructField) {
	fields = map[string]reflect.StructField{}
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if name == "" || name == "-" || !field.IsExported() {
			continue
		}
		names = append(names, name)
		fields[name] = field
	}
	return names, fields
}

// suggestion helps with a word that is not known.
func suggestion(meant string, near bool, known []string) string {
	if near {
		return fmt.Sprintf("did you mean %q?", meant)
	}
	switch len(known) {
	case 0:
		return "there are none"
	case 1:
		return "want " + known[0]
	default:
		return "want one of " + strings.Join(known, ", ")
	}
}

// unknown says that a word is not one of those known.
func unknown(what, word string, known []string) string {
	meant, near := dsl.Nearest(word, known)
	return fmt.Sprintf("unknown %s %s (%s)", what, quoted(word), suggestion(meant, near, known))
}
