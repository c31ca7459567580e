// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/sandbox/server"
)

// form is the schema of a CRD's version. It does not change, except for what is compiled on demand.
type form struct {
	kind       schema.GroupVersionKind
	namespaced bool
	// preserves: unknown fields stay, by the old field of the CRD's spec.
	preserves bool
	scale     *apiextensionsv1.CustomResourceSubresourceScale
	// shape has the fields with their defaults and extensions.
	shape *structural.Structural
	// rules are those of CEL; nil if there are none.
	rules func() *cel.Validator
	// components are the schemas of the version's OpenAPI document.
	components func() map[string]*spec.Schema
	// types are those of the fields of all versions; nil if the schemas have an error.
	types func() managedfields.TypeConverter
	// whole and status validate the values of an object and of its status.
	whole, status func() validation.SchemaValidator
}

// newForm returns the schema of a version, or nil if it has none.
func newForm(crd *apiextensionsv1.CustomResourceDefinitionSpec, version *apiextensionsv1.CustomResourceDefinitionVersion) (*form, error) {
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return nil, nil //nolint:nilnil // no schema and no error
	}
	props := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, props, nil); err != nil {
		return nil, err
	}
	shape, err := structural.NewStructural(props)
	if err != nil {
		return nil, err
	}
	shape = shape.DeepCopy() // it shares its defaults with the CRD
	if err := defaulting.PruneDefaults(shape); err != nil {
		return nil, err
	}
	f := &form{
		kind:       schema.GroupVersionKind{Group: crd.Group, Version: version.Name, Kind: crd.Names.Kind},
		namespaced: crd.Scope == apiextensionsv1.NamespaceScoped, preserves: crd.PreserveUnknownFields, shape: shape,
		rules:      sync.OnceValue(func() *cel.Validator { return cel.NewValidator(shape, true, celconfig.PerCallLimit) }),
		whole:      sync.OnceValue(func() validation.SchemaValidator { return validator(props) }),
		status:     func() validation.SchemaValidator { return nil },
		components: sync.OnceValue(func() map[string]*spec.Schema { return componentsOf(crd, version, shape) }),
	}
	if version.Subresources != nil {
		f.scale = version.Subresources.Scale
	}
	if status, found := props.Properties["status"]; found {
		f.status = sync.OnceValue(func() validation.SchemaValidator { return validator(&status) })
	}
	return f, nil
}

// validator compiles the values of a schema.
func validator(props *apiextensions.JSONSchemaProps) validation.SchemaValidator {
	out, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		panic("custom: " + err.Error()) // not reached: the same schema was converted to a structural one
	}
	return out
}

// Prune removes the fields that the schema lacks, and nulls that mean absence, and checks the types of the metadata's
// fields. See [server.Schema].
func (f *form) Prune(object map[string]any) (unknown []string, err error) {
	managed := server.SetAside(object)
	meta, found, unknown, err := objectmeta.GetObjectMetaWithOptions(object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, err
	}
	if !f.preserves {
		options := structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
		unknown = append(unknown, pruning.PruneWithOptions(object, f.shape, true, options)...)
		defaulting.PruneNonNullableNullsWithoutDefaults(object, f.shape)
	}
	wrong, below := objectmeta.CoerceWithOptions(nil, object, f.shape, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if wrong != nil {
		return nil, wrong
	}
	if found {
		err = objectmeta.SetObjectMeta(object, meta)
		server.PutBack(object, managed)
	}
	return append(unknown, below...), err
}

// Default sets absent fields that have a default.
func (f *form) Default(object map[string]any) { defaulting.Default(object, f.shape) }

// Converter returns the types of the fields of all versions.
func (f *form) Converter() managedfields.TypeConverter { return f.types() }
