// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkKinds checks the extensions of a schema that say what kind of a map or a list it has.
func checkKinds(s *apiextensions.JSONSchemaProps, path *field.Path) (out field.ErrorList) {
	if keep := s.XPreserveUnknownFields; keep != nil && !*keep {
		out = append(out, field.Invalid(path.Child("x-kubernetes-preserve-unknown-fields"), *keep, "must be true or undefined"))
	}
	if s.XMapType != nil {
		out = append(out, typed(s, path, "object", "must be object if x-kubernetes-map-type is specified")...)
		out = append(out, oneOf(path.Child("x-kubernetes-map-type"), *s.XMapType, "atomic", "granular")...)
	}
	if s.XListType == nil {
		return out
	}
	wrong := typed(s, path, "array", "must be array if x-kubernetes-list-type is specified")
	out = append(out, wrong...)
	if len(wrong) == 0 && *s.XListType == "set" && s.Items != nil && s.Items.Schema != nil {
		out = append(out, checkElement(s.Items.Schema, path.Child("items"))...)
	}
	return append(out, oneOf(path.Child("x-kubernetes-list-type"), *s.XListType, "atomic", "set", "map")...)
}

// typed checks the type of a schema.
func typed(s *apiextensions.JSONSchemaProps, path *field.Path, want, why string) field.ErrorList {
	switch s.Type {
	case want:
		return nil
	case "":
		return field.ErrorList{field.Required(path.Child("type"), why)}
	}
	return field.ErrorList{field.Invalid(path.Child("type"), s.Type, why)}
}

// checkElement checks that the elements of a set are taken as a whole.
func checkElement(s *apiextensions.JSONSchemaProps, path *field.Path) field.ErrorList {
	const why = "must be atomic as item of a list with x-kubernetes-list-type=set"
	switch {
	case s.Type == "array" && s.XListType != nil && *s.XListType != "atomic":
		return field.ErrorList{field.Invalid(path.Child("x-kubernetes-list-type"), s.XListType, why)}
	case s.Type == "object" && (s.XMapType == nil || *s.XMapType != "atomic"):
		return field.ErrorList{field.Invalid(path.Child("x-kubernetes-map-type"), s.XListType, why)}
	}
	return nil
}

// checkLists checks a list that is a map by keys, or a set.
func checkLists(s *apiextensions.JSONSchemaProps, path *field.Path) (out field.ErrorList) {
	isMap, kind := s.XListType != nil && *s.XListType == "map", path.Child("x-kubernetes-list-type")
	if len(s.XListMapKeys) > 0 && !isMap {
		const why = "must be map if x-kubernetes-list-map-keys is non-empty"
		if s.XListType == nil {
			out = append(out, field.Required(kind, why))
		} else {
			out = append(out, field.Invalid(kind, *s.XListType, why))
		}
	}
	if isMap {
		out = append(out, checkMap(s, path)...)
	}
	if s.Items == nil || s.Items.Schema == nil || !isMap && (s.XListType == nil || *s.XListType != "set") {
		return out
	}
	if s.Items.Schema.Nullable {
		out = append(out, field.Forbidden(path.Child("items", "nullable"), "cannot be nullable when x-kubernetes-list-type is "+*s.XListType))
	}
	if isMap {
		out = append(out, checkKeys(s, path.Child("items", "properties"))...)
	}
	return out
}

// checkMap checks that the elements of a list that is a map have its keys.
func checkMap(s *apiextensions.JSONSchemaProps, path *field.Path) (out field.ErrorList) {
	keys, items := path.Child("x-kubernetes-list-map-keys"), path.Child("items")
	if len(s.XListMapKeys) == 0 {
		out = append(out, field.Required(keys, "must not be empty if x-kubernetes-list-type is map"))
	}
	switch {
	case s.Items == nil:
		return append(out, field.Required(items, "must have a schema if x-kubernetes-list-type is map"))
	case s.Items.Schema == nil:
		return append(out, field.Invalid(items, s.Items, "must only have a single schema if x-kubernetes-list-type is map"))
	case s.Items.Schema.Type != "object":
		return append(out, field.Invalid(items.Child("type"), s.Items.Schema.Type, "must be object if parent array's x-kubernetes-list-type is map"))
	}
	for i, key := range s.XListMapKeys {
		property, found := s.Items.Schema.Properties[key]
		switch {
		case !found:
			out = append(out, field.Invalid(keys, s.XListMapKeys, "entries must all be names of item properties"))
		case property.Type == "array", property.Type == "object":
			out = append(out, field.Invalid(items.Child("properties").Key(key).Child("type"), s.Items.Schema.Type, "must be a scalar type if parent array's x-kubernetes-list-type is map"))
		}
		if slices.Contains(s.XListMapKeys[:i], key) {
			out = append(out, field.Invalid(keys, s.XListMapKeys, "must not contain duplicate entries"))
		}
	}
	return out
}

// checkKeys checks that each element of a list that is a map has a value for each key.
func checkKeys(s *apiextensions.JSONSchemaProps, path *field.Path) (out field.ErrorList) {
	for _, key := range s.XListMapKeys {
		property, found := s.Items.Schema.Properties[key]
		if !found {
			continue
		}
		if property.Default == nil && !slices.Contains(s.Items.Schema.Required, key) {
			out = append(out, field.Required(path.Key(key).Child("default"), "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"))
		}
		if property.Nullable {
			out = append(out, field.Forbidden(path.Key(key).Child("nullable"), "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"))
		}
	}
	return out
}
