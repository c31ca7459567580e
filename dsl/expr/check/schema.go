// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kube-openapi/pkg/validation/spec"

	apicel "k8s.io/apiserver/pkg/cel"

	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// Path reports whether a path of field names can exist in a whole object of a schema. A nil schema is unknown, and
// has every path. The path is not checked beyond a list.
func Path(s *spec.Schema, path ...string) error {
	t := typeOf(s, true)
	for i, name := range path {
		if t.fields == nil || t.kinds&^isNull != isMap {
			if t.may(isMap | isList) {
				return nil
			}
			return fmt.Errorf("%s (%s) has no field %q", t.kinds, strings.Join(path[:i], "."), name)
		}
		next, found := t.fields.field(name)
		if !found {
			where := ""
			if i > 0 {
				where = " in " + strings.Join(path[:i], ".")
			}
			return errors.New(expr.Unknown("field", name, where, t.fields.names()))
		}
		t = next
	}
	return nil
}

// Keeps reports whether the API server keeps a value at a path of field names in a whole object of a schema. A nil
// schema is unknown, and keeps everything. In a map without declared fields nothing is kept, although [Path]
// accepts any field there.
func Keeps(s *spec.Schema, path ...string) bool {
	for _, name := range path {
		switch {
		case s == nil:
			return true
		case empty(s):
			return false
		case isOpen(s):
			return true
		}
		if s = (&schemaFields{schema: s}).find(name); s == nil {
			return false
		}
	}
	return true
}

// At returns the schema at a path of field names in a whole object of a schema; nil if it is not known.
func At(s *spec.Schema, path ...string) *spec.Schema {
	for _, name := range path {
		if s == nil {
			return nil
		}
		s = (&schemaFields{schema: s}).find(name)
	}
	return s
}

// empty reports whether a schema is a map without declared contents.
func empty(s *spec.Schema) bool {
	within := len(s.Properties) + len(s.PatternProperties) + len(s.AllOf) + len(s.AnyOf) + len(s.OneOf)
	return slices.Equal(s.Type, spec.StringOrArray{"object"}) && within == 0 && s.AdditionalProperties == nil &&
		s.Ref.GetURL() == nil && !extension(s, "x-kubernetes-preserve-unknown-fields")
}

// typeOf returns the type of a value of a schema in its JSON form: times and bytes are text there. Root means a
// whole object, which has apiVersion, kind and metadata even if the schema does not declare them.
func typeOf(s *spec.Schema, root bool) valueType {
	if s == nil {
		return unknown()
	}
	out := only(schemaKinds(s))
	out.base64 = s.Format == "byte"
	if isQuantity(s) {
		out.quantity = s
	}
	if out.kinds&isMap != 0 && out.kinds != anyKind {
		out.fields = &schemaFields{schema: s, root: root}
	}
	if out.kinds&isList != 0 && s.Items != nil && s.Items.Schema != nil {
		element := typeOf(s.Items.Schema, extension(s.Items.Schema, "x-kubernetes-embedded-resource"))
		out.element = &element
	}
	return out
}

// typeOfShape returns the type of an object, of a list of objects, or of any value.
func typeOfShape(shape shape.Shape) valueType {
	if shape.Value {
		return typeOf(shape.Schema, false)
	}
	one := only(isMap)
	if shape.Schema != nil {
		one = typeOf(shape.Schema, true)
	}
	if shape.Kept != nil {
		one = valueType{kinds: isMap, fields: &keptFields{kept: shape.Kept, of: one.fields}}
	}
	if shape.List {
		return listOf(one)
	}
	return one
}

func schemaKinds(s *spec.Schema) kinds {
	if s.Ref.GetURL() != nil { // an unresolved circle
		return anyKind
	}
	out := typeKinds(s)
	if out == 0 {
		for _, either := range slices.Concat(s.OneOf, s.AnyOf) {
			out |= schemaKinds(&either)
		}
	}
	for i := 0; i < len(s.AllOf) && out == 0; i++ {
		if k := schemaKinds(&s.AllOf[i]); k != anyKind {
			out = k
		}
	}
	switch unsure := out == 0 || out == anyKind; {
	case unsure && len(s.Properties) > 0:
		out = isMap
	case unsure:
		return anyKind
	}
	if s.Nullable {
		out |= isNull
	}
	return out
}

// typeKinds returns the kinds of the schema's own type; empty if it has none.
func typeKinds(s *spec.Schema) (out kinds) {
	if s.Format == (intstr.IntOrString{}).OpenAPISchemaFormat() || extension(s, "x-kubernetes-int-or-string") {
		return isInt | isText
	}
	for _, word := range s.Type {
		out |= cmp.Or(map[string]kinds{
			"object": isMap, "array": isList, "string": isText, "integer": isInt, "number": isNumeric, "boolean": isBool, "null": isNull,
		}[word], anyKind)
	}
	if out == isText && strings.HasPrefix(s.Description, "Quantity is a fixed-point") {
		out |= isNumeric // older documents declare quantities this way
	}
	return out
}

