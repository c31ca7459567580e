// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package crd makes CustomResourceDefinitions from the short form in which authors describe a resource. A field is
// its type and, behind a bar, markers:
//
//	replicas: integer | default=1 minimum=1 maximum=10
//
// Types are string, integer (64 bits), number (or float), boolean, date, datetime, quantity, int-or-string, object
// (of any form), []T, map[string]T and the author's own. A field that is a map is an object with fields. [Describe]
// makes a CRD from a Go type, with the markers in its tags. It is pure.
//
// The API server accepts the result: [Build] uses the server's own code where that can be imported without the rest
// of the server, checks everything else that the short form can get wrong, and reports each mistake with its place.
// For an openAPIV3Schema the server may refuse more.
//
// A default within an object takes effect when the object itself is left out, if the object is not required and
// each of its required fields has a default: then the object has a default, too. This does not apply within lists
// and maps. Spec is required when one of its fields must be given, and otherwise gets a default like any object;
// status never gets one.
//
// A status in short form, also one without fields, has conditions, because operators report there.
package crd

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// unapproved is the value that the API server requires for a group whose name belongs to Kubernetes.
const unapproved = "unapproved, the operator's own"

var kindName = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

// CheckName reports why a resource of that name cannot have a CRD.
func CheckName(name dsl.ResourceName) error {
	switch {
	case name.Group == "":
		return errors.New("a resource with a schema is in an API group of its own (want plural.version.group, as in webapps.v1alpha1.example.com)")
	case name.Version == "":
		return errors.New("a resource with a schema needs a version (want plural.version.group, as in webapps.v1alpha1.example.com)")
	case !strings.Contains(name.Group, "."):
		return fmt.Errorf("the API group %q of a resource with a schema needs a dot (want a domain, as in example.com)", name.Group)
	default:
		return nil
	}
}

// Build makes the CRD of a resource in its JSON form, or returns all faults. The name must have passed [CheckName].
// Paths of faults begin at the schema.
func Build(name dsl.ResourceName, s *Schema) (map[string]any, []*shape.Misfit) {
	b := &builder{form: s, places: map[string]place{}}
	b.names()
	root := b.root()
	columns := b.columns(root)
	if s.OpenAPIV3Schema == nil || s.OpenAPIV3Schema.props != nil && len(b.faults) == 0 {
		b.lint(nil, root)
		b.validate(root)
	}
	crd := definition(name, s, root, columns)
	b.versions(name, crd)
	if len(b.faults) > 0 {
		return nil, b.sorted()
	}
	out, err := inJSON(crd)
	if err != nil {
		b.fault(nil, "%v", err)
	}
	return out, b.faults
}

// definition assembles the CRD.
func definition(
	name dsl.ResourceName, s *Schema, root *apiextensions.JSONSchemaProps, columns []apiextensions.CustomResourceColumnDefinition,
) *apiextensions.CustomResourceDefinition {
	crd := &apiextensions.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: name.Resource + "." + name.Group},
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group: name.Group,
			Scope: apiextensions.ResourceScope(cmp.Or(s.Scope, "Namespaced")),
			Names: apiextensions.CustomResourceDefinitionNames{
				Plural: name.Resource, Kind: s.Kind,
				Singular:   cmp.Or(s.Singular, strings.ToLower(s.Kind)),
				ListKind:   cmp.Or(s.ListKind, s.Kind+"List"),
				ShortNames: s.ShortNames, Categories: s.Categories,
			},
			Versions: []apiextensions.CustomResourceDefinitionVersion{{
				Name: name.Version, Served: true, Storage: true,
				Schema:                   &apiextensions.CustomResourceValidation{OpenAPIV3Schema: root},
				Subresources:             &apiextensions.CustomResourceSubresources{Status: &apiextensions.CustomResourceSubresourceStatus{}},
				AdditionalPrinterColumns: columns,
			}},
		},
	}
	if apihelpers.IsProtectedCommunityGroup(name.Group) {
		crd.Annotations = map[string]string{apiextensions.KubeAPIApprovedAnnotation: unapproved}
	}
	return crd
}

