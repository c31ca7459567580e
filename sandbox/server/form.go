// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
)

// object returns the object of a create or an update. A built-in kind may be left out in it.
func (r Request) object(t *table) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{Object: r.Body}
	expected := t.apiVersion(r.Resource.Version)
	if o.Object == nil {
		o.Object = map[string]any{} // it is null
	}
	switch kind := o.GetKind(); {
	case t.custom && r.contentType == runtime.ContentTypeProtobuf:
		return nil, unsupportedBody()
	case r.malformed != nil:
		return nil, r.unrecognized(t.kind)
	case kind == "" && t.custom:
		r.malformed = fmt.Errorf("Object 'Kind' is missing in '%s'", r.raw) //nolint:staticcheck // the words are the API server's
		return nil, r.unrecognized(t.kind)
	case !t.custom:
		if err := registered(t, r, o); err != nil {
			return nil, err
		}
	}
	switch kind := o.GetKind(); {
	case o.GetAPIVersion() == "":
		o.SetAPIVersion(expected)
	case o.GetAPIVersion() != expected:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", o.GetAPIVersion(), expected))
	case kind != "" && kind != t.kind:
		return nil, isKind(t, r, o)
	}
	if o.GetKind() == "" {
		o.SetKind(t.kind)
	}
	return o, nil
}

// registered returns an error if the kind of an object is not that of its built-in resource.
func registered(t *table, r Request, o *unstructured.Unstructured) error {
	as := cmp.Or(o.GetAPIVersion(), t.apiVersion(r.Resource.Version))
	version, err := schema.ParseGroupVersion(as)
	kind := version.WithKind(cmp.Or(o.GetKind(), t.kind))
	switch known := scheme.Scheme.Recognizes(kind); {
	case err == nil && kind.Kind == t.kind && (known || as == t.apiVersion(r.Resource.Version)):
		return nil
	case known:
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: converting (%s.%s) to (%s.%s): unknown conversion",
			kind.Kind, r.Resource.Version, t.kind, r.Resource.Version, kind.Kind, internal(t.group), t.kind))
	}
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: no kind %q is registered for version %q in scheme %q",
		kind.Kind, path.Base(as), t.kind, kind.Kind, as, "pkg/runtime/scheme.go:111"))
}

// internal is the name that the API server has for its own package of a group.
func internal(group string) string {
	if group == "" {
		return "core"
	}
	name, _, _ := strings.Cut(group, ".")
	return name
}

// isKind returns why an object is not of the kind and the version of its resource, or nil. A patch can change them.
func isKind(t *table, r Request, o *unstructured.Unstructured) error {
	var errs field.ErrorList
	if kind := o.GetKind(); kind != t.kind {
		errs = append(errs, field.Invalid(field.NewPath("kind"), kind, "must be "+t.kind))
	}
	if want := t.apiVersion(r.Resource.Version); o.GetAPIVersion() != want {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), o.GetAPIVersion(), "must be "+want))
	}
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: t.group, Kind: o.GetKind()}, o.GetName(), errs)
}

// named checks the name and the namespace of an update's object against those of its path.
func (r Request) named(o *unstructured.Unstructured) error {
	switch name := o.GetName(); {
	case name == "":
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name must be provided", r.Name))
	case name != r.Name:
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", name, r.Name))
	}
	return r.placed(o)
}

// placed checks the namespace of an object against that of its path. It sets the object's if it has none.
func (r Request) placed(o *unstructured.Unstructured) error {
	if namespace := o.GetNamespace(); namespace != "" && r.Namespace != "" && namespace != r.Namespace {
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	o.SetNamespace(r.Namespace)
	return nil
}
