// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/warning"
)

// Schemas has the schemas of the kinds that a server serves.
type Schemas interface {
	// Builtin returns the schema of a built-in kind, or nil if it has none.
	Builtin(kind schema.GroupVersionKind) Schema
	// Custom returns the schemas of a CRD's served versions, by version. An error says that the CRD is invalid.
	Custom(crd *unstructured.Unstructured) (map[string]Schema, error)
}

// Schema is what a server knows of the objects of one version of a kind, beside their metadata. Its methods may be
// called by several goroutines at once. Those with a context may add warnings to the response by package warning of the API
// server.
type Schema interface {
	// Prune removes the fields that the schema lacks, and returns their paths, as in spec.sizes[0].unit. An error says
	// that the object is not of the kind's form.
	Prune(object map[string]any) (unknown []string, err error)
	// Default sets absent fields that have a default.
	Default(object map[string]any)
	// Create returns why an object cannot be created.
	Create(ctx context.Context, object map[string]any) field.ErrorList
	// Update returns why an object cannot take the place of a stored one. What was stored as it is passes, where a
	// real server lets it pass.
	Update(ctx context.Context, object, stored map[string]any) field.ErrorList
	// Converter has the types of the fields of all versions for managed fields and server-side apply; nil means the
	// server's own.
	Converter() managedfields.TypeConverter
}

// Typed is the schema of a kind whose fields have types that the API server itself has. A server calls Decode in
// place of Prune and Default, and gives new objects their uid before Begin.
type Typed interface {
	Schema
	// Decode brings an object into the form of its kind: it removes the fields that the schema lacks, and sets defaults.
	// stored is what the object takes the place of; nil for a new object. It returns the paths of the removed fields. An
	// error says that a field has another type.
	Decode(object, stored map[string]any) (unknown []string, err error)
	// Begin sets in a new object what a real server sets beside the defaults. No client manages these fields.
	Begin(object map[string]any) error
	// Keep is Begin for an object that takes the place of a stored one.
	Keep(object, stored map[string]any) error
}

// Versioned is the schema of one of several versions of a built-in kind.
type Versioned interface {
	Typed
	// Convert brings an object into another version of its kind. Fields of another type are left out.
	Convert(object map[string]any, version string)
}

