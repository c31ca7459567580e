// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// named checks the metadata of a new CRD, whose name says what it defines.
func named(meta *metav1.ObjectMeta, spec *apiextensionsv1.CustomResourceDefinitionSpec) field.ErrorList {
	name := func(name string, prefix bool) []string {
		out := validation.NameIsDNSSubdomain(name, prefix)
		if name != spec.Names.Plural+"."+spec.Group {
			out = append(out, `must be spec.names.plural+"."+spec.group`)
		}
		return out
	}
	return validation.ValidateObjectMeta(meta, false, name, field.NewPath("metadata"))
}

// approved checks that a CRD in a group of the Kubernetes community has the annotation for it.
func approved(meta *metav1.ObjectMeta, spec *apiextensionsv1.CustomResourceDefinitionSpec) field.ErrorList {
	if !apihelpers.IsProtectedCommunityGroup(spec.Group) {
		return nil
	}
	path := field.NewPath("metadata", "annotations").Key(apiextensionsv1.KubeAPIApprovedAnnotation)
	switch state, why := apihelpers.GetAPIApprovalState(meta.Annotations); state {
	case apihelpers.APIApprovalMissing:
		return field.ErrorList{field.Required(path, why)}
	case apihelpers.APIApprovalInvalid:
		return field.ErrorList{field.Invalid(path, meta.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation], why)}
	}
	return nil
}

// fixed checks that what stored objects depend on does not change.
func fixed(next, old *apiextensionsv1.CustomResourceDefinitionSpec) field.ErrorList {
	path := field.NewPath("spec")
	return slices.Concat(
		validation.ValidateImmutableField(apiextensions.ResourceScope(next.Scope), apiextensions.ResourceScope(old.Scope), path.Child("scope")),
		validation.ValidateImmutableField(next.Names.Kind, old.Names.Kind, path.Child("names", "kind")),
		validation.ValidateImmutableField(next.Group, old.Group, path.Child("group")),
		validation.ValidateImmutableField(next.Names.Plural, old.Names.Plural, path.Child("names", "plural")),
	)
}

// remains checks that versions in which objects may be stored are still there.
func remains(spec *apiextensionsv1.CustomResourceDefinitionSpec, stored map[string]any) (out field.ErrorList) {
	versions, _, _ := unstructured.NestedStringSlice(stored, "status", "storedVersions")
	for i, name := range versions {
		if !slices.ContainsFunc(spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name }) {
			out = append(out, field.Invalid(field.NewPath("status", "storedVersions").Index(i), name, fmt.Sprintf(
				"missing from spec.versions; %[1]s was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in %[1]s and removes %[1]s from status.storedVersions", name)))
		}
	}
	return out
}

// kept returns what is wrong with the versions in which objects of a new CRD are stored.
func kept(spec *apiextensionsv1.CustomResourceDefinitionSpec) field.ErrorList {
	path, stored := field.NewPath("status", "storedVersions"), []string(nil)
	for _, v := range spec.Versions {
		switch {
		case v.Storage && stored == nil:
			stored = []string{v.Name}
		case v.Storage && v.Name != stored[0]:
			return field.ErrorList{field.Invalid(path, stored, "must have the storage version "+v.Name)}
		}
	}
	if stored == nil {
		return field.ErrorList{field.Invalid(path, stored, "must have at least one stored version")}
	}
	return nil
}

// checkSpec returns what is wrong with the spec of a CRD. Parts that are the same in all versions are its own, as they
// are for a real server.
func checkSpec(spec *apiextensions.CustomResourceDefinitionSpec) field.ErrorList {
	path := field.NewPath("spec")
	out := append(checkGroup(spec.Group, path.Child("group")), oneOf(path.Child("scope"), string(spec.Scope), "Cluster", "Namespaced")...)
	if spec.Validation == nil || spec.Validation.OpenAPIV3Schema == nil {
		for i, v := range spec.Versions {
			if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
				out = append(out, field.Required(path.Child("versions").Index(i).Child("schema", "openAPIV3Schema"), ""))
			}
		}
	}
	out = append(out, checkVersions(spec, path.Child("versions"))...)
	if spec.Version != "" { // that of the first of all versions
		out = append(out, label(path.Child("version"), spec.Version)...)
	}
	names := path.Child("names")
	for _, each := range []struct{ field, value string }{
		{"plural", spec.Names.Plural}, {"singular", spec.Names.Singular}, {"kind", spec.Names.Kind}, {"listKind", spec.Names.ListKind},
	} {
		if each.value == "" {
			out = append(out, field.Required(names.Child(each.field), ""))
		}
	}
	anyStatus := hasStatus(spec.Subresources) || slices.ContainsFunc(spec.Versions, func(v apiextensions.CustomResourceDefinitionVersion) bool { return hasStatus(v.Subresources) })
	out = slices.Concat(out, checkNames(&spec.Names, names), checkParts(parts{
		schema: spec.Validation, subresources: spec.Subresources, status: anyStatus,
		columns: spec.AdditionalPrinterColumns, selectable: spec.SelectableFields,
	}, path, "validation"), checkConversion(spec.Conversion, path.Child("conversion")))
	if spec.PreserveUnknownFields != nil && *spec.PreserveUnknownFields {
		out = append(out, field.Invalid(path.Child("preserveUnknownFields"), spec.PreserveUnknownFields,
			"cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"))
	}
	return out
}

