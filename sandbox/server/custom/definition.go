// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/handwerk-dev/handwerk/sandbox/server"
)

// Definition returns the schema of CRDs themselves.
func Definition() server.Schema { return definition{} }

// definition is the schema of CRDs. A spec that was validated once in this process, or that is stored, is not validated
// again.
type definition struct{}

// Decode brings a CRD into its form. See [server.Typed].
func (definition) Decode(object, _ map[string]any) (unknown []string, err error) {
	managed := server.SetAside(object)
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	strict, err := kjson.UnmarshalStrict(data, &crd)
	if err != nil {
		return nil, err
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&crd)
	if data, err = json.Marshal(crd); err != nil {
		return nil, err
	}
	var out map[string]any
	if err := utiljson.Unmarshal(data, &out); err != nil {
		return nil, err
	}
	server.Replace(object, out, managed)
	return server.UnknownFields(strict), nil
}

// Begin sets nothing: the server sets the status.
func (definition) Begin(map[string]any) error { return nil }

// Keep keeps nothing.
func (definition) Keep(_, _ map[string]any) error { return nil }

// Prune removes nothing: Decode has done so.
func (definition) Prune(map[string]any) ([]string, error) { return nil, nil }

// Default sets nothing: Decode has done so.
func (definition) Default(map[string]any) {}

// Converter returns nil: the server has one.
func (definition) Converter() managedfields.TypeConverter { return nil }

// Create returns why a CRD cannot be created.
func (definition) Create(_ context.Context, object map[string]any) field.ErrorList {
	meta, errs := metadataOf(object)
	if len(errs) > 0 {
		return errs
	}
	found, err := factsOf(object["spec"])
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("spec"), "", err.Error())}
	}
	return slices.Concat(named(meta, &found.spec), found.faults(), kept(&found.spec), approved(meta, &found.spec))
}

// Update returns why a CRD cannot take the place of a stored one.
func (definition) Update(_ context.Context, object, stored map[string]any) field.ErrorList {
	out := updated(object, stored, false)
	if reflect.DeepEqual(object["spec"], stored["spec"]) {
		return out
	}
	next, err := factsOf(object["spec"])
	if err != nil {
		return append(out, field.Invalid(field.NewPath("spec"), "", err.Error()))
	}
	old, err := factsOf(stored["spec"])
	if err != nil {
		return append(out, field.Invalid(field.NewPath("spec"), "", err.Error()))
	}
	out = append(append(out, next.faults()...), fixed(&next.spec, &old.spec)...)
	return append(out, remains(&next.spec, stored)...)
}

// UpdatePart returns what is wrong with the metadata: the status is that of controllers.
func (definition) UpdatePart(_ context.Context, _ string, object, stored map[string]any) field.ErrorList {
	return updated(object, stored, false)
}
