// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"
)

// object returns the object of a create or an update. A built-in kind may be left out in it.
func (r Request) object(t *table) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{Object: r.Body}
	if o.Object == nil {
		o.Object = map[string]any{} // it is null
	}
	if err := r.recognized(t, o); err != nil {
		return nil, err
	}
	if err := r.fits(t, o); err != nil {
		return nil, err
	}
	return o, nil
}

// recognized returns why a real server would not know which kind a body is of, or nil.
func (r Request) recognized(t *table, o *unstructured.Unstructured) error {
	switch kind := o.GetKind(); {
	case t.custom && r.contentType == runtime.ContentTypeProtobuf:
		return unsupportedBody()
	case r.malformed != nil:
		return r.unrecognized(t.kind)
	case t.custom && strings.Count(o.GetAPIVersion(), "/") > 1:
		r.malformed = fmt.Errorf("unexpected GroupVersion string: %s", o.GetAPIVersion())
		return r.unrecognized(t.kind)
	case t.custom && kind != "" && r.hasNull("apiVersion"):
		return apierrors.NewBadRequest(fmt.Sprintf(
			"%s in version \"\" cannot be handled as a %s: .apiVersion accessor error: <nil> is of the type <nil>, expected string", kind, t.kind))
	case kind == "" && t.custom:
		r.malformed = fmt.Errorf("Object 'Kind' is missing in '%s'", r.raw) //nolint:staticcheck // the words are the API server's
		if r.options.Get("fieldValidation") == metav1.FieldValidationIgnore {
			return r.undecodable(t, o, r.malformed.Error())
		}
		return r.unrecognized(t.kind)
	case !t.custom:
		return registered(t, r, o)
	case len(otherKind(t, r, o)) > 0: // its metadata are read before
		return misread(t, o)
	}
	return nil
}

// misread returns why the metadata of an object of another kind than a custom resource cannot be read, or nil.
func misread(t *table, o *unstructured.Unstructured) error {
	if o.Object["metadata"] == nil {
		return nil
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(encoded(o.Object["metadata"]), &metav1.ObjectMeta{}); err != nil {
		version := o.GroupVersionKind().Version
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", o.GetKind(), version, t.kind, err))
	}
	return nil
}

// fits returns why the kind of a body is not that of its resource, or nil. It sets what a built-in kind may leave out.
func (r Request) fits(t *table, o *unstructured.Unstructured) error {
	expected := t.apiVersion(r.Resource.Version)
	switch kind := o.GetKind(); {
	case o.GetAPIVersion() == "" && !t.custom:
		o.SetAPIVersion(expected)
	case o.GetAPIVersion() != expected:
		return apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", o.GetAPIVersion(), expected))
	case kind != "" && kind != t.kind && r.Verb == "update": // the kind is looked at after the stored object
		return r.named(o)
	case kind != "" && kind != t.kind:
		return isKind(t, r, o)
	}
	if o.GetKind() == "" {
		o.SetKind(t.kind)
	}
	return nil
}

// hasNull reports whether the body has a field that is null.
func (r Request) hasNull(name string) bool {
	value, found := r.Body[name]
	return found && value == nil
}

// registered returns an error if the kind of an object is not that of its built-in resource.
func registered(t *table, r Request, o *unstructured.Unstructured) error {
	as := cmp.Or(o.GetAPIVersion(), t.apiVersion(r.Resource.Version))
	version, err := schema.ParseGroupVersion(as)
	if err != nil {
		r.malformed = err
		return r.unrecognized(t.kind)
	}
	kind := version.WithKind(cmp.Or(o.GetKind(), t.kind))
	switch known := scheme.Scheme.Recognizes(kind); {
	case kind.Kind == t.kind && (known || as == t.apiVersion(r.Resource.Version)):
		return nil
	case known:
		if err := decodesAs(kind, r.raw); err != nil {
			return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", kind.Kind, version.Version, t.kind, err))
		}
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: converting (%s.%s) to (%s.%s): unknown conversion",
			kind.Kind, version.Version, t.kind, version.Version, kind.Kind, internal(t.group), t.kind))
	}
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: no kind %q is registered for version %q in scheme %q",
		kind.Kind, path.Base(as), t.kind, kind.Kind, as, "pkg/runtime/scheme.go:111"))
}

// decodesAs returns why a body is no object of a kind, or nil.
func decodesAs(kind schema.GroupVersionKind, body []byte) error {
	into, err := scheme.Scheme.New(kind)
	if err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(body, into)
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
	errs := otherKind(t, r, o)
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(o.GroupVersionKind().GroupKind(), o.GetName(), errs)
}

// otherKind returns errors for another kind or version than those of the resource.
func otherKind(t *table, r Request, o *unstructured.Unstructured) (errs field.ErrorList) {
	if kind := o.GetKind(); kind != t.kind {
		errs = append(errs, field.Invalid(field.NewPath("kind"), kind, "must be "+t.kind))
	}
	if want := t.apiVersion(r.Resource.Version); o.GetAPIVersion() != want {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), o.GetAPIVersion(), "must be "+want))
	}
	return errs
}

// named checks the name and the namespace of an update's object against those of its path.
func (r Request) named(o *unstructured.Unstructured) error {
	if err := r.placed(o); err != nil {
		return err
	}
	switch name := o.GetName(); {
	case name == "":
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name must be provided", r.Name))
	case name != r.Name:
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", name, r.Name))
	}
	return nil
}

// placed checks the namespace of an object against that of its path. It sets the object's if it has none.
func (r Request) placed(o *unstructured.Unstructured) error {
	if namespace := o.GetNamespace(); namespace != "" && r.Namespace != "" && namespace != r.Namespace {
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	o.SetNamespace(r.Namespace)
	return nil
}
