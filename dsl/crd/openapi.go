// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"encoding/json"
	"reflect"

	"gopkg.in/yaml.v3"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/handwerk-dev/handwerk/dsl/form"
)

// OpenAPI is the schema of a whole object in the form of Kubernetes.
type OpenAPI struct {
	// props is nil when something in it is at fault.
	props *apiextensions.JSONSchemaProps
}

// ReadForm reads the words that a schema in a CRD may have.
func (o *OpenAPI) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	within, props := *d, &apiextensions.JSONSchemaProps{}
	within.Foreign, within.Faults = kubernetes(), nil
	within.Value(at, n, props)
	if len(within.Faults) == 0 {
		o.props = props
	}
	d.Faults = append(d.Faults, within.Faults...)
	return true
}

// DescribeForm describes these words.
func (o *OpenAPI) DescribeForm(d *form.Describer) *form.Schema {
	within := *d
	within.Foreign = kubernetes()
	return within.Of(reflect.TypeFor[apiextensions.JSONSchemaProps]())
}

// kubernetes has the forms of those types of the Kubernetes API that read themselves from JSON, and so
// would take words that they do not know.
func kubernetes() *form.Foreign {
	return &form.Foreign{Stray: "fields of an object stand under properties", Form: func(value any) form.Form {
		switch v := value.(type) {
		case *apiextensions.JSONSchemaProps:
			return words{v}
		case *apiextensions.JSON:
			return anyValue{v}
		case **apiextensions.JSON:
			*v = &apiextensions.JSON{}
			return anyValue{*v}
		case *apiextensions.JSONSchemaPropsOrBool:
			v.Allows = true // where there is a schema, too
			return either{"!!bool", &v.Allows, &v.Schema}
		case *apiextensions.JSONSchemaPropsOrArray:
			return either{"!!seq", &v.JSONSchemas, &v.Schema}
		case *apiextensions.JSONSchemaPropsOrStringArray:
			return either{"!!seq", &v.Property, &v.Schema}
		}
		return nil
	}}
}

// words are a schema, which has schemas within it.
type words struct{ *apiextensions.JSONSchemaProps }

// ReadForm reads them.
func (w words) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	return d.Struct(at, n, w.JSONSchemaProps, nil)
}

// DescribeForm describes them once.
func (w words) DescribeForm(d *form.Describer) *form.Schema {
	return d.Define("openAPIV3Schema", func() *form.Schema { return d.Struct(reflect.TypeFor[apiextensions.JSONSchemaProps]()) })
}

// anyValue is a value of any form.
type anyValue struct{ *apiextensions.JSON }

// ReadForm reads it.
func (a anyValue) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	value, ok := d.Plain(at, n)
	a.Raw, _ = json.Marshal(value) // it is what JSON can hold
	return ok
}

// DescribeForm describes nothing.
func (a anyValue) DescribeForm(*form.Describer) *form.Schema { return &form.Schema{} }

// either is a value with a tag of YAML, or else a schema.
type either struct {
	tag    string
	other  any
	schema **apiextensions.JSONSchemaProps
}

// ReadForm reads one of the two.
func (e either) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	if n.Tag == e.tag {
		return d.Value(at, n, e.other)
	}
	return d.Value(at, n, e.schema)
}

// DescribeForm describes both.
func (e either) DescribeForm(d *form.Describer) *form.Schema {
	return &form.Schema{OneOf: []*form.Schema{d.Of(reflect.TypeOf(e.other).Elem()), d.Of(reflect.TypeOf(e.schema).Elem())}}
}
