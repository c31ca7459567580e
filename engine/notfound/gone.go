// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package notfound reads from the API server's answers whether an object is gone. A 404 means that only if it names the object:
// a server that is behind, an API that is being registered again and a version that is no longer served answer 404 for objects
// that live. It is pure.
package notfound

import (
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Says reports whether the error, of a request for one object, says that there is no such object:
// it is a NotFound, and its details name the resource and the object. A server that was asked for
// the object itself answers so.
//
// What a server does not serve it answers with the text "404 page not found". client-go makes a
// NotFound of it and fills in the details from the request; the cause UnexpectedServerResponse
// tells that they are not the server's.
func Says(err error, resource schema.GroupResource, name string) bool {
	var known apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &known) {
		return false
	}
	details := known.Status().Details
	return details != nil && name != "" && details.Name == name && details.Kind == resource.Resource &&
		details.Group == resource.Group && !slices.ContainsFunc(details.Causes, byClient)
}

// Unserved reports whether the error is a NotFound of the path and not of an object: the server does
// not serve what was asked for, at this moment at least.
func Unserved(err error) bool {
	var known apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &known) {
		return false
	}
	details := known.Status().Details
	return details != nil && slices.ContainsFunc(details.Causes, byClient)
}

// With reports whether an object is gone with the write that was answered with it: the API server deletes one that is being
// deleted in the write that takes off the last finalizer, if its grace period is over, and answers with the version before
// (deleteWithoutFinalizers in k8s.io/apiserver/pkg/registry/generic/registry/store.go).
func With(o *unstructured.Unstructured) bool {
	grace := o.GetDeletionGracePeriodSeconds()
	return o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && (grace == nil || *grace == 0)
}

// byClient reports whether the cause says that the details were filled in by the client.
func byClient(cause metav1.StatusCause) bool {
	return cause.Type == metav1.CauseTypeUnexpectedServerResponse
}
