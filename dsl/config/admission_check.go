// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"sync"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	policycel "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/expr/check"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// compiled is an expression of a rule with its place.
type compiled struct {
	at      path
	program *expr.Program
}

// doubtOld warns of a rule about creations that reads old and never asks whether it is there. Such a rule refuses all creations.
func (r *ruling) doubtOld() {
	creates := len(r.Operations) == 0 || slices.Contains(r.Operations, "create")
	if !creates || string(r.FailurePolicy) == string(registrationv1.Ignore) {
		return
	}
	if slices.ContainsFunc(r.conditions, func(c compiled) bool { return c.program.Uses(expr.Request) || check.Asks(c.program, expr.Old) }) {
		return
	}
	for _, c := range r.conditions {
		r.check(c.at, c.at, func(shape.Schemas) []error {
			return expr.Faults(nil, check.Reads(c.program, expr.Old, "old is null for a creation: write operations: [update], or ask old == null before"))
		})
	}
}

// inNamespaces warns of a selector of namespaces for objects that have none: the API server ignores it.
func (w *watched) inNamespaces(at path, name dsl.ResourceName) {
	w.check(at, at, func(s shape.Schemas) []error {
		if s.Kinds == nil || name.Resource == "namespaces" {
			return nil
		}
		kind, err := s.Kinds.Resource(name.GVR(), false)
		if err != nil || kind.Kind == "" || kind.Namespaced {
			return nil // an unknown resource has a fault of its own
		}
		return []error{&shape.Misfit{Warning: true, Message: name.Resource + " have no namespace, so the rules hold for all of them: select by selector, or by when"}}
	})
}

// requestShape is the shape of request, which has the fields that admission policies see.
func requestShape(shape.Schemas) shape.Shape {
	return shape.Shape{Value: true, Schema: requestSchema()}
}

var requestSchema = sync.OnceValue(func() *spec.Schema { return schemaOf(policycel.BuildRequestType()) })

// schemaOf returns the schema of a type that the API server declares for CEL.
func schemaOf(t *apiservercel.DeclType) *spec.Schema {
	out := &spec.Schema{}
	switch {
	case t.IsObject():
		out.Type, out.Properties = spec.StringOrArray{"object"}, map[string]spec.Schema{}
		for name, field := range t.Fields {
			out.Properties[name] = *schemaOf(field.Type)
		}
	case t.IsMap():
		out.Type, out.AdditionalProperties = spec.StringOrArray{"object"}, &spec.SchemaOrBool{Allows: true, Schema: schemaOf(t.ElemType)}
	case t.IsList():
		out.Type, out.Items = spec.StringOrArray{"array"}, &spec.SchemaOrArray{Schema: schemaOf(t.ElemType)}
	case t.TypeName() == apiservercel.StringType.TypeName():
		out.Type = spec.StringOrArray{"string"}
	case t.TypeName() == apiservercel.BoolType.TypeName():
		out.Type = spec.StringOrArray{"boolean"}
	}
	return out
}
