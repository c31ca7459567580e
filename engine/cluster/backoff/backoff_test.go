// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestRefused holds which errors people may take away at any time.
func TestRefused(t *testing.T) {
	foos := schema.GroupResource{Group: "example.com", Resource: "foos"}
	policy := func(code int32, reason metav1.StatusReason) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason,
			Message: `foos.example.com "web" is forbidden: ValidatingAdmissionPolicy 'limits' with binding 'all' denied request: too many`}}
	}
	tests := map[string]struct {
		err  error
		want bool
	}{
		"a right is missing":               {apierrors.NewForbidden(foos, "web", errors.New("no role")), true},
		"a policy has refused, with a 422": {fmt.Errorf("applying: %w", policy(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)), true},
		"a policy has refused, with a 403": {policy(http.StatusForbidden, metav1.StatusReasonForbidden), true},
		"a webhook has refused": {&apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest,
			Message: `admission webhook "limits.example.com" denied the request: too many`}}, true},
		"a schema has refused":              {apierrors.NewInvalid(schema.GroupKind{Kind: "Foo"}, "web", nil), false},
		"another server denied the request": {errors.New("the bank denied the request"), false},
		"the API server has failed":         {apierrors.NewInternalError(errors.New("etcd")), false},
		"no error":                          {nil, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := IsRejected(tt.err); got != tt.want {
				t.Errorf("Refused(%v) = %v", tt.err, got)
			}
		})
	}
}

func TestNext(t *testing.T) {
	var last time.Duration
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second} {
		wait, in := Next(last, time.Second, 5*time.Second)
		if wait != want || in > wait || in < wait*4/5 {
			t.Errorf("after %v it waits %v, in fact %v; want %v", last, wait, in, want)
		}
		last = wait
	}
}
