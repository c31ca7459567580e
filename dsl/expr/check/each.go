// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"maps"
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// Each returns the schemas with the variables of one element of a forEach, as far as they are known from the list or the
// map that it gives.
func Each(t *expr.Template, s shape.Schemas) shape.Schemas {
	item := shape.Shape{Value: true, Schema: elementOf(schemaOfTemplate(t, s))}
	return s.With(expr.Item, item).With(expr.Value, item).
		With(expr.Key, shape.Shape{Value: true, Schema: ofType("string")}).
		With(expr.Index, shape.Shape{Value: true, Schema: ofType("integer")})
}

func ofType(word string) *spec.Schema {
	return &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{word}}}
}

// elementOf returns the schema of each element of a list, or of each value of a map; nil if it is not known.
func elementOf(all *spec.Schema) *spec.Schema {
	switch {
	case all == nil:
		return nil
	case all.Items != nil:
		return all.Items.Schema
	case all.AdditionalProperties != nil && len(all.Properties) == 0:
		return all.AdditionalProperties.Schema
	case isOpen(all) || len(all.AllOf) > 0:
		return nil
	}
	var found []*spec.Schema
	for _, name := range slices.Sorted(maps.Keys(all.Properties)) {
		one := all.Properties[name]
		found = append(found, &one)
	}
	return common(found)
}

// schemaOfTemplate returns what is known of a template's result; nil if that is nothing.
func schemaOfTemplate(t *expr.Template, s shape.Schemas) *spec.Schema {
	switch tree := t.Plain.(type) {
	case map[string]any:
		return schemaOfMap(t, s)
	case []any:
		return schemaOfList(t, s)
	case string:
		if len(t.Pieces) == 1 {
			return Result(t.Pieces[0].Program, s)
		}
		return ofType("string")
	default:
		return schemaOf(only(kindsOf(tree)))
	}
}

func schemaOfMap(t *expr.Template, s shape.Schemas) *spec.Schema {
	out := ofType("object")
	out.Properties = map[string]spec.Schema{}
	for i := range t.Entries {
		e := &t.Entries[i]
		name, plain := e.Key.Plain.(string)
		if !plain || len(e.Key.Pieces) > 0 {
			return ofType("object")
		}
		value := schemaOfTemplate(&e.Value, s)
		if value == nil {
			value = &spec.Schema{}
		}
		out.Properties[name] = *value
	}
	return out
}

func schemaOfList(t *expr.Template, s shape.Schemas) *spec.Schema {
	out := ofType("array")
	var found []*spec.Schema
	for i := range t.List {
		found = append(found, schemaOfTemplate(&t.List[i], s))
	}
	if element := common(found); element != nil {
		out.Items = &spec.SchemaOrArray{Schema: element}
	}
	return out
}

// common returns the schema that fits all values; nil if it is not known. A map has the fields of all maps.
func common(all []*spec.Schema) (out *spec.Schema) {
	for i, one := range all {
		if out = fitting(out, one); i == 0 {
			out = one
		}
		if out == nil {
			return nil
		}
	}
	return out
}

// fitting returns the schema that fits values of two schemas; nil if it is not known.
func fitting(a, b *spec.Schema) *spec.Schema {
	switch {
	case a == nil || b == nil || len(a.Type) != 1 || !slices.Equal(a.Type, b.Type):
		return nil
	case a.Type[0] == "object":
		return fittingMaps(a, b)
	case a.Type[0] != "array":
		return ofType(a.Type[0])
	}
	out := ofType("array")
	if a.Items != nil && b.Items != nil {
		if element := fitting(a.Items.Schema, b.Items.Schema); element != nil {
			out.Items = &spec.SchemaOrArray{Schema: element}
		}
	}
	return out
}

func fittingMaps(a, b *spec.Schema) *spec.Schema {
	if isOpen(a) || isOpen(b) || len(a.AllOf)+len(b.AllOf) > 0 {
		return ofType("object")
	}
	out := ofType("object")
	out.Properties = maps.Clone(a.Properties)
	for name, other := range b.Properties {
		one, both := a.Properties[name]
		if !both {
			out.Properties[name] = other
			continue
		}
		value := fitting(&one, &other)
		if value == nil {
			value = &spec.Schema{}
		}
		out.Properties[name] = *value
	}
	return out
}
