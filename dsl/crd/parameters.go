// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// Parameter is a value that the user of something gives, declared in short form.
type Parameter struct {
	Name string
	// Schema is the schema of its values. Nil: the declaration has a fault, and values may be any.
	Schema *spec.Schema
	// Required: a value must be given. Default is the value otherwise, as plain JSON; nil without a default.
	Required bool
	Default  any

	validator *validate.SchemaValidator
}

// Optional reports whether there may be no value. Then the value is null.
func (p *Parameter) Optional() bool { return !p.Required && p.Default == nil }

// Fits says why a plain JSON value does not fit; nil if it does. It does not quote the value.
func (p *Parameter) Fits(value any) error {
	if p.validator == nil || value == nil && p.Optional() {
		return nil
	}
	if want, found := wordOf(p.Schema.Type), wordFor(value); want != "" && want != found && (want != numberWord || found != wholeWord) {
		return fmt.Errorf("want %s, found %s", want, found)
	}
	var faults []string
	for _, err := range p.validator.Validate(value).Errors {
		faults = append(faults, strings.TrimSpace(strings.Replace(err.Error(), " in body", "", 1)))
	}
	if len(faults) == 0 {
		return nil
	}
	return errors.New(strings.Join(faults, ", "))
}

// The words for values of numbers.
const (
	numberWord = "a number"
	wholeWord  = "a whole number"
)

// wordOf describes the values of a type for people; empty for several types.
func wordOf(types spec.StringOrArray) string {
	if len(types) != 1 {
		return ""
	}
	return map[string]string{"string": "text", "integer": wholeWord, "number": numberWord, "boolean": "true or false", "array": "a list", "object": "a map"}[types[0]]
}

// wordFor describes a plain JSON value, without the value.
func wordFor(value any) string {
	switch value.(type) {
	case nil:
		return "nothing"
	case string:
		return "text"
	case bool:
		return "true or false"
	case float64:
		return numberWord
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	default:
		return wholeWord
	}
}

// Parameters reads declarations in the form of fields. A parameter is no object with fields of its own, and has no rules: they
// are for what the API server keeps. Paths of faults begin at the names.
func Parameters(fields Fields) ([]Parameter, []*shape.Misfit) {
	b := &builder{form: &Schema{}, places: map[string]place{}}
	whole := b.object(nil, steps{"properties", "parameters"}, fields)
	for name, field := range whole.Properties {
		switch {
		case fields[name].object != nil:
			b.fault([]string{name}, `want a type, as in "string | required=true" (a value of any form has the type object)`)
		case len(field.XValidations) > 0:
			b.fault([]string{name}, "immutable and validation are for fields of objects that the API server keeps")
		}
	}
	root := &apiextensions.JSONSchemaProps{Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{"parameters": *whole}}
	b.lint(nil, root)
	b.validate(root)
	if len(b.faults) > 0 {
		return nil, b.sorted()
	}
	structural, err := internalForm(whole)
	if err != nil {
		b.fault(nil, "%v", err)
		return nil, b.faults
	}
	schema := structural.ToKubeOpenAPI()
	var out []Parameter
	for _, name := range slices.Sorted(maps.Keys(whole.Properties)) {
		of := schema.Properties[name]
		p := Parameter{Name: name, Schema: &of, Required: slices.Contains(whole.Required, name)}
		if set := whole.Properties[name].Default; set != nil {
			_ = json.Unmarshal(set.Raw, &p.Default) // the text was made by the reader of the marker
		}
		p.validator = validate.NewSchemaValidator(p.Schema, nil, "", strfmt.Default)
		out = append(out, p)
	}
	return out, nil
}
