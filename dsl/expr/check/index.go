// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// keyedFields are the contents of an index: the same type under every key.
type keyedFields struct{ values valueType }

func (f *keyedFields) field(string) (valueType, bool) { return f.values, true }
func (f *keyedFields) any() valueType                 { return f.values }
func (f *keyedFields) names() []string                { return nil }
func (f *keyedFields) what() string                   { return "key" }

// elementFields are the elements of a map in which all have the same type.
type elementFields struct{ of valueType }

func (f *elementFields) field(string) (valueType, bool) { return f.of, true }
func (f *elementFields) any() valueType                 { return f.of }
func (f *elementFields) names() []string                { return nil }
func (f *elementFields) what() string                   { return "key" }

// typeOfValues returns the type of the values under a key of an index: a list of values, which need not be objects.
func typeOfValues(values shape.Shape) valueType { return listOf(typeOf(values.Schema, false)) }

// singleKey are the kinds that a single key may have.
const singleKey kinds = anyKind &^ (isNull | isList | isMap | isOptional)

// Key checks the expression of an index's key against schemas. Its value must be text, a number, true or false, or
// a list of these. The error is an [expr.Error].
func Key(p *expr.Program, s shape.Schemas) error {
	t, _, err := infer(p, s, nil)
	if err != nil {
		return err
	}
	of, wanted := given(t), singleKey|isList
	if of.kinds == isList {
		of, wanted = given(of.inner()), singleKey
	}
	if !of.may(wanted) {
		message := "a key is text, a number or true or false, or a list of these, found " + of.kinds.String()
		return p.Fault([]expr.Issue{{Place: expr.Place{Line: 1, Column: 1}, Message: message}}, nil)
	}
	return nil
}

// given returns the type inside an optional value, or the type itself.
func given(t valueType) valueType {
	if t.kinds == isOptional {
		return t.inner()
	}
	return t
}

// Result returns the known schema of an expression's value; nil if nothing is known.
func Result(p *expr.Program, s shape.Schemas) *spec.Schema {
	t, _, err := infer(p, s, nil)
	if err != nil {
		return nil // the check of the expression reports it
	}
	return schemaOf(t)
}

// schemaOf returns a schema for values of a type; nil if nothing is known. For a map that an expression makes, it
// says only that it is a map.
func schemaOf(t valueType) *spec.Schema {
	t = given(t)
	if fields, described := t.fields.(*schemaFields); described && t.kinds == isMap {
		if fields.open || fields.root && fields.find("metadata") == nil {
			return nil // there may be undeclared fields
		}
		return fields.schema
	}
	word, known := map[kinds]string{
		isMap: "object", isList: "array", isBool: "boolean", isInt: "integer", isNumber: "number",
		// JSON has text for these.
		isText: "string", isBytes: "string", isTime: "string", isDuration: "string",
	}[t.kinds]
	if !known {
		return nil
	}
	out := &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{word}}}
	if element := schemaOf(t.inner()); t.kinds == isList && element != nil {
		out.Items = &spec.SchemaOrArray{Schema: element}
	}
	return out
}
