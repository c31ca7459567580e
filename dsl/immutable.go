// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ImmutableFields returns the fields that an error of the API server reports as immutable, as in "spec.selector is
// immutable". Only is true when the error reports such fields and nothing else.
func ImmutableFields(err error) (fields []string, only bool) {
	answer := apierrors.APIStatus(nil)
	if !errors.As(err, &answer) || answer.Status().Reason != metav1.StatusReasonInvalid || answer.Status().Details == nil {
		return nil, false
	}
	causes := answer.Status().Details.Causes
	for _, cause := range causes {
		lower := strings.ToLower(cause.Message)
		switch {
		case strings.Contains(lower, "field is immutable"):
			fields = append(fields, cause.Field+" is immutable")
		case strings.Contains(lower, "immutable"), strings.Contains(lower, "may not change"), strings.Contains(lower, "cannot change"),
			strings.Contains(lower, "updates to ") && strings.Contains(lower, "forbidden"):
			fields = append(fields, cause.Field+": "+cause.Message)
		}
	}
	return fields, len(fields) > 0 && len(fields) == len(causes)
}
