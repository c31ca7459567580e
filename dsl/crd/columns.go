// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/handwerk-dev/handwerk/dsl/form"
)

// columns makes the columns of kubectl get. The age is always one of them.
func (b *builder) columns(root *apiextensions.JSONSchemaProps) (out []apiextensions.CustomResourceColumnDefinition) {
	seen := map[string]bool{}
	for i, c := range b.form.Columns {
		at := []string{"columns", strconv.Itoa(i)}
		if name := strings.ToLower(c.Name); name != "" {
			if seen[name] {
				b.fault(append(at, "name"), "there is a column %s already", form.Quoted(c.Name))
			}
			seen[name] = true
		}
		typ := b.columnPath(append(at, "path"), c.Path, root)
		out = append(out, apiextensions.CustomResourceColumnDefinition{
			Name: c.Name, Type: cmp.Or(string(c.Type), typ), JSONPath: c.Path, Description: c.Description, Format: string(c.Format), Priority: int32(c.Priority),
		})
	}
	out = append(out, b.bookColumns()...)
	if !seen["age"] {
		out = append(out, apiextensions.CustomResourceColumnDefinition{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"})
	}
	return out
}

// columnPath checks that a column's path exists, and returns its type.
func (b *builder) columnPath(at []string, path string, root *apiextensions.JSONSchemaProps) (typ string) {
	if path != "" && !strings.HasPrefix(path, ".") {
		b.fault(at, "want a path from the object that begins with a dot, as in .status.url")
		return "string"
	}
	s, t := root, text(path)
	for i := 0; i < len(t); {
		begin := i + 1
		for i = begin; i < len(t) && t[i] != '.' && t[i] != '['; {
			i++
		}
		if s = b.columnField(at, t, begin, i, s); s != nil && i < len(t) && t[i] == '[' {
			s, i = b.columnElement(at, t, i, s)
		}
		if s == nil {
			return "string" // the type is not known
		}
	}
	return columnType(s)
}

// columnField returns the schema of the field that a path names from begin to end; nil if it is not known.
func (b *builder) columnField(at []string, t text, begin, end int, s *apiextensions.JSONSchemaProps) *apiextensions.JSONSchemaProps {
	name := string(t[begin:end])
	if begin == 1 && slices.Contains([]string{"metadata", "apiVersion", "kind"}, name) || strings.Contains(name, `\`) {
		return nil
	}
	next, open := child(s, name)
	if next == nil && !open && name != "" {
		b.faultIn(at, t, begin, form.Unknown("field", name, propertiesOf(s)))
	}
	return next
}

// columnElement returns the schema of the elements that brackets select, nil if it is not known, and the place
// behind the brackets.
func (b *builder) columnElement(at []string, t text, begin int, s *apiextensions.JSONSchemaProps) (*apiextensions.JSONSchemaProps, int) {
	end, closed := t.closing(begin)
	if !closed {
		b.faultIn(at, t, begin, "the bracket is not closed")
	}
	if s.Items == nil {
		return nil, end
	}
	return s.Items.Schema, end
}

// child returns the schema of an object's field. Open means that other fields are allowed.
func child(s *apiextensions.JSONSchemaProps, name string) (next *apiextensions.JSONSchemaProps, open bool) {
	if p, has := s.Properties[name]; has {
		return &p, false
	}
	if s.AdditionalProperties != nil {
		return s.AdditionalProperties.Schema, true
	}
	return nil, s.XPreserveUnknownFields != nil || s.XEmbeddedResource || s.Type != "object"
}

func columnType(s *apiextensions.JSONSchemaProps) string {
	switch {
	case s.Format == "date-time" || s.Format == "date":
		return "date"
	case s.Type == "integer" || s.Type == "number" || s.Type == "boolean":
		return s.Type
	default:
		return "string"
	}
}

func propertiesOf(s *apiextensions.JSONSchemaProps) []string {
	return slices.Sorted(maps.Keys(s.Properties))
}