func extension(s *spec.Schema, key string) bool {
	set, _ := s.Extensions.GetBool(key)
	return set
}

// schemaFields are the fields of a schema.
type schemaFields struct {
	schema *spec.Schema
	// root: the schema is of a whole object.
	root bool
	// open: other fields are allowed.
	open bool
}

func (f *schemaFields) field(name string) (valueType, bool) {
	found := f.find(name)
	switch {
	case f.root && name == "metadata":
		return f.metadata(found), true
	case found != nil:
		return typeOf(found, extension(found, "x-kubernetes-embedded-resource")), true
	case f.root && (name == "apiVersion" || name == "kind"):
		return only(isText), true
	}
	return unknown(), f.open || isOpen(f.schema)
}

// metadata returns the type of an object's metadata. A CRD declares only its restrictions.
func (f *schemaFields) metadata(s *spec.Schema) valueType {
	t := typeOf(s, false)
	fields, described := t.fields.(*schemaFields)
	if !described {
		return only(isMap)
	}
	whole := fields.find("labels") != nil && fields.find("annotations") != nil && fields.find("uid") != nil
	fields.open = !whole
	return t
}

// unescaped returns the field for a name in the form that rules of CRDs use for odd names. That form is not valid
// here, where objects are plain maps.
func (f *schemaFields) unescaped(name string) (string, bool) {
	plain, ok := apicel.Unescape(name)
	return plain, ok && plain != name && f.find(plain) != nil
}

// find returns the schema of a field, or nil.
func (f *schemaFields) find(name string) *spec.Schema {
	s := f.schema
	if property, found := s.Properties[name]; found {
		return &property
	}
	for i := range s.AllOf {
		if found := (&schemaFields{schema: &s.AllOf[i]}).find(name); found != nil {
			return found
		}
	}
	if s.AdditionalProperties != nil {
		return s.AdditionalProperties.Schema
	}
	return nil
}

func (f *schemaFields) any() valueType {
	if s := f.schema; len(s.Properties) == 0 && len(s.AllOf) == 0 && s.AdditionalProperties != nil {
		return typeOf(s.AdditionalProperties.Schema, false)
	}
	return unknown()
}

func (f *schemaFields) names() []string {
	all := slices.Collect(maps.Keys(f.schema.Properties))
	for i := range f.schema.AllOf {
		all = append(all, (&schemaFields{schema: &f.schema.AllOf[i]}).names()...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (f *schemaFields) what() string { return "field" }

// isOpen reports whether fields are allowed that the schema does not declare.
func isOpen(s *spec.Schema) bool {
	switch others := s.AdditionalProperties; {
	case s.Ref.GetURL() != nil, len(s.PatternProperties) > 0, extension(s, "x-kubernetes-preserve-unknown-fields"):
		return true
	case others != nil:
		return others.Allows || others.Schema != nil
	}
	described := len(s.Properties) > 0
	for _, too := range s.AllOf {
		if len(too.Type) == 0 && len(too.Properties) == 0 && too.Ref.GetURL() == nil {
			continue // it only restricts
		}
		if isOpen(&too) {
			return true
		}
		described = true
	}
	return !described || hasMore(s)
}

// hasMore reports whether an alternative declares additional fields.
func hasMore(s *spec.Schema) bool {
	for _, either := range slices.Concat(s.OneOf, s.AnyOf) {
		for name := range either.Properties {
			if _, named := s.Properties[name]; !named {
				return true
			}
		}
	}
	return false
}

// namedFields are the fields of children, related and indexes.
type namedFields struct {
	word   string
	shapes map[string]shape.Shape
	// keyed: the names are those of indexes, and the shape is that of each key.
	keyed bool
	// byKey: a list is a map by the keys of its elements.
	byKey bool
}

func (f *namedFields) field(name string) (valueType, bool) {
	shape, found := f.shapes[name]
	if !found {
		return unknown(), false
	}
	if f.keyed {
		return valueType{kinds: isMap, fields: &keyedFields{typeOfValues(shape)}}, true
	}
	if f.byKey && shape.List {
		shape.List = false
		return valueType{kinds: isMap, fields: &elementFields{typeOfShape(shape)}}, true
	}
	return typeOfShape(shape), true
}

func (f *namedFields) any() valueType  { return unknown() }
func (f *namedFields) names() []string { return slices.Sorted(maps.Keys(f.shapes)) }
func (f *namedFields) what() string    { return f.word }
