// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ImmutableError says that the API server refuses to change a child, and that it would take the same values in a new object. It
// unwraps to the API server's error. The engine finds that out by a dry run, because the error itself does not tell.
type ImmutableError struct {
	Answer error
	// Causes are those of the API server's error: the fields that cannot be changed.
	Causes []metav1.StatusCause
}

// Error returns what the API server says.
func (e *ImmutableError) Error() string { return e.Answer.Error() }

// Unwrap returns the API server's error.
func (e *ImmutableError) Unwrap() error { return e.Answer }

// Fields returns the fields that cannot be changed, as in "spec.selector is immutable". Texts that say more may quote a value.
func (e *ImmutableError) Fields() (out []string) {
	for _, cause := range e.Causes {
		if strings.Contains(cause.Message, "field is immutable") {
			out = append(out, cause.Field+" is immutable")
		} else {
			out = append(out, cause.Field+": "+cause.Message)
		}
	}
	return out
}

// Places is Fields without texts of the API server, and without keys of maps, which may be secret.
func (e *ImmutableError) Places() (out []string) {
	group := ""
	if answer := apierrors.APIStatus(nil); errors.As(e.Answer, &answer) && answer.Status().Details != nil {
		group = answer.Status().Details.Group
	}
	for _, cause := range e.Causes {
		out = append(out, fieldPlace(group, cause.Field)+" is immutable")
	}
	return out
}
