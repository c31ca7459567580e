// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func checkBudget(f *findings, next, _ *policyv1.PodDisruptionBudget) {
	s := &next.Spec
	if s.MinAvailable != nil && s.MaxUnavailable != nil {
		f.invalid(spec(), inside(*s), "minAvailable and maxUnavailable cannot be both set")
	}
	checkShare(f, spec().Child("minAvailable"), s.MinAvailable)
	notAbove100(f, spec().Child("minAvailable"), s.MinAvailable)
	checkShare(f, spec().Child("maxUnavailable"), s.MaxUnavailable)
	notAbove100(f, spec().Child("maxUnavailable"), s.MaxUnavailable)
	f.add(metav1validation.ValidateLabelSelector(s.Selector, metav1validation.LabelSelectorValidationOptions{}, spec().Child("selector")))
	supportedIf(f, spec().Child("unhealthyPodEvictionPolicy"), s.UnhealthyPodEvictionPolicy, policyv1.AlwaysAllow, policyv1.IfHealthyBudget)
}

func checkController(f *findings, next, _ *corev1.ReplicationController) {
	s, template := &next.Spec, spec().Child("template")
	if len(s.Selector) == 0 {
		f.required(spec().Child("selector"), "")
	}
	if s.Template == nil {
		f.required(template, "")
		return
	}
	if len(s.Selector) > 0 && !labels.SelectorFromSet(s.Selector).Matches(labels.Set(s.Template.Labels)) {
		f.invalid(template.Child("metadata", "labels"), s.Template.Labels, "`selector` does not match template `labels`")
	}
	checkTemplate(f, template, s.Template)
	restartsAlways(f, template.Child("spec"), &s.Template.Spec, "ReplicationController")
	notNegativeIf(f, spec().Child("replicas"), s.Replicas)
}

func checkStorageClass(f *findings, next, old *storagev1.StorageClass) {
	if next.Provisioner != "" {
		f.each(field.NewPath("provisioner"), strings.ToLower(next.Provisioner), utilvalidation.IsQualifiedName(strings.ToLower(next.Provisioner)))
	}
	supportedIf(f, field.NewPath("reclaimPolicy"), next.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain)
	supportedIf(f, field.NewPath("volumeBindingMode"), next.VolumeBindingMode, storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer)
	f.declared(field.NewPath("provisioner"), next.Provisioner)
	if old == nil {
		return
	}
	kept(f, field.NewPath("provisioner"), next.Provisioner, old.Provisioner)
	kept(f, field.NewPath("parameters"), next.Parameters, old.Parameters)
	kept(f, field.NewPath("reclaimPolicy"), next.ReclaimPolicy, old.ReclaimPolicy)
	kept(f, field.NewPath("volumeBindingMode"), next.VolumeBindingMode, old.VolumeBindingMode)
}

// highest is the highest priority that a class of users may have.
const highest = 1_000_000_000

func checkPriorityClass(f *findings, next, old *schedulingv1.PriorityClass) {
	if old != nil {
		if next.Value != old.Value {
			f.forbidden(field.NewPath("value"), "may not be changed in an update.")
		}
		f.fixed(field.NewPath("preemptionPolicy"), next.PreemptionPolicy, old.PreemptionPolicy)
		return
	}
	if !strings.HasPrefix(next.Name, "system-") {
		if next.Value > highest {
			f.forbidden(field.NewPath("value"), fmt.Sprintf("maximum allowed value of a user defined priority is %d", highest))
		}
	} else if wrong := notOfSystem(next); wrong != "" {
		f.forbidden(field.NewPath("metadata", "name"), "priority class names with 'system-' prefix are reserved for system use only. error: "+wrong)
	}
	supportedIf(f, field.NewPath("preemptionPolicy"), next.PreemptionPolicy, corev1.PreemptLowerPriority, corev1.PreemptNever)
}

// notOfSystem returns why a PriorityClass is none of the two that a cluster has for its own programs, or nothing.
func notOfSystem(c *schedulingv1.PriorityClass) string {
	values := map[string]int32{"system-cluster-critical": 2 * highest, "system-node-critical": 2*highest + 1000}
	switch value, known := values[c.Name]; {
	case !known:
		return c.Name + " is not a known system priority class"
	case c.Value != value:
		return fmt.Sprintf("value of %s PriorityClass must be %d", c.Name, value)
	case c.GlobalDefault:
		return fmt.Sprintf("globalDefault of %s PriorityClass must be false", c.Name)
	}
	return ""
}

func checkLease(f *findings, next, _ *coordinationv1.Lease) {
	if seconds := next.Spec.LeaseDurationSeconds; seconds != nil && *seconds <= 0 {
		f.invalid(spec().Child("leaseDurationSeconds"), *seconds, "must be greater than 0")
	}
	notNegativeIf(f, spec().Child("leaseTransitions"), next.Spec.LeaseTransitions)
}

// beginLease drops the fields by which the server would choose the holder of a Lease: that is off by default.
func beginLease(l *coordinationv1.Lease) { l.Spec.Strategy, l.Spec.PreferredHolder = nil, nil }

// keepLease is beginLease for an update.
func keepLease(next, _ *coordinationv1.Lease) { beginLease(next) }

func checkEvent(f *findings, next, _ *corev1.Event) {
	checkEventOf(f, eventsv1.Event{
		ObjectMeta: next.ObjectMeta, EventTime: next.EventTime, Regarding: next.InvolvedObject, Action: next.Action, Reason: next.Reason,
		ReportingController: next.ReportingController, ReportingInstance: next.ReportingInstance,
	}, "reportingComponent")
}

func checkNewEvent(f *findings, next, old *eventsv1.Event) {
	checkEventOf(f, *next, "reportingController")
	if old != nil {
		return
	}
	if next.EventTime.IsZero() {
		f.required(field.NewPath("eventTime"), "")
	}
	if next.Type != corev1.EventTypeNormal && next.Type != corev1.EventTypeWarning {
		f.invalid(field.NewPath("type"), "", fmt.Sprintf("has invalid value: %v", next.Type))
	}
}

// checkEventOf checks what Events of both groups have; they have another name for the controller.
func checkEventOf(f *findings, e eventsv1.Event, controller string) {
	about, namespace := e.Regarding.Namespace, field.NewPath("involvedObject", "namespace")
	const differs = "does not match event.namespace"
	if e.EventTime.IsZero() {
		if about != e.Namespace && (about != "" || e.Namespace != metav1.NamespaceDefault) {
			f.invalid(namespace, about, differs)
		}
		return
	}
	if about == "" && e.Namespace != metav1.NamespaceDefault && e.Namespace != metav1.NamespaceSystem {
		f.invalid(namespace, about, differs)
	}
	f.filled(field.NewPath(controller), e.ReportingController)
	f.each(field.NewPath(controller), e.ReportingController, utilvalidation.IsQualifiedName(e.ReportingController))
	f.filled(field.NewPath("reportingInstance"), e.ReportingInstance)
	f.filled(field.NewPath("action"), e.Action)
	f.filled(field.NewPath("reason"), e.Reason)
}
