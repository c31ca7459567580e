// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// RejectedVersionText is part of the API server's error if managedFields of the object have an entry in a version that the
// CRD has dropped. The apiVersion follows.
const RejectedVersionText = "request to convert CR to an invalid group/version: "

// RejectedVersion returns the apiVersion with which the API server rejects applies to an object, because an entry of
// its managedFields has it and the CRD has dropped it.
func RejectedVersion(err error) (apiVersion string, refused bool) {
	if err == nil {
		return "", false
	}
	said := err.Error()
	if answer := apierrors.APIStatus(nil); errors.As(err, &answer) {
		said = answer.Status().Message // the error may withhold it
	}
	_, text, found := strings.Cut(said, RejectedVersionText)
	if words := strings.Fields(text); found && len(words) > 0 {
		return strings.TrimRight(words[0], ",:;"), true
	}
	return "", false
}

// Dropped are the entries of managedFields whose version the CRD of an object has dropped. The API server accepts
// managedFields only if none of them has such a version. So removing the operator's own entries does not help while other
// field managers have such entries.
type Dropped struct {
	// Own and Others are places in the object's managedFields.
	Own, Others []int
}

// DroppedIn finds the entries of dropped versions. Own says which field managers are the operator's.
func DroppedIn(live *unstructured.Unstructured, dropped func(apiVersion string) bool, own func(manager string) bool) (out Dropped) {
	for i, e := range live.GetManagedFields() {
		switch {
		case e.APIVersion == live.GetAPIVersion() || !dropped(e.APIVersion):
		case own(e.Manager):
			out.Own = append(out.Own, i)
		default:
			out.Others = append(out.Others, i)
		}
	}
	return out
}

// Renewed returns the managedFields with the operator's entries in the version of the object.
func (d Dropped) Renewed(live *unstructured.Unstructured) (out []metav1.ManagedFieldsEntry) {
	for i, e := range live.GetManagedFields() {
		if slices.Contains(d.Own, i) {
			e.APIVersion = live.GetAPIVersion()
		}
		same := slices.IndexFunc(out, func(o metav1.ManagedFieldsEntry) bool {
			return o.Manager == e.Manager && o.Operation == e.Operation && o.APIVersion == e.APIVersion && o.Subresource == e.Subresource
		})
		if same < 0 {
			out = append(out, e)
			continue
		}
		out[same].FieldsV1 = Encoded(FieldsOf(out[same]).Union(FieldsOf(e)))
	}
	return out
}
