// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"reflect"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// Described is a type that defines its own JSON form, in the short form of schemas, as in "string |
// enum=red,green". It is for types that marshal themselves, and for elements of lists and maps, which have no field
// and therefore no tag.
type Described interface {
	SchemaText() string
}

// Describe makes the CRD of a resource from a Go type, as for handlers of [dsl.Typed]: a struct with
// metav1.TypeMeta, metav1.ObjectMeta, Spec and Status. It needs no generated code. [dsl.Operator.Validate] reports
// faults of the type. The functions more set what the type does not define: short names, columns and so on.
//
//	type ShopSpec struct {
//		Title    string   `json:"title" schema:"minLength=1 description='What the sign says.'"`
//		Replicas int32    `json:"replicas,omitempty" schema:"default=1 minimum=1 maximum=10"`
//		Tags     []string `json:"tags,omitempty"`
//	}
//
// Names are those of the json tags. The tag schema has the markers of the short form, or a type in short form and,
// behind a bar, markers: `schema:"date"`, `schema:"string | enum=a,b"`.
//
// A field is required unless it has omitempty, omitzero or a default, or is a pointer or an interface. A struct is
// required if one of its fields must be given, as spec is. Fields of the status are not required. The markers
// required=true and required=false take precedence.
//
// Integers have the range of their type. metav1.Time and time.Time are times, metav1.Duration is text such as
// 1h30m, resource.Quantity and intstr.IntOrString have their usual forms, and []byte is text in base64. A
// map[string]any, a runtime.RawExtension and metadata within spec are objects of any form; an interface and
// json.RawMessage are values of any form. A list of metav1.Condition is the standard list of conditions. A type
// that contains itself is a fault, because a CRD cannot express it.
func Describe[T any](r *dsl.Resource, more ...func(*Schema)) {
	r.Describe(func(r *dsl.Resource) (map[string]any, []*shape.Misfit) {
		t := reflect.TypeFor[T]()
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if err := CheckName(r.Name); err != nil {
			return nil, []*shape.Misfit{{Message: err.Error()}}
		}
		s := &Schema{Kind: t.Name(), from: t}
		for _, h := range r.Machines() {
			s.Machines = append(s.Machines, h.Machine.Name)
		}
		for _, c := range r.Conversions() {
			s.Conversions = append(s.Conversions, c.Version)
		}
		s.Service = ServiceOf(r)
		for _, set := range more {
			set(s)
		}
		return Build(r.Name, s)
	})
}

// beside checks the settings that a schema from a Go type has besides the type.
func (b *builder) beside() {
	s := b.form
	if s.Kind == "" {
		b.fault([]string{"kind"}, "the type %s has no name, so there is no kind", s.from)
	}
	for name, given := range map[string]bool{
		"spec": s.Spec != nil, "status": s.Status != nil, "types": s.Types != nil, "openAPIV3Schema": s.OpenAPIV3Schema != nil,
	} {
		if given {
			b.fault([]string{name}, "the Go type says this")
		}
	}
}
