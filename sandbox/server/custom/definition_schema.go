// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkSchema returns what is wrong with the schema of a version. status: the version has a status subresource.
func checkSchema(s *apiextensions.JSONSchemaProps, path *field.Path, status bool) field.ErrorList {
	if s == nil {
		return nil
	}
	at := path.Child("openAPIV3Schema")
	var out field.ErrorList
	if status {
		out = checkRoot(s, at)
	}
	if s.Nullable {
		out = append(out, field.Forbidden(path.Child("openAPIV3Schema.nullable"), "nullable cannot be true at the root"))
	}
	var rules *ruled
	wrong, err := checkShape(s, at)
	if err == nil {
		out = append(out, wrong...)
	}
	if err == nil && len(wrong) == 0 {
		rules = newRuled(s)
	}
	faults, broken := checkNode(s, at, place{root: true}, rules)
	out = slices.Concat(out, faults, broken)
	if len(out) == 0 && err != nil {
		out = append(out, field.Invalid(at, "", err.Error()))
	}
	if rules != nil {
		out = append(out, rules.total.exceeded(at)...)
	}
	if len(out) > 0 {
		return out
	}
	if _, _, err := validation.NewSchemaValidator(s); err != nil {
		out = append(out, field.Invalid(path, "", fmt.Sprintf("error building validator: %v", err)))
	}
	return out
}

// checkShape returns why a schema is not structural, or what is wrong with its defaults. The error is one that is known
// in better words, too.
func checkShape(s *apiextensions.JSONSchemaProps, path *field.Path) (field.ErrorList, error) {
	shape, err := structural.NewStructural(s)
	if err != nil {
		return nil, err
	}
	if out := structural.ValidateStructural(path, shape); len(out) > 0 {
		return byField(out), nil
	}
	out, err := defaulting.ValidateDefaults(context.Background(), path, shape, true, true) //nolint:forbidigo // rules have a budget, and nothing waits
	if err != nil {
		return field.ErrorList{field.Invalid(path, "", err.Error())}, nil //nolint:nilerr // it is one of the errors
	}
	return byField(out), nil
}

// checkRoot checks that the root of a schema says nothing that would be lost where the status is validated by itself.
func checkRoot(s *apiextensions.JSONSchemaProps, path *field.Path) field.ErrorList {
	allowed := []string{
		"Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum", "ExclusiveMinimum", "MaxLength",
		"MinLength", "Pattern", "MaxItems", "MinItems", "UniqueItems", "MultipleOf", "Required", "Items", "Properties",
		"ExternalDocs", "Example", "XPreserveUnknownFields", "XValidations",
	}
	for fieldOf, value := range reflect.ValueOf(s).Elem().Fields() {
		switch {
		case value.IsZero():
		case fieldOf.Name == "Type" && s.Type != "object":
			return field.ErrorList{field.Invalid(field.NewPath(path.String()+".type"), s.Type, `only "object" is allowed as the type at the root of the schema if the status subresource is enabled`)}
		case !slices.Contains(allowed, fieldOf.Name):
			return field.ErrorList{field.Invalid(path, *s, fmt.Sprintf(`only %v fields are allowed at the root of the schema if the status subresource is enabled`, allowed))}
		}
	}
	return nil
}

// place says where in an object the fields of a schema are.
type place struct {
	// root: they are the object. meta: they are of the type or the metadata of an object.
	root, meta bool
	// noDefaults says where no default can be; empty means that it can.
	noDefaults string
	// apart is the highest schema whose elements have no counterparts in an older object, or nil.
	apart *field.Path
}

// without is a place of which rules cannot see the older value.
func (p place) without(path *field.Path) place {
	if p.apart == nil {
		p.apart = path
	}
	return p
}

