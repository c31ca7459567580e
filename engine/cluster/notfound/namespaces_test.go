// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package notfound

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestNamespacesThatAreBeingDeleted holds from when on, and for how long, nothing is created in a namespace.
func TestNamespacesThatAreBeingDeleted(t *testing.T) {
	late := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("the namespace is being terminated"))
	late.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	synctest.Test(t, func(t *testing.T) {
		var all Namespaces
		holds := func(namespace string, want error, when string) {
			t.Helper()
			if got := all.Rejection(namespace); !errors.Is(got, want) || (got == nil) != (want == nil) {
				t.Errorf("%s: creating in %s is refused with %v, want %v", when, namespace, got, want)
			}
		}
		holds("shop", nil, "at first")
		if all.Record("shop", apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("no role"))) {
			t.Error("a missing right counts as the end of the namespace")
		}
		holds("shop", nil, "after a missing right")
		if !all.Record("shop", fmt.Errorf("applying: %w", late)) {
			t.Error("the answer of a namespace that is being deleted is not recognised")
		}
		holds("shop", late, "after a refusal")
		holds("other", nil, "after a refusal in shop")
		time.Sleep(believed)
		holds("shop", nil, "when a new namespace may have come")
		all.Record("shop", late)
		all.Record("shop", nil)
		holds("shop", nil, "after something was created there")
		all.Record("a", late)
		time.Sleep(believed)
		all.Record("b", late)
		if len(all.refused) != 1 {
			t.Errorf("%d refusals are kept, want that of b alone", len(all.refused))
		}
	})
}
