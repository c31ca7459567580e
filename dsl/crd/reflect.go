// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"encoding"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/handwerk-dev/handwerk/dsl/form"
)

// durationPattern matches the texts of time.ParseDuration, as in 1h30m.
const durationPattern = `^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`

var (
	marshaler     = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// familiar returns the schema of a type with a known JSON form, or nil.
func familiar(t reflect.Type) *apiextensions.JSONSchemaProps {
	switch t {
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](), reflect.TypeFor[time.Time]():
		return builtin("datetime")
	case reflect.TypeFor[metav1.Duration]():
		return &apiextensions.JSONSchemaProps{Type: "string", Pattern: durationPattern}
	case reflect.TypeFor[resource.Quantity]():
		return builtin("quantity")
	case reflect.TypeFor[intstr.IntOrString]():
		return builtin("int-or-string")
	case reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[metav1.ObjectMeta](), reflect.TypeFor[metav1.FieldsV1](),
		reflect.TypeFor[unstructured.Unstructured]():
		return builtin("object")
	case reflect.TypeFor[json.RawMessage](), reflect.TypeFor[apiextensions.JSON]():
		return anything()
	case reflect.TypeFor[[]metav1.Condition]():
		list := conditions()
		return &list
	}
	return nil
}

// wholeType makes the schema of the whole object from its Go type.
func (b *builder) wholeType() *apiextensions.JSONSchemaProps {
	b.beside()
	root := emptyObject()
	if t := b.form.from; t.Kind() != reflect.Struct {
		b.fault(nil, "want a struct with the fields of the object, found the type %s", t)
	} else {
		root = b.structure(nil, nil, t)
	}
	if spec, has := root.Properties["spec"]; has && !slices.Contains(root.Required, "spec") {
		if _, filled := filling(&spec); !filled {
			root.Required = append(root.Required, "spec")
		}
	}
	status, has := root.Properties["status"]
	if !has || status.Type != "object" || status.Properties == nil {
		status = *emptyObject()
	}
	status.Default = nil // it never gets a default
	b.finishStatus(&status)
	root.Properties["status"] = status
	b.rootRules(root)
	return root
}

// structure makes the schema of a struct.
func (b *builder) structure(path []string, to steps, t reflect.Type) *apiextensions.JSONSchemaProps {
	if begin := slices.Index(b.within, t); begin >= 0 {
		if !slices.Contains(b.cyclic, t.Name()) {
			b.circle(path, append(slices.Clone(b.within[begin:]), t))
		}
		return anything()
	}
	b.within = append(b.within, t)
	defer func() { b.within = b.within[:len(b.within)-1] }()
	if _, known := b.places[to.key()]; !known {
		b.places[to.key()] = place{path: path}
	}
	out := emptyObject()
	names, fields := form.JSONFields(t)
	slices.Sort(names)
	for _, name := range names {
		if len(path) == 0 && slices.Contains([]string{"apiVersion", "kind", "metadata"}, name) {
			continue
		}
		field, required := b.member(append(slices.Clone(path), name), to.to("properties", name), fields[name])
		put(out, name, field, required)
	}
	return out
}

// circle notes a type that contains itself through others.
func (b *builder) circle(path []string, types []reflect.Type) {
	var names []string
	for _, t := range types {
		names = append(names, t.Name())
	}
	b.cyclic = append(b.cyclic, names...)
	b.fault(path, "the type %s contains itself (%s), which a CRD cannot say (the tag `schema:\"object\"` leaves the form open)", names[0], strings.Join(names, " → "))
}

// member makes the schema of a struct's field.
func (b *builder) member(path []string, to steps, f reflect.StructField) (out *apiextensions.JSONSchemaProps, required bool) {
	if !b.fits() {
		return anything(), false
	}
	tag := text(f.Tag.Get("schema"))
	if !tag.typed() {
		tag = append(text("| "), tag...)
	}
	typ, at, markers, wrong := tag.split()
	b.places[to.key()] = place{path: path, text: tag, at: []int{at}}
	switch {
	case wrong != nil:
		b.faultIn(path, tag, wrong.at, wrong.message)
		return anything(), false
	case typ != "":
		out = b.typed(path, to, tag, typ, at)
	case slices.Contains(jsonOptions(f), "string"):
		out = builtin("string")
	default:
		out = b.reflected(path, to, f.Type)
	}
	if out == nil {
		return anything(), false
	}
	required = b.mark(path, to, tag, out, markers)
	return out, required || path[0] != "status" && !optional(f, markers, out)
}

