// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// stepBudget counts the Pods of a PodDisruptionBudget.
func stepBudget(l *loop, b *policyv1.PodDisruptionBudget, _ Rule) error {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return nil //nolint:nilerr // the server accepts no such selector
	}
	var expected, healthy int32
	next := b.Status.DeepCopy()
	next.DisruptedPods = nil
	for _, p := range listOf[*corev1.Pod](l.caches["Pod"].in(b.Namespace)) {
		if selector.Matches(labels.Set(p.Labels)) && active(p) {
			expected++
			switch at, evicted := b.Status.DisruptedPods[p.Name]; {
			case evicted && l.evicting("PodDisruptionBudget", b, at.Time):
				next.DisruptedPods = with(next.DisruptedPods, p.Name, at)
			case readySince(p) != nil:
				healthy++
			}
		}
	}
	desired := int32(0)
	if n := b.Spec.MinAvailable; n != nil {
		desired = scaled(n, expected)
	} else if n := b.Spec.MaxUnavailable; n != nil {
		desired = max(0, expected-scaled(n, expected))
	}
	next.ObservedGeneration, next.ExpectedPods, next.CurrentHealthy, next.DesiredHealthy = b.Generation, expected, healthy, desired
	next.DisruptionsAllowed = max(0, healthy-desired)
	is, reason := metav1.ConditionTrue, policyv1.SufficientPodsReason
	if expected == 0 || next.DisruptionsAllowed == 0 {
		is, reason, next.DisruptionsAllowed = metav1.ConditionFalse, policyv1.InsufficientPodsReason, 0
	}
	meta.SetStatusCondition(&next.Conditions, metav1.Condition{
		Type: policyv1.DisruptionAllowedCondition, Status: is, Reason: reason, ObservedGeneration: b.Generation, LastTransitionTime: l.now(),
	})
	return l.status("PodDisruptionBudget", b, controllers, b.Status, *next)
}

// trust is for how long a Pod that the server has evicted counts as gone before it is being deleted.
const trust = 2 * time.Minute

// evicting reports whether an eviction at a time is to be trusted, and queues the budget for when it is not any more.
func (l *loop) evicting(row string, b *policyv1.PodDisruptionBudget, at time.Time) bool {
	left := l.until(at.Add(trust))
	if left > 0 {
		l.later(row, b, left)
	}
	return left > 0
}

// scaled is a number or a percentage of a whole, rounded up.
func scaled(n *intstr.IntOrString, of int32) int32 {
	out, err := intstr.GetScaledValueFromIntOrPercent(n, int(of), true)
	if err != nil {
		return 0
	}
	return int32(out)
}
