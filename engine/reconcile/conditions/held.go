// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/decide/limits"
)

// HeldFor returns the condition [DeletionsHeld] that an object lacks while deletions wait, as [PausedFor] does.
func HeldFor(o *unstructured.Unstructured, now limits.Answer, names []string) *metav1.Condition {
	return lacking(o, DeletionsHeld, string(now.Reason), now.Summary(), names)
}
