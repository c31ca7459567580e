// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl/plain"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
)

// patch applies a patch to an object. Only apply works without an object.
func (s *Server) patch(t *table, r Request, old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if r.applies() {
		if old == nil && r.Subresource != "" {
			return nil, apierrors.NewNotFound(t.name(), r.Name)
		}
		return s.apply(t, r, old)
	}
	shown := r.view.show(old)
	base := &unstructured.Unstructured{Object: maps.Clone(shown.Object)}
	base.SetAPIVersion(t.apiVersion(r.Resource.Version))
	if r.contentType == string(types.StrategicMergePatchType) {
		r.Body = runtime.DeepCopyJSON(r.Body) // it is going to be changed, and an error shows it so
	}
	next, err := patched(t, r, base)
	if err != nil {
		return nil, err
	}
	if shares := r.contentType == string(types.MergePatchType); shares && (!s.typed(t, r) || len(t.rewrites) > 0) {
		next = next.DeepCopy() // it is going to be changed in place
	}
	r.foreign = t.custom && len(otherKind(t, r, next)) > 0
	if err := s.keepsKind(t, r, old, next); err != nil {
		return nil, err
	}
	setIfText(next.Object, "apiVersion", shown.GetAPIVersion())
	return s.replace(t, r, old, next)
}

// setIfText sets a field, unless it has a value that is no text, which decoding finds.
func setIfText(object map[string]any, key, value string) {
	if _, isText := object[key].(string); isText || object[key] == nil {
		object[key] = value
	}
}

// keepsKind returns why the result of a patch is not of its resource's kind. Built-in ones are decoded into a Go type: a strategic
// merge patch is one of the type, so that its kind does not matter, and another patch can leave the kind out.
func (s *Server) keepsKind(t *table, r Request, old, next *unstructured.Unstructured) error {
	strategic := r.contentType == string(types.StrategicMergePatchType)
	switch {
	case s.schemas == nil:
		return isKind(t, r, next)
	case t.custom:
		return s.keepsCustomKind(t, r, old, next)
	}
	if strategic {
		setIfText(next.Object, "kind", t.kind)
	} else if err := r.readable(t, next); err != nil {
		return err
	}
	if _, isMap := next.Object["metadata"].(map[string]any); !isMap && next.Object["metadata"] != nil {
		return r.undecodable(t, next, fmt.Sprint(decodesAs(r.Resource.GroupVersion().WithKind(t.kind), encoded(next.Object))))
	}
	return nil
}

// readable returns why the result of a patch has another version or kind than its resource, or nil. It can leave out its kind.
func (r Request) readable(t *table, next *unstructured.Unstructured) error {
	head, err := r.head(t, next)
	if err != nil {
		return err
	}
	kind := cmp.Or(head.Kind, t.kind)
	if head.APIVersion == "" && kind == t.kind {
		return r.internalVersion(t, next)
	}
	if err := r.isOf(t, head.APIVersion, kind); err != nil {
		return r.undecodable(t, next, err.Error())
	}
	next.SetKind(t.kind)
	return nil
}

// head returns the version and the kind of the result of a patch. They have to be texts.
func (r Request) head(t *table, next *unstructured.Unstructured) (out typeMeta, err error) {
	if err := json.Unmarshal(encoded(next.Object), &out); err != nil {
		return out, r.undecodable(t, next, fmt.Sprintf("couldn't get version/kind; json parse error: %v", err))
	}
	return out, nil
}

// keepsCustomKind is keepsKind for a custom resource. It has no Go type, so it needs a kind and a version. Others than those of the
// resource are decoded, and then not valid.
func (s *Server) keepsCustomKind(t *table, r Request, old, next *unstructured.Unstructured) error {
	head, err := r.head(t, next)
	version, found := next.Object["apiVersion"]
	switch {
	case err != nil:
		return err
	case head.Kind == "":
		return r.undecodable(t, next, fmt.Sprintf("Object 'Kind' is missing in '%s'", encoded(next.Object)))
	case found && version == nil:
		return r.undecodable(t, next, ".apiVersion accessor error: <nil> is of the type <nil>, expected string")
	}
	other := otherKind(t, r, next)
	if len(other) == 0 {
		return nil
	}
	if form := s.schemaOf(t, r.Resource.Version); form != nil {
		if _, err := form.Prune(next.DeepCopy().Object); err != nil {
			return r.undecodable(t, next, err.Error())
		}
	}
	if _, err := schema.ParseGroupVersion(head.APIVersion); err != nil {
		return r.undecodable(t, next, err.Error())
	}
	return r.takesKind(t, old, next, other)
}

