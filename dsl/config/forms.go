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
	take := func(name string, at path, value *yaml.Node) {
		if h.action != "" {
			d.faultKey(at, "a handler has one action, this one has %s already", h.action)
			return
		}
		h.action = name
		action, _ := d.registry.LookupAction(name)
		config := reflect.ValueOf(action.Config())
		if d.filled(at, value, config.Elem()) {
			h.config = config.Interface()
		}
	}
	actions := d.registry.Actions()
	strayed := func() { h.strays = true }
	ok := d.structure(p, n, reflect.ValueOf(h).Elem(), &others{names: actions, take: take, strayed: strayed})
	if ok && h.action == "" && !h.strays {
		d.faultAt(n, p, "a handler has an action (%s)", suggestion("", false, actions))
	}
	return ok
}

func (h *handler) schema(s *schemer) *jsonSchema { return s.handler() }