// checkNode returns what is wrong with a schema and those below it, and with their rules. rules are nil where there can
// be none.
func checkNode(s *apiextensions.JSONSchemaProps, path *field.Path, at place, rules *ruled) (faults, broken field.ErrorList) {
	if s == nil {
		return nil, nil
	}
	faults = checkFields(s, path, at)
	below := at
	below.root = false
	add := func(s *apiextensions.JSONSchemaProps, path *field.Path, at place, rules *ruled) {
		f, b := checkNode(s, path, at, rules)
		faults, broken = append(faults, f...), append(broken, b...)
	}
	if more := s.AdditionalProperties; more != nil {
		if len(s.Properties) != 0 && (!more.Allows || more.Schema != nil) {
			faults = append(faults, field.Forbidden(path.Child("additionalProperties"), "additionalProperties and properties are mutual exclusive"))
		}
		values := below
		if at.meta {
			values.noDefaults = "inside additionalProperties applying to object metadata"
		}
		add(more.Schema, path.Child("additionalProperties"), values, rules.values(more.Schema))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		add(&property, path.Child("properties").Key(name), propertyAt(s, path, at, name), rules.property(&property, name))
	}
	eachJunctor(s, path, func(s *apiextensions.JSONSchemaProps, path *field.Path) { add(s, path, below, nil) })
	if s.Items != nil {
		items := below
		if s.XListType == nil || *s.XListType != "map" {
			items = items.without(path)
		}
		add(s.Items.Schema, path.Child("items"), items, rules.items(s.Items.Schema))
	}
	faults = slices.Concat(faults, checkKinds(s, path), checkLists(s, path), checkRuleTexts(s, path))
	if len(faults) == 0 && rules != nil && len(s.XValidations) > 0 {
		broken = append(broken, rules.compile(s, path, at)...)
	}
	return faults, broken
}

// eachJunctor calls a function for each schema that a schema combines, with its path.
func eachJunctor(s *apiextensions.JSONSchemaProps, path *field.Path, do func(*apiextensions.JSONSchemaProps, *field.Path)) {
	do(s.Not, path.Child("not"))
	for _, each := range []struct {
		name string
		list []apiextensions.JSONSchemaProps
	}{{"allOf", s.AllOf}, {"oneOf", s.OneOf}, {"anyOf", s.AnyOf}} {
		for i := range each.list {
			do(&each.list[i], path.Child(each.name).Index(i))
		}
	}
}

// propertyAt is the place of a property.
func propertyAt(s *apiextensions.JSONSchemaProps, path *field.Path, at place, name string) place {
	out := at
	out.root = false
	if !cel.MapIsCorrelatable(s.XMapType) {
		out = out.without(path)
	}
	if (at.root || s.XEmbeddedResource) && slices.Contains([]string{"metadata", "kind", "apiVersion"}, name) {
		out.meta = true
		if at.root {
			out.noDefaults = "in top-level " + name
		}
	}
	return out
}

// checkFields checks that a schema has only what is supported.
func checkFields(s *apiextensions.JSONSchemaProps, path *field.Path, at place) (out field.ErrorList) {
	if types := []string{"array", "boolean", "integer", "number", "object", "string"}; s.Type != "" && !slices.Contains(types, s.Type) {
		out = append(out, field.NotSupported(path.Child("type"), s.Type, types))
	}
	if s.Default != nil && at.noDefaults != "" {
		out = append(out, field.Forbidden(path.Child("default"), "must not be set "+at.noDefaults))
	}
	for _, each := range []struct {
		name  string
		found bool
	}{
		{"id", s.ID != ""}, {"additionalItems", s.AdditionalItems != nil}, {"patternProperties", len(s.PatternProperties) != 0},
		{"definitions", len(s.Definitions) != 0}, {"dependencies", s.Dependencies != nil}, {"$ref", s.Ref != nil},
	} {
		if each.found {
			out = append(out, field.Forbidden(path.Child(each.name), each.name+" is not supported"))
		}
	}
	if s.Type == "null" {
		out = append(out, field.Forbidden(path.Child("type"), "type cannot be set to null, use nullable as an alternative"))
	}
	if s.Items != nil && len(s.Items.JSONSchemas) != 0 {
		out = append(out, field.Forbidden(path.Child("items"), "items must be a schema object and not an array"))
	}
	if at.meta && s.XEmbeddedResource {
		out = append(out, field.Forbidden(path.Child("x-kubernetes-embedded-resource"), "must not be used inside of resource meta"))
	}
	if s.UniqueItems {
		out = append(out, field.Forbidden(path.Child("uniqueItems"), "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"))
	}
	return out
}
