// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"fmt"
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
