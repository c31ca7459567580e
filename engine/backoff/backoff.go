// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package backoff works out how long to wait before a failed attempt is repeated. It is pure.
package backoff

import (
	"math/rand/v2"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Refused reports whether the API server refused a request because a right is missing, or because a webhook or a policy
// denied it: people may change that at any time. A policy may answer with another code than 403, so the text of the error
// is compared (k8s.io/apiserver/pkg/admission/plugin/policy/validating).
func Refused(err error) bool {
	if apierrors.IsForbidden(err) {
		return true
	}
	return apierrors.ReasonForError(err) != "" && (strings.Contains(err.Error(), " denied request") || strings.Contains(err.Error(), " denied the request"))
}

// Next returns the wait after one of last, which is zero for none: twice that, from first up to most. In is how long
// that is in fact: up to a fifth less, so that those who failed together do not come back together.
func Next(last, first, most time.Duration) (wait, in time.Duration) {
	wait = min(max(2*last, first), most)
	return wait, wait - rand.N(wait/5)
}
