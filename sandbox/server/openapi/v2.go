// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// definitions is the prefix of a v2 document's references to its own schemas.
const definitions = "#/definitions/"

// V2 returns a schema of a v3 document as a v2 document of the API server has it: what v2 does not know is left out, and
// so is what old versions of kubectl cannot read. The schema is not changed.
func V2(from *spec.Schema) *spec.Schema {
	if len(from.AllOf) == 1 && from.AllOf[0].Ref.String() != "" { // a reference with a text of its own
		out := V2(&from.AllOf[0])
		out.Description, out.Default, out.Extensions = from.Description, from.Default, from.Extensions
		return out
	}
	out := *from
	if ref := from.Ref.String(); ref != "" {
		out.Ref = spec.MustCreateRef(definitions + strings.TrimPrefix(ref, components))
	}
	if len(from.OneOf) > 0 && from.Format != "" && len(from.Type) == 0 {
		out.Type = spec.StringOrArray{"string"} // a scalar of several types
	}
	out.AllOf, out.OneOf, out.AnyOf, out.Not = nil, nil, nil, nil
	out.Items, out.AdditionalProperties, out.Properties = nil, nil, nil
	if from.Items != nil && from.Items.Schema != nil {
		out.Items = &spec.SchemaOrArray{Schema: V2(from.Items.Schema)}
	}
	if more := from.AdditionalProperties; more != nil {
		out.AdditionalProperties = &spec.SchemaOrBool{Allows: more.Allows}
		if more.Schema != nil {
			out.AdditionalProperties.Schema = V2(more.Schema)
		}
	}
	for name, property := range from.Properties {
		out.SetProperty(name, *V2(&property))
		if property.Nullable {
			out.Required = slices.DeleteFunc(slices.Clone(out.Required), func(each string) bool { return each == name })
		}
	}
	untype(&out)
	return &out
}

// untype takes the type of a schema away where old versions of kubectl would refuse values.
func untype(s *spec.Schema) {
	open, _ := s.Extensions.GetBool("x-kubernetes-preserve-unknown-fields")
	if s.Nullable || open {
		s.Items, s.Properties = nil, nil
	}
	if s.Nullable || open && s.Type.Contains("object") || s.Items == nil && s.Type.Contains("array") {
		s.Type = nil
	}
	s.Nullable = false
}

// Binary returns the protobuf form of a v2 document in JSON.
func Binary(document []byte) ([]byte, error) {
	parsed, err := openapiv2.ParseDocument(document)
	if err != nil {
		return nil, fmt.Errorf("reading an OpenAPI v2 document: %w", err)
	}
	return proto.Marshal(parsed)
}

// V2Paths returns the paths of a v3 document as a v2 document has them. The paths are changed.
func V2Paths(paths map[string]any) map[string]any {
	for _, item := range paths {
		for method, value := range item.(map[string]any) {
			if method == "parameters" {
				inline(value)
			} else {
				flatten(value.(map[string]any))
			}
		}
	}
	return paths
}

// inline writes the schemas of parameters into the parameters themselves.
func inline(parameters any) {
	list, _ := parameters.([]any)
	for _, each := range list {
		p := each.(map[string]any)
		if schema, is := p["schema"].(map[string]any); is {
			maps.Copy(p, schema)
			delete(p, "schema")
		}
	}
}

// flatten changes an operation: its body becomes a parameter, and its media types are those of all its bodies and answers.
func flatten(operation map[string]any) {
	inline(operation["parameters"])
	operation["schemes"] = []any{"https"}
	if body, is := operation["requestBody"].(map[string]any); is {
		schema, consumes := schemaOf(body)
		if schema == nil {
			schema = map[string]any{"type": "object"} // a body has to have one
		}
		p := map[string]any{"name": "body", "in": "body", "schema": schema}
		if body["required"] == true {
			p["required"] = true
		}
		list, _ := operation["parameters"].([]any)
		operation["parameters"], operation["consumes"] = append([]any{p}, list...), consumes
		delete(operation, "requestBody")
	}
	for _, answer := range operation["responses"].(map[string]any) {
		answer := answer.(map[string]any)
		if schema, produces := schemaOf(answer); schema != nil {
			answer["schema"], operation["produces"] = schema, produces
		}
		delete(answer, "content")
	}
}

// schemaOf returns the schema of a body, and its media types.
func schemaOf(body map[string]any) (schema map[string]any, forms []any) {
	content, _ := body["content"].(map[string]any)
	for _, form := range slices.Sorted(maps.Keys(content)) {
		forms = append(forms, form)
		if ref, is := content[form].(map[string]any)["schema"].(map[string]any); is {
			schema = map[string]any{"$ref": strings.Replace(ref["$ref"].(string), components, definitions, 1)}
		}
	}
	return schema, forms
}