// Parted is the schema of a kind whose parts are validated by themselves when only such a part is written.
type Parted interface {
	Schema
	// UpdatePart is Update after a write that changed a part alone: the status, or what another subresource writes.
	UpdatePart(ctx context.Context, part string, object, stored map[string]any) field.ErrorList
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

// decode brings an object that a client sent, or that a patch made, into the form of its schema; old is nil for a new
// object.
func (s *Server) decode(t *table, r Request, o, old *unstructured.Unstructured) error {
	sent := r.asSent(o)
	switch form := s.schemaOf(t, t.versionOf(r, o)).(type) {
	case nil:
		return nil
	case Typed:
		unknown, err := s.decodeTyped(t, form, o, old)
		if err == nil {
			err = s.intoStorage(t, form, o, old)
		}
		if err != nil {
			return r.undecodable(t, sent, err.Error())
		}
		return r.unknown(t, sent, r.inOrder(unknown))
	default:
		if r.contentType == string(types.ApplyPatchType) && form.Converter() != nil {
			return nil // what came from an apply has the types of its fields, and defaults if it differs from the stored object
		}
		unknown, err := form.Prune(o.Object)
		if err != nil {
			return r.undecodable(t, o, err.Error())
		}
		form.Default(o.Object)
		return r.unknown(t, sent, unknown)
	}
}

// decodeTyped is decode for a kind with a fixed form. A new object's status is the kind's first one, unless clients create it.
func (s *Server) decodeTyped(t *table, form Typed, o, old *unstructured.Unstructured) (unknown []string, err error) {
	switch {
	case old != nil:
		return form.Decode(o.Object, old.Object)
	case !t.status || t.createsStatus():
		return form.Decode(o.Object, nil)
	}
	sent, isMap := o.Object["status"].(map[string]any)
	if o.Object["status"] == nil || isMap && len(sent) == 0 {
		delete(o.Object, "status")
		return form.Decode(o.Object, nil)
	}
	if unknown, err = form.Decode(o.DeepCopy().Object, nil); err != nil { // of the status, which is dropped
		return nil, err
	}
	delete(o.Object, "status")
	_, err = form.Decode(o.Object, nil)
	return unknown, err
}

// versionOf returns the version of an object that a request writes. The result of an apply to a built-in kind has the stored one.
func (t *table) versionOf(r Request, o *unstructured.Unstructured) string {
	if hub := t.hub(r); o.GetAPIVersion() == t.apiVersion(hub) {
		return hub
	}
	return r.Resource.Version
}

// hub returns the version in which the server checks what a request writes. As on a real server, objects of a built-in kind are
// checked in one version, and those of a CRD in the version of the request.
func (t *table) hub(r Request) string {
	if !t.custom && t.storage != "" {
		return t.storage
	}
	return r.Resource.Version
}

// intoStorage brings a decoded object into the version in which its built-in kind is stored.
func (s *Server) intoStorage(t *table, form Typed, o, old *unstructured.Unstructured) error {
	from, several := form.(Versioned)
	storage, is := t.schemas[t.storage].(Typed)
	if !several || !is || o.GetAPIVersion() == t.apiVersion(t.storage) {
		return nil
	}
	from.Convert(o.Object, t.storage)
	_, err := s.decodeTyped(t, storage, o, old)
	return err
}

// asSent returns an object as an error may have to show it, before unknown fields are removed.
func (r Request) asSent(o *unstructured.Unstructured) *unstructured.Unstructured {
	if r.Verb == "patch" && r.options.Get("fieldValidation") == metav1.FieldValidationStrict {
		return o.DeepCopy()
	}
	return o
}

// typed reports whether the objects of a request have a fixed form.
func (s *Server) typed(t *table, r Request) bool {
	_, is := s.schemaOf(t, r.Resource.Version).(Typed)
	return is
}

// begin completes a new object of a kind with a fixed form.
func (s *Server) begin(t *table, r Request, o *unstructured.Unstructured) error {
	form, is := s.schemaOf(t, t.hub(r)).(Typed)
	if !is {
		return nil
	}
	err := form.Begin(o.Object)
	t.dropEmpty(o.Object, nil)
	if err == nil && t.name() == signingRequests() {
		err = signedBy(o, r.user)
	}
	return err
}

// keep completes an object of a kind with a fixed form that takes the place of a stored one. The subresource finalize changes what
// other writes keep.
func (s *Server) keep(t *table, r Request, old, next *unstructured.Unstructured) error {
	form, is := s.schemaOf(t, t.hub(r)).(Typed)
	if !is || r.Subresource == "finalize" {
		return nil
	}
	err := form.Keep(next.Object, old.Object)
	t.dropEmpty(next.Object, old.Object)
	return err
}

// dropEmpty makes empty lists of an object null, which they are in the storage of a real server, except those of CRDs. Most are left
// out, by their Go types. Metadata have none, nor has a part that is the stored one.
func (t *table) dropEmpty(object, stored map[string]any) {
	if t.name() == crds() {
		return
	}
	for key, value := range object {
		part, _ := value.(map[string]any)
		before, _ := stored[key].(map[string]any)
		if key != "metadata" && (part == nil || !sameMap(part, before)) {
			object[key] = nullIfEmpty(value)
		}
	}
}

func nullIfEmpty(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, each := range value {
			if below := nullIfEmpty(each); below == nil && each != nil {
				value[key] = nil
			}
		}
	case []any:
		if len(value) == 0 {
			return nil
		}
		for _, each := range value {
			nullIfEmpty(each)
		}
	}
	return value
}

// check returns why an object cannot be stored according to its schema; old is nil for a new object.
func (s *Server) check(t *table, r Request, next, old *unstructured.Unstructured) field.ErrorList {
	form := s.schemaOf(t, t.hub(r))
	ctx := warning.WithWarningRecorder(context.Background(), r.reply) //nolint:forbidigo // rules have a budget, and nothing waits
	switch {
	case form == nil:
		return nil
	case old == nil:
		return form.Create(ctx, next.Object)
	}
	if parted, is := form.(Parted); is && (r.Subresource == "status" || t.hasPart(r.Subresource)) {
		return parted.UpdatePart(ctx, r.Subresource, next.Object, old.Object)
	}
	return form.Update(ctx, next.Object, old.Object)
}
