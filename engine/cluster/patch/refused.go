// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsRejected reports whether an error is the server's refusal of a write's content, by a schema or by admission: the
// same write would be refused again, and another one may be accepted. Missing rights do not count.
func IsRejected(err error) bool {
	if apierrors.IsForbidden(err) { // the authorizer's message begins with the user and the missing right
		return !strings.Contains(err.Error(), "cannot patch resource")
	}
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// namesObject reports whether the details of an error name an object, as those of the API server's own conflicts do. An answer of a
// webhook mostly has none.
func namesObject(said error) bool {
	answer := apierrors.APIStatus(nil)
	return errors.As(said, &answer) && answer.Status().Details != nil && answer.Status().Details.Name != ""
}

// refusedAsConflict is a conflict about an object that nobody has changed: something, such as a webhook, refuses the content and calls
// that a conflict. The same write would be refused again.
type refusedAsConflict struct{ error }

// Status implements [apierrors.APIStatus]: the answer counts as that about an invalid object.
func (e *refusedAsConflict) Status() metav1.Status {
	out := metav1.Status{}
	if answer := apierrors.APIStatus(nil); errors.As(e.error, &answer) {
		out = answer.Status()
	}
	out.Reason, out.Code = metav1.StatusReasonInvalid, http.StatusUnprocessableEntity
	return out
}

// Unwrap returns the original error.
func (e *refusedAsConflict) Unwrap() error { return e.error }
