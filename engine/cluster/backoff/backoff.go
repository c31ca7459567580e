// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package backoff computes the wait before a failed attempt is retried. It is pure.
package backoff

import (
	"math/rand/v2"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// IsRejected reports whether the API server refused a request because of a missing right, or because a webhook or a
// policy denied it. People may change that at any time. A policy may answer with another code than 403, so the text
// of the error is compared (k8s.io/apiserver/pkg/admission/plugin/policy/validating).
func IsRejected(err error) bool {
	if apierrors.IsForbidden(err) {
		return true
	}
	return apierrors.ReasonForError(err) != "" && (strings.Contains(err.Error(), " denied request") || strings.Contains(err.Error(), " denied the request"))
}

// Next returns the wait after a previous wait last, or zero: twice last, from first up to most. In is the same wait
// with jitter: up to a fifth less, so that attempts that failed together are not retried together.
func Next(last, first, most time.Duration) (wait, in time.Duration) {
	wait = min(max(2*last, first), most)
	return wait, wait - rand.N(wait/5)
}