// takesKind returns why a custom resource cannot become another kind. A write of its status takes the status alone, whatever the kind is.
func (r Request) takesKind(t *table, old, next *unstructured.Unstructured, other field.ErrorList) error {
	if err := cmp.Or(r.named(next), agrees(t, old, next)); err != nil {
		return err
	}
	switch {
	case next.GetAPIVersion() == "":
		return apierrors.NewInternalError(errors.New("Object 'apiVersion' is missing in 'object has no apiVersion field'")) //nolint:staticcheck // the words are the API server's
	case r.Subresource == "status":
		next.SetKind(t.kind)
		return nil
	}
	keepMetadata(old, next)
	anyName := func(string, bool) []string { return nil }
	path := field.NewPath("metadata")
	errs := validation.ValidateObjectMetaAccessor(next, t.namespaced, anyName, path)
	errs = append(errs, validation.ValidateObjectMetaAccessorUpdate(next, old, path)...)
	return apierrors.NewInvalid(next.GroupVersionKind().GroupKind(), next.GetName(), append(errs, other...))
}

// isOf returns why a version and a kind are not those of the request, or nil.
func (r Request) isOf(t *table, version, kind string) error {
	parsed, err := schema.ParseGroupVersion(version)
	switch is := parsed.WithKind(kind); {
	case err != nil:
		return err
	case is == r.Resource.GroupVersion().WithKind(t.kind):
		return nil
	case scheme.Scheme.Recognizes(is):
		return fmt.Errorf("converting (%s.%s) to (%s.%s): unknown conversion", parsed.Version, kind, internal(t.group), t.kind)
	}
	return fmt.Errorf("no kind %q is registered for version %q in scheme %q", kind, version, "pkg/runtime/scheme.go:111")
}

// internalVersion returns the error for an object without a version: a real server decodes it into its own type, whose fields have
// other names than those of any version, so that the object has no name.
func (r Request) internalVersion(t *table, next *unstructured.Unstructured) error {
	var unknown []string
	for _, key := range slices.Sorted(maps.Keys(next.Object)) {
		if key != "kind" && key != "apiVersion" {
			unknown = append(unknown, key)
		}
	}
	return cmp.Or(r.unknown(t, next, unknown), r.named(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{}}}))
}

// patched returns the base with a patch that is not of apply. Its metadata is its own; it may share other parts with the base.
func patched(t *table, r Request, base *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	switch kind := types.PatchType(r.contentType); {
	case kind == types.JSONPatchType:
		return edited(base, r.raw)
	case kind == types.MergePatchType:
		next := &unstructured.Unstructured{Object: plain.Patched(base.Object, r.Body)}
		if metadata, is := next.Object["metadata"].(map[string]any); is {
			next.Object["metadata"] = maps.Clone(metadata)
		}
		return next, nil
	case kind == types.StrategicMergePatchType && !t.custom:
		return strategic(t, base, r.Body)
	}
	return nil, unsupportedPatch(t)
}

// maxOperations is how many operations a JSON patch may have.
const maxOperations = 10_000

