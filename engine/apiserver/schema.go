// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Schemas has the schemas of the kinds that a server serves.
type Schemas interface {
	// Builtin returns the schema of a built-in kind, or nil if it has none.
	Builtin(kind schema.GroupVersionKind) Schema
	// Custom returns the schemas of a CRD's served versions, by version. An error says that the CRD is invalid.
	Custom(crd *unstructured.Unstructured) (map[string]Schema, error)
}

// Schema is what a server knows of the objects of one version of a kind, beside their metadata. Its methods may be
// called by several goroutines at once.
type Schema interface {
	// Prune removes the fields that the schema lacks, and returns their paths, as in spec.sizes[0].unit.
	Prune(object map[string]any) (unknown []string)
	// Default sets absent fields that have a default.
	Default(object map[string]any)
	// Create returns why an object cannot be created.
	Create(ctx context.Context, object map[string]any) field.ErrorList
	// Update returns why an object cannot take the place of a stored one. What was stored as it is passes, where a
	// real server lets it pass.
	Update(ctx context.Context, object, stored map[string]any) field.ErrorList
	// Converter has the types of the fields for server-side apply; nil means the server's own.
	Converter() managedfields.TypeConverter
}

// schemaOf returns the schema of a table's objects in a version, or nil.
func (s *Server) schemaOf(t *table, version string) Schema {
	if s.schemas == nil {
		return nil
	}
	if t.custom {
		return t.schemas[version]
	}
	return s.schemas.Builtin(schema.GroupVersionKind{Group: t.group, Version: version, Kind: t.kind})
}

// decode brings an object that a client sent, or that a patch made, into the form of its schema.
func (s *Server) decode(t *table, r Request, o *unstructured.Unstructured) error {
	form := s.schemaOf(t, r.Resource.Version)
	if form == nil {
		return nil
	}
	unknown := form.Prune(o.Object)
	form.Default(o.Object)
	return r.unknown(t, unknown)
}

// check returns why an object cannot be stored according to its schema; old is nil for a new object.
func (s *Server) check(t *table, r Request, next, old *unstructured.Unstructured) field.ErrorList {
	form := s.schemaOf(t, r.Resource.Version)
	switch {
	case form == nil:
		return nil
	case old == nil:
		return form.Create(context.Background(), next.Object)
	}
	return form.Update(context.Background(), next.Object, old.Object)
}
