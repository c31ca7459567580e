// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package notfound reads from errors of the API server whether an object is gone. A 404 means that only if it names
// the object: a server that is behind, an API that is being registered again and a version that is no longer served
// also answer 404, for objects that live. It is pure.
package notfound

import (
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// IsGone reports whether the error of a request for one object says that the object does not exist: it is a NotFound,
// and its details name the resource and the object.
//
// For paths that it does not serve, a server answers with the text "404 page not found". client-go converts it to a
// NotFound and fills in the details from the request; the cause UnexpectedServerResponse distinguishes it.
func IsGone(err error, resource schema.GroupResource, name string) bool {
	var known apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &known) {
		return false
	}
	details := known.Status().Details
	return details != nil && name != "" && details.Name == name && details.Kind == resource.Resource &&
		details.Group == resource.Group && !slices.ContainsFunc(details.Causes, byClient)
}

// IsUnserved reports whether the error is a NotFound for the path and not for an object: the server does not serve
// the resource, at this moment at least.
func IsUnserved(err error) bool {
	var known apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &known) {
		return false
	}
	details := known.Status().Details
	return details != nil && slices.ContainsFunc(details.Causes, byClient)
}

// IsGoneAfter reports whether an object is gone after the write with this response: a write that removes the last
// finalizer of an object that is being deleted also deletes it, if its grace period is over, and the response has
// the version before (deleteWithoutFinalizers in k8s.io/apiserver/pkg/registry/generic/registry/store.go).
func IsGoneAfter(o *unstructured.Unstructured) bool {
	grace := o.GetDeletionGracePeriodSeconds()
	return o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && (grace == nil || *grace == 0)
}

// byClient reports whether the cause says that the client filled in the details.
func byClient(cause metav1.StatusCause) bool {
	return cause.Type == metav1.CauseTypeUnexpectedServerResponse
}
