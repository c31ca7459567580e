// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/decide/pause"
)

// PausedFor returns the condition [Paused] that an object lacks. It is nil if the object has the condition, or has one of another
// controller. Names are those of the operator, the present one first.
func PausedFor(o *unstructured.Unstructured, now pause.Pause, names []string) *metav1.Condition {
	reason := "Annotation"
	if now.By == pause.Namespace {
		reason = "Namespace"
	}
	return lacking(o, Paused, reason, now.String(), names)
}

// lacking returns a condition that is True, and signed by the operator, if an object lacks it; see [PausedFor].
func lacking(o *unstructured.Unstructured, kind, reason, message string, names []string) *metav1.Condition {
	want := metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: signed(names[0], message)}
	there := Of(o, kind)
	if there != nil && (!IsOwn(o, kind, names) || Text(there, "message") == want.Message && Text(there, "reason") == want.Reason) {
		return nil
	}
	return &want
}

// IsOwn reports whether an object has a condition of a type that the operator has signed, as [Paused] and [DeletionsHeld].
func IsOwn(o *unstructured.Unstructured, kind string, names []string) bool {
	name, _ := cutName(Text(Of(o, kind), "message"), names)
	return name != ""
}
