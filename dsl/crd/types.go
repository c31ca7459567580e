// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/handwerk-dev/handwerk/dsl/form"
)

// quantityPattern matches a quantity of Kubernetes, as in 1.5, 100m and 2Gi.
const quantityPattern = `^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+(\.[0-9]*)?)?$`

// builtin returns the schema of a built-in type of that name, or nil.
func builtin(name string) *apiextensions.JSONSchemaProps {
	either := []apiextensions.JSONSchemaProps{{Type: "integer"}, {Type: "string"}}
	out, known := map[string]apiextensions.JSONSchemaProps{
		"string":        {Type: "string"},
		"boolean":       {Type: "boolean"},
		"integer":       {Type: "integer", Format: "int64"},
		"number":        {Type: "number"},
		"float":         {Type: "number"},
		"date":          {Type: "string", Format: "date"},
		"datetime":      {Type: "string", Format: "date-time"},
		"object":        {Type: "object", XPreserveUnknownFields: new(true)},
		"int-or-string": {AnyOf: either, XIntOrString: true},
		"quantity":      {AnyOf: either, XIntOrString: true, Pattern: quantityPattern},
	}[name]
	if !known {
		return nil
	}
	return &out
}

// builtins are the names of these types; others are names that people know from elsewhere.
var (
	builtins = []string{"string", "integer", "number", "boolean", "date", "datetime", "quantity", "int-or-string", "object"}
	others   = map[string]string{
		"int": "integer", "int32": "integer", "int64": "integer", "long": "integer", "bool": "boolean", "double": "number",
		"float32": "number", "float64": "number", "str": "string", "text": "string", "time": "datetime", "date-time": "datetime",
		"timestamp": "datetime", "list": "[]string", "array": "[]string", "map": "map[string]string", "any": "object",
		"IntOrString": "int-or-string",
	}
	typeNames = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)
)

// typed makes the schema of a type; nil if it has a fault. The type's text begins at character at.
func (b *builder) typed(path []string, to steps, t text, typ string, at int) *apiextensions.JSONSchemaProps {
	prefix, word := "", ""
	switch {
	case strings.HasPrefix(typ, "[]"):
		prefix, word = "[]", "items"
	case strings.HasPrefix(typ, "map[string]"):
		prefix, word = "map[string]", "additionalProperties"
	case strings.HasPrefix(typ, "map["):
		b.faultIn(path, t, at, "the keys of a map are text (want map[string]…)")
		return nil
	default:
		return b.named(path, to, t, typ, at)
	}
	name := strings.TrimLeft(strings.TrimPrefix(typ, prefix), " ")
	element := b.typed(path, to.to(word), t, name, at+len(typ)-len(name))
	if word == "items" {
		return listOf(element)
	}
	return mapOf(element)
}

// listOf returns the schema of a list; nil if its element has a fault. A default of the element has no effect there.
func listOf(element *apiextensions.JSONSchemaProps) *apiextensions.JSONSchemaProps {
	if element == nil {
		return nil
	}
	element.Default = nil
	return &apiextensions.JSONSchemaProps{Type: "array", Items: &apiextensions.JSONSchemaPropsOrArray{Schema: element}}
}

// mapOf returns the schema of a map; nil if its element has a fault. A default of the element has no effect there.
func mapOf(element *apiextensions.JSONSchemaProps) *apiextensions.JSONSchemaProps {
	if element == nil {
		return nil
	}
	element.Default = nil
	return &apiextensions.JSONSchemaProps{Type: "object", AdditionalProperties: &apiextensions.JSONSchemaPropsOrBool{Allows: true, Schema: element}}
}

// emptyObject returns the schema of an object without fields.
func emptyObject() *apiextensions.JSONSchemaProps {
	return &apiextensions.JSONSchemaProps{Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{}}
}

// named makes the schema of a type that has a name.
func (b *builder) named(path []string, to steps, t text, name string, at int) *apiextensions.JSONSchemaProps {
	if out := builtin(name); out != nil {
		return out
	}
	if _, own := b.form.Types[name]; own {
		if begin := slices.Index(b.open, name); begin >= 0 {
			if cycle := b.open[begin:]; !slices.Contains(b.cyclic, name) {
				b.cyclic = append(b.cyclic, cycle...)
				b.faultIn(path, t, at, "the type "+name+" contains itself ("+strings.Join(append(slices.Clone(cycle), name), " → ")+"), which a CRD cannot say")
			}
			return nil
		}
		return b.own(name, to)
	}
	message := form.Unknown("type", name, slices.Concat(builtins, slices.Sorted(maps.Keys(b.form.Types))))
	if meant, known := others[name]; known {
		message = "unknown type " + form.Quoted(name) + " (did you mean " + form.Quoted(meant) + "?)"
	}
	if name == "" {
		message = `want a type, as in "integer | default=1"`
	}
	b.faultIn(path, t, at, message)
	return nil
}

// own makes the schema of a type of the author's.
func (b *builder) own(name string, to steps) *apiextensions.JSONSchemaProps {
	b.open = append(b.open, name)
	defer func() { b.open = b.open[:len(b.open)-1] }()
	path := []string{"types", name}
	out, required := b.field(path, to, b.form.Types[name])
	if required {
		b.fault(path, "required belongs to the field that has this type")
	}
	return out
}

// typeName checks the name of a type of the author's.
func (b *builder) typeName(name string) {
	switch {
	case builtin(name) != nil:
		b.fault([]string{"types", name}, "%s is a type already", name)
	case !typeNames.MatchString(name):
		b.fault([]string{"types", name}, "want a name of letters and digits for a type, as in User")
	}
}

// defaults reports whether a field of an object has a default. Objects within have one already if one of their
// fields has.
func defaults(s *apiextensions.JSONSchemaProps) bool {
	for _, p := range s.Properties {
		if p.Default != nil {
			return true
		}
	}
	return false
}

// filling returns the default of an object: its required fields with their defaults. The API server fills in the
// others, but only after it has checked the default by the object's rules; so an object with rules gets all of them. It
// reports false if a required field has no default.
func filling(s *apiextensions.JSONSchemaProps) (*apiextensions.JSON, bool) {
	out := map[string]json.RawMessage{}
	if len(s.XValidations) > 0 {
		out = filled(s)
	}
	for _, name := range s.Required {
		p := s.Properties[name]
		if p.Default == nil {
			return nil, false
		}
		if _, has := out[name]; !has {
			out[name] = p.Default.Raw
		}
	}
	raw, err := json.Marshal(out)
	return &apiextensions.JSON{Raw: raw}, err == nil
}

// filled returns the fields of an object that have defaults, as the API server fills them in, also within these fields.
func filled(s *apiextensions.JSONSchemaProps) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for name, p := range s.Properties {
		if p.Default == nil {
			continue
		}
		out[name] = p.Default.Raw
		within := filled(&p)
		if len(within) == 0 || json.Unmarshal(p.Default.Raw, &within) != nil { // the values of the default itself come last
			continue
		}
		if raw, err := json.Marshal(within); err == nil {
			out[name] = raw
		}
	}
	return out
}