func checkGroup(group string, path *field.Path) field.ErrorList {
	if group == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	if why := utilvalidation.IsDNS1123Subdomain(group); len(why) > 0 {
		return field.ErrorList{field.Invalid(path, group, strings.Join(why, ","))}
	}
	if !strings.Contains(group, ".") {
		return field.ErrorList{field.Invalid(path, group, "should be a domain with at least one dot")}
	}
	return nil
}

// oneOf checks a required value of an enumeration.
func oneOf(path *field.Path, value string, values ...string) field.ErrorList {
	switch {
	case value == "":
		return field.ErrorList{field.Required(path, "")}
	case !slices.Contains(values, value):
		return field.ErrorList{field.NotSupported(path, value, values)}
	}
	return nil
}

// checkVersions checks each version, and that one of them is that of storage.
func checkVersions(spec *apiextensions.CustomResourceDefinitionSpec, path *field.Path) (out field.ErrorList) {
	storage, seen, twice := 0, map[string]bool{}, false
	shared := !slices.ContainsFunc(spec.Versions, func(v apiextensions.CustomResourceDefinitionVersion) bool { return v.Subresources != nil })
	for i := range spec.Versions {
		v, at := &spec.Versions[i], path.Index(i)
		if v.Storage {
			storage++
		}
		twice = twice || seen[v.Name]
		seen[v.Name] = true
		out = append(out, label(at.Child("name"), v.Name)...)
		out = append(out, checkWarning(v.Deprecated, v.DeprecationWarning, at.Child("deprecationWarning"))...)
		out = append(out, checkParts(parts{
			schema: v.Schema, subresources: v.Subresources, status: hasStatus(v.Subresources) || shared && hasStatus(spec.Subresources),
			columns: v.AdditionalPrinterColumns, selectable: v.SelectableFields,
		}, at, "schema")...)
	}
	if twice {
		out = append(out, field.Invalid(path, spec.Versions, "must contain unique version names"))
	}
	if storage != 1 {
		out = append(out, field.Invalid(path, spec.Versions, "must have exactly one version marked as storage version"))
	}
	return out
}

func hasStatus(s *apiextensions.CustomResourceSubresources) bool { return s != nil && s.Status != nil }

// label checks a DNS label.
func label(path *field.Path, value string) field.ErrorList {
	if why := utilvalidation.IsDNS1035Label(value); len(why) > 0 {
		return field.ErrorList{field.Invalid(path, value, strings.Join(why, ","))}
	}
	return nil
}

// checkNames checks the names of a CRD. Absent ones have been reported.
func checkNames(names *apiextensions.CustomResourceDefinitionNames, path *field.Path) (out field.ErrorList) {
	const mixed = "may have mixed case, but should otherwise match: "
	for _, each := range []struct{ field, value, words string }{
		{"plural", names.Plural, ""}, {"singular", names.Singular, ""}, {"kind", names.Kind, mixed}, {"listKind", names.ListKind, mixed},
	} {
		if why := utilvalidation.IsDNS1035Label(lower(each.value, each.words)); each.value != "" && len(why) > 0 {
			out = append(out, field.Invalid(path.Child(each.field), each.value, each.words+strings.Join(why, ",")))
		}
	}
	for i, name := range names.ShortNames {
		out = append(out, label(path.Child("shortNames").Index(i), name)...)
	}
	if names.Kind != "" && names.Kind == names.ListKind {
		out = append(out, field.Invalid(path.Child("listKind"), names.ListKind, "kind and listKind may not be the same"))
	}
	for i, name := range names.Categories {
		out = append(out, label(path.Child("categories").Index(i), name)...)
	}
	return out
}

// lower is the form of a name that is checked: kinds may have mixed case.
func lower(name, words string) string {
	if words != "" {
		return strings.ToLower(name)
	}
	return name
}
