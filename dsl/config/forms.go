// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"reflect"

	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl"
)

var (
	_ form = (*texts)(nil)
	_ form = (*matches)(nil)
	_ form = (*handler)(nil)
)

// texts is one text or a list of them.
type texts []string

func (t *texts) read(d *decoder, p path, n *yaml.Node) bool {
	if n.Kind == yaml.SequenceNode {
		var list []string
		ok := d.value(p, n, reflect.ValueOf(&list).Elem())
		*t = list
		return ok
	}
	if n.Kind == yaml.MappingNode {
		d.faultAt(n, p, "want text or a list, found a map")
		return false
	}
	var one string
	ok := d.filled(p, n, reflect.ValueOf(&one).Elem())
	*t = texts{one}
	return ok
}

func (t *texts) schema(*schemer) *jsonSchema {
	text := &jsonSchema{Type: "string", MinLength: 1}
	return &jsonSchema{OneOf: []*jsonSchema{text, {Type: "array", Items: text, MinItems: 1}}}
}

// matches are conditions on labels or annotations, in the order of the document.
type matches []dsl.Match

// presence is a condition on a key alone.
type presence struct {
	Exists *bool `yaml:"exists" required:"true" doc:"Whether it must be there or must not be there, with any value."`
}

func (m *matches) read(d *decoder, p path, n *yaml.Node) bool {
	ok := d.entries(p, n, func(name string, at path, value *yaml.Node) {
		match := dsl.Match{Key: name}
		if value.Kind == yaml.MappingNode {
			var key presence
			d.value(at, value, reflect.ValueOf(&key).Elem())
			match.Op = dsl.Exists
			if key.Exists != nil && !*key.Exists {
				match.Op = dsl.Absent
			}
		} else {
			d.value(at, value, reflect.ValueOf(&match.Value).Elem())
		}
		*m = append(*m, match)
	})
	if ok && len(n.Content) == 0 {
		d.faultAt(n, p, "must not be empty")
	}
	return ok
}

func (m *matches) schema(s *schemer) *jsonSchema {
	value := &jsonSchema{OneOf: []*jsonSchema{{Type: "string"}, s.of(reflect.TypeFor[presence]())}}
	return &jsonSchema{Type: "object", AdditionalProperties: value, MinProperties: 1}
}

// read fills a handler. Its action is the one key that is no field and that the registry knows;
// what stands under the key has the form that the action says.
func (h *handler) read(d *decoder, p path, n *yaml.Node) bool {
	return d.oneAction(p, n, reflect.ValueOf(h).Elem(), "handler", func(name string, config any) {
		h.action, h.config = name, config
	})
}

func (h *handler) schema(s *schemer) *jsonSchema { return s.withAction(reflect.TypeFor[handler]()) }

// oneAction fills a struct that has one action beside its fields, or steps where it has that
// field. Took is called with the action's name, and with its configuration or nil when that is at
// fault.
func (d *decoder) oneAction(p path, n *yaml.Node, out reflect.Value, what string, took func(name string, config any)) bool {
	given, strayed := "", false
	take := func(name string, at path, value *yaml.Node) {
		if given != "" {
			d.faultKey(at, "a %s has one action, this one has %s already", what, given)
			return
		}
		given = name
		action, _ := d.registry.LookupAction(name)
		config := reflect.ValueOf(action.Config())
		if d.filled(at, value, config.Elem()) {
			took(name, config.Interface())
		} else {
			took(name, nil)
		}
	}
	actions := d.registry.Actions()
	ok := d.structure(p, n, out, &others{names: actions, take: take, strayed: func() { strayed = true }})
	if _, known := fieldsByName(out.Type())[steps]; known && d.has(p.key(steps)) {
		if given != "" {
			d.faultKey(p.key(steps), "a %s has one action or steps, this one has %s already", what, given)
		}
		return ok
	}
	if ok && given == "" && !strayed {
		d.faultAt(n, p, "a %s has an action (%s)", what, suggestion("", false, actions))
	}
	return ok
}

func fieldsByName(t reflect.Type) map[string]reflect.StructField {
	_, fields := fieldsOf(t)
	return fields
}
