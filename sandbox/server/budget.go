// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"

	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// guard is a PodDisruptionBudget that counts the eviction of a Pod.
type guard struct {
	pod    *corev1.Pod
	budget *policyv1.PodDisruptionBudget
	stored *unstructured.Unstructured
}

func budgets() schema.GroupResource {
	return schema.GroupResource{Group: policyv1.GroupName, Resource: "poddisruptionbudgets"}
}

// guardsOf returns what guards a Pod. Nothing guards a Pod that does not run or that is being deleted, and one that is
// not ready may go while enough others are.
func (s *Server) guardsOf(o *unstructured.Unstructured) (out []guard, err error) {
	var p corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &p); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	switch p.Status.Phase {
	case corev1.PodSucceeded, corev1.PodFailed, corev1.PodPending:
		return nil, nil
	}
	if p.DeletionTimestamp != nil {
		return nil, nil
	}
	t := s.tables[budgets()]
	for _, row := range t.objects.In(p.Namespace) {
		stored, b := row.Tree(), &policyv1.PodDisruptionBudget{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, b) != nil {
			continue // it was stored without a schema
		}
		if selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector); err == nil && selector.Matches(labels.Set(p.Labels)) {
			out = append(out, guard{&p, b, stored})
		}
	}
	if len(out) == 1 && !out[0].counts() {
		return nil, nil
	}
	return out, nil
}

// counts reports whether the budget counts the Pod among the healthy ones, or needs to.
func (g guard) counts() bool {
	for _, c := range g.pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	policy, is := g.budget.Spec.UnhealthyPodEvictionPolicy, g.budget.Status
	return (policy == nil || *policy != policyv1.AlwaysAllow) && (is.CurrentHealthy < is.DesiredHealthy || is.DesiredHealthy <= 0)
}

// errNegative is the error of a budget with a wrong status.
var errNegative = errors.New("pdb disruptions allowed is negative")

// allows returns why the budget does not allow the eviction of the Pod now, or nil.
func (g guard) allows() error {
	b := g.budget
	switch {
	case b.Status.ObservedGeneration < b.Generation:
		return tooMany(10, "The disruption budget %s is still being processed by the server.", b.Name)
	case b.Status.DisruptionsAllowed > 0:
		return nil
	case b.Status.DisruptionsAllowed < 0:
		out := apierrors.NewForbidden(schema.GroupResource{Group: policyv1.GroupName, Resource: "poddisruptionbudget"}, b.Name, errNegative)
		out.ErrStatus.Details.Causes = append(out.ErrStatus.Details.Causes, metav1.StatusCause{
			Type:    policyv1.DisruptionBudgetCause,
			Message: fmt.Sprintf("The disruption budget %s does not allow evicting pods currently: %v", b.Name, errNegative),
		})
		return out
	}
	why := meta.FindStatusCondition(b.Status.Conditions, policyv1.DisruptionAllowedCondition)
	said := why != nil && why.Status == metav1.ConditionFalse && why.Message != ""
	switch {
	case said && why.Reason == policyv1.SyncFailedReason:
		return tooMany(0, "The disruption budget %s does not allow evicting pods currently because it failed sync: %s", b.Name, why.Message)
	case b.Status.CurrentHealthy <= b.Status.DesiredHealthy:
		return tooMany(0, "The disruption budget %s needs %d healthy pods and has %d currently", b.Name, b.Status.DesiredHealthy, b.Status.CurrentHealthy)
	case said:
		return tooMany(0, "The disruption budget %s does not allow evicting pods currently (%s): %s", b.Name, why.Reason, why.Message)
	}
	return tooMany(0, "The disruption budget %s does not allow evicting pods currently", b.Name)
}

// tooMany returns the error for an eviction that its budget does not allow. The client may try again after some seconds.
func tooMany(seconds int, why string, args ...any) error {
	out := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", seconds)
	out.ErrStatus.Details.Causes = append(out.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: policyv1.DisruptionBudgetCause, Message: fmt.Sprintf(why, args...),
	})
	return out
}

// spend notes in the status of a budget that its Pod is about to go, so that the next eviction does not count it.
func (s *Server) spend(g guard) error {
	status, now := &g.budget.Status, metav1.NewTime(s.clock.Now())
	status.DisruptionsAllowed--
	if status.DisruptionsAllowed == 0 {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.InsufficientPodsReason,
			ObservedGeneration: status.ObservedGeneration, LastTransitionTime: now,
		})
	}
	if status.DisruptedPods == nil {
		status.DisruptedPods = map[string]metav1.Time{}
	}
	status.DisruptedPods[g.pod.Name] = now
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	next := g.stored.DeepCopy()
	next.Object["status"] = tree
	s.commit(s.tables[budgets()], store.Modified, next)
	return nil
}
