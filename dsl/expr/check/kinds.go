// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"strings"

	"github.com/google/cel-go/common/types"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// kinds is the set of kinds that a value may have at run time. The empty set is for a value that never exists, such
// as an element of [].
type kinds uint16

const (
	isNull kinds = 1 << iota
	isBool
	isInt
	isNumber // with a fraction
	isText
	isBytes
	isTime
	isDuration
	isList
	isMap
	isOptional
	isOther
	anyKind = 1<<iota - 1

	isNumeric = isInt | isNumber
)

// withNumbers adds all numeric kinds if one of them is in the set.
func (k kinds) withNumbers() kinds {
	if k&isNumeric != 0 {
		return k | isNumeric
	}
	return k
}

// String describes the kinds to people who write YAML.
func (k kinds) String() string {
	if k == 0 || k == anyKind {
		return "a value"
	}
	if k&isNumeric == isNumeric {
		k &^= isInt
	}
	words := []string{
		"null", "true or false", "a whole number", "a number", "text", "bytes", "a time", "a duration",
		"a list", "a map", "an optional value", "a value of another kind",
	}
	var out []string
	for i, word := range words {
		if k&(1<<i) != 0 {
			out = append(out, word)
		}
	}
	return strings.Join(out, " or ")
}

// valueType is what is known about a value before run time.
type valueType struct {
	kinds kinds
	// fields are the fields of a map; nil if they are not known.
	fields fieldSet
	// element is the type in a list or an optional value; nil if it is not known.
	element *valueType
	// base64: the text is bytes in base64.
	base64 bool
	// quantity is the schema of a quantity; nil for other values.
	quantity *spec.Schema
}

// fieldSet is what is known about the fields of a map. Implementations are pointers.
type fieldSet interface {
	// field returns the type of a field, and whether a field of that name may exist.
	field(name string) (valueType, bool)
	// any returns the type of a field with an unknown name.
	any() valueType
	// names returns the known names, sorted.
	names() []string
	// what returns the word for a field.
	what() string
}

func unknown() valueType            { return valueType{kinds: anyKind} }
func only(k kinds) valueType        { return valueType{kinds: k} }
func listOf(t valueType) valueType  { return valueType{kinds: isList, element: &t} }
func (t valueType) isUnknown() bool { return t.kinds == 0 || t.kinds == anyKind }

// may reports whether the value may have one of the kinds.
func (t valueType) may(k kinds) bool { return t.kinds == 0 || t.kinds&k != 0 }

// inner returns the type of elements of a list, or of the value in an optional.
func (t valueType) inner() valueType {
	if t.element == nil {
		return unknown()
	}
	return *t.element
}

// optional returns the type of an optional of t. An optional of an optional is the same type.
func optional(t valueType) valueType {
	if t.kinds == isOptional {
		return t
	}
	return valueType{kinds: isOptional, element: &t}
}

// join returns the type of a value that has either type. Properties that differ are unknown.
func join(a, b valueType) valueType {
	if a.kinds == 0 {
		return b
	}
	if b.kinds == 0 {
		return a
	}
	out := valueType{kinds: a.kinds | b.kinds}
	switch {
	case a.kinds&isMap == 0:
		out.fields = b.fields
	case b.kinds&isMap == 0 || a.fields == b.fields:
		out.fields = a.fields
	}
	const holders = isList | isOptional
	switch {
	case out.kinds&holders == holders:
	case a.kinds&holders == 0:
		out.element = b.element
	case b.kinds&holders == 0:
		out.element = a.element
	case a.element != nil && b.element != nil:
		element := join(*a.element, *b.element)
		out.element = &element
	}
	return out
}

// ofCEL converts a type of CEL.
func ofCEL(t *types.Type) valueType {
	if t == nil {
		return unknown()
	}
	out := only(kindsOfCEL(t))
	if out.kinds == isList || out.kinds == isOptional && len(t.Parameters()) > 0 {
		element := ofCEL(t.Parameters()[0])
		out.element = &element
	}
	return out
}

func kindsOfCEL(t *types.Type) kinds {
	if t.TypeName() == types.OptionalType.TypeName() {
		return isOptional
	}
	return cmp.Or(map[types.Kind]kinds{
		types.NullTypeKind: isNull, types.BoolKind: isBool,
		types.IntKind: isInt, types.UintKind: isInt, types.DoubleKind: isNumber,
		types.StringKind: isText, types.BytesKind: isBytes,
		types.TimestampKind: isTime, types.DurationKind: isDuration,
		types.ListKind: isList, types.MapKind: isMap,
		types.TypeKind: isOther, types.OpaqueKind: isOther,
	}[t.Kind()], anyKind) // others are only known at run time
}