// edited applies a JSON patch (RFC 6902).
func edited(base *unstructured.Unstructured, patch []byte) (*unstructured.Unstructured, error) {
	var operations []map[string]any
	if err := json.Unmarshal(patch, &operations); err != nil {
		// A real server names its own type.
		return nil, apierrors.NewBadRequest("error decoding patch: " + strings.ReplaceAll(err.Error(), "[]map[string]interface {}", "[]handlers.jsonPatchOp"))
	}
	change, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if n := len(operations); n > maxOperations {
		return nil, apierrors.NewRequestEntityTooLargeError(
			fmt.Sprintf("The allowed maximum operations in a JSON patch is %d, got %d", maxOperations, n))
	}
	before, err := plain.AppendJSON(nil, base.Object)
	if err != nil {
		return nil, err
	}
	after, err := change.Apply(before)
	if err != nil {
		return nil, unprocessable()
	}
	next := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(after, &next.Object); err != nil || next.Object == nil {
		return nil, unprocessable()
	}
	return next, nil
}

// unprocessable returns the error for a patch that cannot be applied; like a real server, it does not say why.
func unprocessable() error {
	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "", 0, false)
}

// strategic applies a strategic merge patch, which only built-in kinds support. It removes what is null from the patch.
func strategic(t *table, old *unstructured.Unstructured, patch map[string]any) (*unstructured.Unstructured, error) {
	shape, err := scheme.Scheme.New(old.GroupVersionKind())
	if err != nil {
		return nil, unsupportedPatch(t)
	}
	after, err := strategicpatch.StrategicMergeMapPatch(runtime.DeepCopyJSON(old.Object), patch, shape)
	switch {
	case errors.Is(err, mergepatch.ErrNoListOfLists), errors.Is(err, mergepatch.ErrPatchContentNotMatchRetainKeys):
		return nil, unprocessable()
	case malformedPatch(err):
		return nil, apierrors.NewBadRequest(err.Error())
	case err != nil:
		return nil, internalError(err)
	}
	return &unstructured.Unstructured{Object: after}, nil
}

// malformedPatch reports whether a strategic merge patch fails because of its form.
func malformedPatch(err error) bool {
	for _, known := range []error{
		mergepatch.ErrBadJSONDoc, mergepatch.ErrBadPatchFormatForPrimitiveList, mergepatch.ErrBadPatchFormatForRetainKeys,
		mergepatch.ErrBadPatchFormatForSetElementOrderList, mergepatch.ErrUnsupportedStrategicMergePatchFormat,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// internalError returns the error of a real server that has no words of its own for it.
func internalError(err error) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error(),
	}}
}

// apply does a server-side apply.
func (s *Server) apply(t *table, r Request, old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	intent := &unstructured.Unstructured{Object: maps.Clone(r.Body)}
	if kind := intent.GroupVersionKind(); kind.Kind != t.kind || kind.Group != t.group {
		return nil, apierrors.NewBadRequest("invalid object type: " + kind.String())
	}
	if intent.GetManagedFields() != nil {
		return nil, apierrors.NewBadRequest("metadata.managedFields must be nil")
	}
	if metadata, is := intent.Object["metadata"].(map[string]any); is {
		metadata = maps.Clone(metadata)
		delete(metadata, "managedFields") // they may be empty
		intent.Object["metadata"] = metadata
	}
	if r.Subresource == "status" && !t.typed && t.converter(r.Resource.Version) == nil { // with types, managed fields leave out what has no effect
		maps.DeleteFunc(intent.Object, func(key string, _ any) bool {
			return !slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, key)
		})
	}
	next, err := s.owners.applied(t, r, old, intent)
	if err == nil && !t.custom && s.schemas != nil {
		err = r.convertible(t, next)
	}
	switch {
	case err != nil:
		return nil, err
	case old != nil:
		return s.replace(t, r, old, next)
	}
	return s.applyNew(t, r, intent.GetUID(), next)
}

// applyNew creates the object of a server-side apply. UID is the one that the client sent.
func (s *Server) applyNew(t *table, r Request, uid types.UID, next *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if uid != "" {
		return nil, apierrors.NewConflict(t.name(), r.Name, fmt.Errorf(
			"uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
	}
	if err := r.named(next); err != nil {
		return nil, err
	}
	ask := r.attributes()
	ask.Verb = "create"
	if err := s.permit(ask); err != nil {
		return nil, err
	}
	next.SetResourceVersion("") // it would be compared with a version, and there is none
	r.reply.code = http.StatusCreated
	return s.create(t, r, next)
}
