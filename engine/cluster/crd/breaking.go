// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// change is how the schema of one version breaks what objects have.
type change struct {
	// version is the name of the version, and schema what its objects are to fit.
	version string
	schema  *apiextensions.JSONSchemaProps
	// found are the changes, each with its place in the schema.
	found []string
}

// breaking returns the changes of a CRD after which an object that was valid may be invalid or lose a field. It compares the versions
// that both have.
func breaking(live, desired *apiextensions.CustomResourceDefinition) (out []change) {
	for _, version := range desired.Spec.Versions {
		at := slices.IndexFunc(live.Spec.Versions, func(v apiextensions.CustomResourceDefinitionVersion) bool { return v.Name == version.Name })
		if at < 0 || live.Spec.Versions[at].Schema == nil || version.Schema == nil {
			continue
		}
		c := &comparison{version: version.Name}
		c.schema("", live.Spec.Versions[at].Schema.OpenAPIV3Schema, version.Schema.OpenAPIV3Schema)
		if len(c.found) > 0 {
			out = append(out, change{version.Name, version.Schema.OpenAPIV3Schema, c.found})
		}
	}
	return out
}

// comparison compares the schemas of one version.
type comparison struct {
	version string
	found   []string
}

func (c *comparison) add(path, format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf("%s %s: %s", c.version, cmp.Or(path, "object"), fmt.Sprintf(format, args...)))
}

// schema compares the schemas at a path.
func (c *comparison) schema(path string, was, is *apiextensions.JSONSchemaProps) {
	if was == nil || is == nil || reflect.DeepEqual(was, is) {
		return
	}
	if typeName(was) != typeName(is) && !widens(was, is) {
		c.add(path, "its type changes from %s to %s", typeName(was), typeName(is))
		return
	}
	if was.Nullable && !is.Nullable {
		c.add(path, "null is not allowed any more")
	}
	c.properties(path, was, is)
	c.values(path, was, is)
	c.bounds(path, was, is)
	if was.Items != nil && is.Items != nil {
		c.schema(path+"[]", was.Items.Schema, is.Items.Schema)
	}
}

// typeName returns the type of a schema, as people know it.
func typeName(s *apiextensions.JSONSchemaProps) string {
	if s.XIntOrString {
		return "integer or string"
	}
	return cmp.Or(s.Type, "any")
}

// widens reports whether every value of one type is one of the other.
func widens(was, is *apiextensions.JSONSchemaProps) bool {
	switch typeName(is) {
	case "any":
		return true
	case "number":
		return was.Type == "integer"
	case "integer or string":
		return was.Type == "integer" || was.Type == "string"
	}
	return false
}

// properties compares the fields of an object, with names and without.
func (c *comparison) properties(path string, was, is *apiextensions.JSONSchemaProps) {
	before, after := unnamed(was), unnamed(is)
	if before != nil && after == nil {
		c.add(path, "fields that the schema does not name are dropped")
	}
	c.schema(join(path, "*"), before, after)
	names := slices.AppendSeq(slices.Collect(maps.Keys(was.Properties)), maps.Keys(is.Properties))
	names = append(names, is.Required...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		before, after := ofField(was, name), ofField(is, name)
		_, had := was.Properties[name]
		_, has := is.Properties[name]
		if path == "" && had != has && slices.Contains([]string{"apiVersion", "kind", "metadata"}, name) {
			continue // the API server keeps it as it is, also without a schema
		}
		if had && after == nil {
			c.add(join(path, name), "the field is dropped")
		}
		c.schema(join(path, name), before, after)
		c.presence(join(path, name), name, was, is)
	}
}

// presence compares whether a field must be there, and whether the API server adds it.
func (c *comparison) presence(path, name string, was, is *apiextensions.JSONSchemaProps) {
	const untried = "its default goes away; the API server reads objects with it, so they cannot be tried without it"
	field, has := is.Properties[name]
	required := slices.Contains(is.Required, name) && field.Default == nil
	switch lost := has && field.Default == nil && was.Properties[name].Default != nil; {
	case lost && required:
		c.add(path, "the field is required, and "+untried)
	case lost:
		c.add(path, untried)
	case required && !slices.Contains(was.Required, name):
		c.add(path, "the field is required now, and has no default")
	}
}

// ofField returns the schema of a field by its name; nil if objects do not keep the field.
func ofField(s *apiextensions.JSONSchemaProps, name string) *apiextensions.JSONSchemaProps {
	if field, has := s.Properties[name]; has {
		return &field
	}
	return unnamed(s)
}

