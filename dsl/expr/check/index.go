// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// keyedFields are what is in an index: the same under whatever key.
type keyedFields struct{ values valueType }

func (f *keyedFields) field(string) (valueType, bool) { return f.values, true }
func (f *keyedFields) any() valueType                 { return f.values }
func (f *keyedFields) names() []string                { return nil }
func (f *keyedFields) what() string                   { return "key" }

// typeOfValues is the type of what is under a key of an index: a list of values, which need not be objects.
func typeOfValues(values shape.Shape) valueType { return listOf(typeOf(values.Schema, false)) }

// singleKey is what one key may be of.
const singleKey kinds = anyKind &^ (isNull | isList | isMap | isOptional)

// Key holds the expression of an index's key against schemas: what it gives must be text, a number or true or false, or
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

// given is the type of what may be in an optional value, where it is one.
func given(t valueType) valueType {
	if t.kinds == isOptional {
		return t.inner()
	}
	return t
}

// Result returns what is known of the value that an expression gives, as a schema; nil for nothing.
func Result(p *expr.Program, s shape.Schemas) *spec.Schema {
	t, _, err := infer(p, s, nil)
	if err != nil {
		return nil // which is told where the expression is checked
	}
	return schemaOf(t)
}

// schemaOf is a schema of values of a type; nil where nothing is known. What it says of a map that an expression makes
// is no more than that it is one.
func schemaOf(t valueType) *spec.Schema {
	t = given(t)
	if fields, described := t.fields.(*schemaFields); described && t.kinds == isMap {
		if fields.open || fields.root && fields.find("metadata") == nil {
			return nil // there may be more than the schema says
		}
		return fields.schema
	}
	word, known := map[kinds]string{
		isMap: "object", isList: "array", isBool: "boolean", isInt: "integer", isNumber: "number",
		// JSON has no kinds for these.
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