// typed reports whether a tag begins with a type, and not with a marker.
func (t text) typed() bool {
	end := slices.IndexFunc(t, func(r rune) bool { return unicode.IsSpace(r) || r == '=' || r == '|' })
	if end < 0 {
		end = len(t)
	}
	_, known := markerNamed(string(t[:end]))
	return len(t) > 0 && !known && (end == len(t) || t[end] != '=')
}

// jsonOptions returns the options in a field's json tag.
func jsonOptions(f reflect.StructField) []string {
	return strings.Split(f.Tag.Get("json"), ",")[1:]
}

// optional reports whether a field may be missing, unless it is marked as required.
func optional(f reflect.StructField, markers []marker, s *apiextensions.JSONSchemaProps) bool {
	marked := func(m marker) bool { return m.name == "required" || m.name == "default" }
	empty := func(option string) bool { return option == "omitempty" || option == "omitzero" }
	if s.Default != nil || slices.ContainsFunc(markers, marked) || slices.ContainsFunc(jsonOptions(f), empty) {
		return true
	}
	switch f.Type.Kind() {
	case reflect.Pointer, reflect.Interface:
		return true
	case reflect.Struct:
		_, filled := filling(s)
		return filled && s.Type == "object"
	}
	return false
}

// reflected makes the schema of a Go type; nil if it has a fault.
func (b *builder) reflected(path []string, to steps, t reflect.Type) *apiextensions.JSONSchemaProps {
	if out := familiar(t); out != nil {
		return out
	}
	if own, is := reflect.TypeAssert[Described](reflect.New(t)); is {
		out, _ := b.declared(path, to, text(own.SchemaText()))
		return out
	}
	switch p := reflect.PointerTo(t); {
	case t.Kind() == reflect.Pointer:
		return b.reflected(path, to, t.Elem())
	case t == reflect.TypeFor[time.Duration]():
		b.fault(path, "a time.Duration is a number of nanoseconds in JSON (want metav1.Duration, or an integer)")
		return nil
	case t.Kind() == reflect.Interface:
		return anything()
	case p.Implements(marshaler):
		b.fault(path, "the type %s encodes itself, so its fields do not say its form (want a tag such as `schema:\"string\"`)", t)
		return nil
	case p.Implements(textMarshaler):
		return builtin("string")
	}
	return b.kind(path, to, t)
}

// kind makes the schema of a type from its reflect.Kind.
func (b *builder) kind(path []string, to steps, t reflect.Type) *apiextensions.JSONSchemaProps {
	switch t.Kind() {
	case reflect.String:
		return builtin("string")
	case reflect.Bool:
		return builtin("boolean")
	case reflect.Float32, reflect.Float64:
		return builtin("number")
	case reflect.Struct:
		return b.structure(path, to, t)
	case reflect.Map:
		return b.mapping(path, to, t)
	case reflect.Slice, reflect.Array:
		if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
			return &apiextensions.JSONSchemaProps{Type: "string", Format: "byte"}
		}
		return listOf(b.reflected(path, to.to("items"), t.Elem()))
	}
	if t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64 {
		return integer(t)
	}
	b.fault(path, "values of type %s have no form in JSON", t)
	return nil
}

// integer makes the schema of an integer type, with its range.
func integer(t reflect.Type) *apiextensions.JSONSchemaProps {
	out, signed := builtin("integer"), t.Kind() <= reflect.Int64
	if !signed {
		out.Minimum = new(0.0)
	}
	switch bits := t.Bits(); {
	case bits == 64:
	case bits == 32 && signed:
		out.Format = "int32"
	case signed:
		out.Minimum, out.Maximum = new(-math.Exp2(float64(bits-1))), new(math.Exp2(float64(bits-1))-1)
	default:
		out.Maximum = new(math.Exp2(float64(bits)) - 1)
	}
	return out
}

// mapping makes the schema of a map type.
func (b *builder) mapping(path []string, to steps, t reflect.Type) *apiextensions.JSONSchemaProps {
	if t.Key().Kind() != reflect.String {
		b.fault(path, "the keys of a map are text (want map[string]…, found %s)", t)
		return nil
	}
	if t.Elem().Kind() == reflect.Interface {
		return builtin("object")
	}
	return mapOf(b.reflected(path, to.to("additionalProperties"), t.Elem()))
}