// unnamed returns the schema of fields that a schema does not name; nil if objects do not keep them. One that fits any value has no
// type.
func unnamed(s *apiextensions.JSONSchemaProps) *apiextensions.JSONSchemaProps {
	switch {
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return s.AdditionalProperties.Schema
	case s.AdditionalProperties != nil, s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields:
		return &apiextensions.JSONSchemaProps{XPreserveUnknownFields: s.XPreserveUnknownFields}
	}
	return nil
}

// values compares which values are allowed.
func (c *comparison) values(path string, was, is *apiextensions.JSONSchemaProps) {
	if len(is.Enum) > 0 && len(was.Enum) == 0 {
		c.add(path, "only some values are allowed now")
	}
	for _, value := range was.Enum {
		if len(is.Enum) > 0 && !slices.ContainsFunc(is.Enum, func(v apiextensions.JSON) bool { return string(v.Raw) == string(value.Raw) }) {
			c.add(path, "the value %s is not allowed any more", value.Raw)
		}
	}
	if is.Pattern != "" && is.Pattern != was.Pattern {
		c.add(path, "it must match the pattern %q now", is.Pattern)
	}
	if is.Format != "" && is.Format != was.Format {
		c.add(path, "it must have the format %q now", is.Format)
	}
	c.rules(path, was, is)
	combined := func(s *apiextensions.JSONSchemaProps) any {
		return []any{s.AllOf, s.AnyOf, s.OneOf, s.Not}
	}
	if len(is.AllOf)+len(is.AnyOf)+len(is.OneOf) > 0 || is.Not != nil {
		if !reflect.DeepEqual(combined(was), combined(is)) {
			c.add(path, "allOf, anyOf, oneOf or not changes")
		}
	}
}

// oldSelf matches a rule over the value that an update replaces.
var oldSelf = regexp.MustCompile(`\boldSelf\b`)

// rules compares the validation rules.
func (c *comparison) rules(path string, was, is *apiextensions.JSONSchemaProps) {
	for _, rule := range is.XValidations {
		switch {
		case slices.ContainsFunc(was.XValidations, func(v apiextensions.ValidationRule) bool { return v.Rule == rule.Rule }):
		case oldSelf.MatchString(rule.Rule) && (rule.OptionalOldSelf == nil || !*rule.OptionalOldSelf):
			c.add(path, "the rule %q is new; it holds for updates alone, so objects cannot be tried by it", rule.Rule)
		default:
			c.add(path, "the rule %q is new", rule.Rule)
		}
	}
}

// bounds compares the limits of numbers, texts, lists and maps.
func (c *comparison) bounds(path string, was, is *apiextensions.JSONSchemaProps) {
	for _, b := range []struct {
		name    string
		was, is *float64
		least   bool
	}{
		{"minimum", was.Minimum, is.Minimum, true},
		{"maximum", was.Maximum, is.Maximum, false},
		{"minLength", number(was.MinLength), number(is.MinLength), true},
		{"maxLength", number(was.MaxLength), number(is.MaxLength), false},
		{"minItems", number(was.MinItems), number(is.MinItems), true},
		{"maxItems", number(was.MaxItems), number(is.MaxItems), false},
		{"minProperties", number(was.MinProperties), number(is.MinProperties), true},
		{"maxProperties", number(was.MaxProperties), number(is.MaxProperties), false},
	} {
		if narrows(b.was, b.is, b.least) {
			c.add(path, "%s is %v now", b.name, *b.is)
		}
	}
	c.restrictions(path, was, is)
}

// narrows reports whether a bound allows less than before. Least means that it is a lower bound.
func narrows(was, is *float64, least bool) bool {
	switch {
	case is == nil:
		return false
	case was == nil:
		return true
	case least:
		return *is > *was
	}
	return *is < *was
}

// restrictions compares what limits values besides their bounds.
func (c *comparison) restrictions(path string, was, is *apiextensions.JSONSchemaProps) {
	if is.ExclusiveMinimum && !was.ExclusiveMinimum || is.ExclusiveMaximum && !was.ExclusiveMaximum {
		c.add(path, "a bound itself is not allowed any more")
	}
	if is.MultipleOf != nil && (was.MultipleOf == nil || *is.MultipleOf != *was.MultipleOf) {
		c.add(path, "it must be a multiple of %v now", *is.MultipleOf)
	}
	if hasUniqueElements(is) && (!hasUniqueElements(was) || !slices.Equal(is.XListMapKeys, was.XListMapKeys)) {
		c.add(path, "its elements must be unique now")
	}
}

// number converts a whole bound.
func number(n *int64) *float64 {
	if n == nil {
		return nil
	}
	f := float64(*n)
	return &f
}

// hasUniqueElements reports whether a list is a set, or a map by keys.
func hasUniqueElements(s *apiextensions.JSONSchemaProps) bool {
	return s.XListType != nil && *s.XListType != "atomic"
}

// join returns the path of a field.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
