// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"fmt"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/handwerk-dev/handwerk/dsl"
)

// BookField is a field of a machine's progress in the status.
type BookField struct {
	Name, Type, Format, Description string
	// fields are those of the elements of a list.
	fields []BookField
}

// Book returns the fields of a machine's progress. They are in the status, or below it under the machine's name. See
// [dsl.Machine].
func Book() []BookField {
	return []BookField{
		{Name: dsl.BookState, Type: "string", Description: "The state that the object is in."},
		{Name: dsl.BookSince, Type: "string", Format: "date-time", Description: "When the object came to the state."},
		{Name: dsl.BookEntered, Type: "string", Format: "date-time", Description: "When what is done on entering the state had succeeded."},
		{Name: dsl.BookFailures, Type: "integer", Description: "How often something has failed in the state."},
		{Name: dsl.BookUID, Type: "string", Description: "The uid of the object that this was written of."},
		{Name: dsl.BookHistory, Type: "array", Description: "The last transitions, the newest last.", fields: []BookField{
			{Name: "from", Type: "string"}, {Name: "to", Type: "string"}, {Name: "when", Type: "string", Format: "date-time"}, {Name: "why", Type: "string"},
		}},
	}
}

// YAML returns the field's schema in one line.
func (f BookField) YAML() string {
	out := "type: " + f.Type
	if f.Format != "" {
		out += ", format: " + f.Format
	}
	if f.fields != nil {
		var fields []string
		for _, field := range f.fields {
			fields = append(fields, field.Name+": "+field.YAML())
		}
		out += fmt.Sprintf(", items: {type: object, properties: {%s}}", strings.Join(fields, ", "))
	}
	return "{" + out + "}"
}

// Elements returns the fields of the elements of a list.
func (f BookField) Elements() []BookField { return f.fields }

// schema returns the field's schema.
func (f BookField) schema() apiextensions.JSONSchemaProps {
	out := apiextensions.JSONSchemaProps{Type: f.Type, Format: f.Format, Description: f.Description}
	if f.fields != nil {
		out.XListType = new("atomic")
		out.Items = &apiextensions.JSONSchemaPropsOrArray{Schema: &apiextensions.JSONSchemaProps{Type: "object", Properties: propertiesFor(f.fields)}}
	}
	return out
}

func propertiesFor(fields []BookField) map[string]apiextensions.JSONSchemaProps {
	out := map[string]apiextensions.JSONSchemaProps{}
	for _, field := range fields {
		out[field.Name] = field.schema()
	}
	return out
}

// books adds the fields of machines' progress to a status in short form. A field of the author's stays as it is if it
// can hold the value.
func (b *builder) books(status *apiextensions.JSONSchemaProps) {
	for _, machine := range b.form.Machines {
		book, path := *status, []string{"status"}
		if machine != "" {
			path = append(path, machine)
			given, has := status.Properties[machine]
			if has && (given.Type != "object" || given.AdditionalProperties != nil) {
				b.fault(path, "the machine %s keeps its state here: want a map of fields, or nothing", machine)
				continue
			}
			if book = given; !has {
				book = apiextensions.JSONSchemaProps{Type: "object", Description: "What the machine keeps."}
			}
			if book.Properties == nil {
				book.Properties = map[string]apiextensions.JSONSchemaProps{}
			}
		}
		for _, field := range Book() {
			given, has := book.Properties[field.Name]
			switch {
			case !has:
				book.Properties[field.Name] = field.schema()
			case given.Type != field.Type || given.Format != "" && field.Format != given.Format:
				b.fault(append(path, field.Name), "a machine keeps this itself: want %s, or nothing", field.short())
			}
		}
		if machine != "" {
			status.Properties[machine] = book
		}
	}
}

// short returns the field's type in short form.
func (f BookField) short() string {
	switch {
	case f.Format == "date-time":
		return "datetime"
	case f.Type == "array":
		return "a list"
	}
	return f.Type
}

// bookColumns returns the columns of kubectl get for machines, if the author has defined none.
func (b *builder) bookColumns() (out []apiextensions.CustomResourceColumnDefinition) {
	if len(b.form.Columns) > 0 {
		return nil
	}
	for _, machine := range b.form.Machines {
		name, path := "State", ".status."
		if machine != "" {
			name, path = strings.ToUpper(machine[:1])+machine[1:], path+machine+"."
		}
		since := "Since"
		if machine != "" {
			since = name + " Since"
		}
		out = append(out,
			apiextensions.CustomResourceColumnDefinition{Name: name, Type: "string", JSONPath: path + dsl.BookState},
			apiextensions.CustomResourceColumnDefinition{Name: since, Type: "date", JSONPath: path + dsl.BookSince})
	}
	return out
}