// names checks the names of the resource, and that the schema is given in one form only.
func (b *builder) names() {
	s := b.form
	b.labels()
	if !kindName.MatchString(s.Kind) && s.Kind != "" {
		b.fault([]string{"kind"}, "want a kind in CamelCase, as in WebApp")
	}
	if s.OpenAPIV3Schema == nil {
		return
	}
	for name, given := range map[string]bool{"spec": s.Spec != nil, "status": s.Status != nil, "types": s.Types != nil, "validation": s.Validation != nil} {
		if given {
			b.fault([]string{name}, "excludes openAPIV3Schema, which says all")
		}
	}
}

// labels checks the names that kubectl uses.
func (b *builder) labels() {
	s := b.form
	label := func(name string, at ...string) {
		if errs := validation.IsDNS1035Label(name); len(errs) > 0 {
			b.fault(at, "%s", strings.Join(errs, ", "))
		}
	}
	if s.Singular != "" {
		label(s.Singular, "singular")
	}
	switch {
	case s.ListKind == "" && kindName.MatchString(s.Kind):
		label(strings.ToLower(s.Kind+"List"), "kind")
	case s.ListKind == "": // the fault is in the kind
	case s.ListKind == s.Kind:
		b.fault([]string{"listKind"}, "kind and listKind may not be the same")
	default:
		label(strings.ToLower(s.ListKind), "listKind")
	}
	for i, name := range s.ShortNames {
		label(name, "shortNames", strconv.Itoa(i))
	}
	for i, name := range s.Categories {
		label(name, "categories", strconv.Itoa(i))
	}
}

// sorted returns the faults in order, each once. A fault of a type is found wherever the type is used.
func (b *builder) sorted() []*shape.Misfit {
	order := func(x, y *shape.Misfit) int {
		return cmp.Or(slices.Compare(x.Path, y.Path), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column), strings.Compare(x.Message, y.Message))
	}
	slices.SortFunc(b.faults, order)
	b.faults = slices.CompactFunc(b.faults, func(x, y *shape.Misfit) bool { return order(x, y) == 0 })
	return b.faults
}

// inJSON returns the CRD in its JSON form, without a status.
func inJSON(crd *apiextensions.CustomResourceDefinition) (map[string]any, error) {
	value, err := plain.Value(crd)
	tree, _ := value.(map[string]any)
	delete(tree, "status")
	return tree, err
}

// Objects returns the kind of the objects that a CRD of [Build] describes, and their schema with the fields that
// every object has: apiVersion, kind and metadata.
func Objects(crd map[string]any) (schema.GroupVersionKind, *spec.Schema, error) {
	return ObjectsOf(crd, "")
}

// ObjectsOf is [Objects] for one of the versions of the CRD. If it has no such version, that of the resource counts.
func ObjectsOf(crd map[string]any, name string) (schema.GroupVersionKind, *spec.Schema, error) {
	given := apiextensions.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(crd, &given); err != nil {
		return schema.GroupVersionKind{}, nil, fmt.Errorf("reading CRD: %w", err)
	}
	version := given.Spec.Versions[0] // that of the resource
	for _, each := range given.Spec.Versions {
		if each.Name == name {
			version = each
		}
	}
	kind := schema.GroupVersionKind{Group: given.Spec.Group, Version: version.Name, Kind: given.Spec.Names.Kind}
	root, b := version.Schema.OpenAPIV3Schema, &builder{form: &Schema{}, places: map[string]place{}}
	if root.Properties == nil {
		root.Properties = map[string]apiextensions.JSONSchemaProps{}
	}
	root.Properties["apiVersion"], root.Properties["kind"] = *builtin("string"), *builtin("string")
	root.Properties["metadata"] = *b.structure(nil, nil, reflect.TypeFor[metav1.ObjectMeta]())
	s, err := internalForm(root)
	if err != nil {
		return kind, nil, err
	}
	return kind, s.ToKubeOpenAPI(), nil
}
