// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

// fillPod sets the defaults of a Pod.
func fillPod(p *corev1.Pod) {
	s := &p.Spec
	fillPodSpec(s)
	if grace := s.TerminationGracePeriodSeconds; *grace < 0 {
		*grace = 1
	}
	initial(&s.EnableServiceLinks, corev1.DefaultEnableServiceLinks)
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			fillRequests(&list[i].Resources)
			for j := range list[i].Ports {
				if at := &list[i].Ports[j]; s.HostNetwork && at.HostPort == 0 {
					at.HostPort = at.ContainerPort
				}
			}
		}
	}
	if p.Status.PodIP != "" && len(p.Status.PodIPs) == 0 {
		p.Status.PodIPs = []corev1.PodIP{{IP: p.Status.PodIP}}
	}
}

// fillRequests makes the limits the requests that are absent.
func fillRequests(r *corev1.ResourceRequirements) {
	for name, amount := range r.Limits {
		if _, found := r.Requests[name]; !found {
			if r.Requests == nil {
				r.Requests = corev1.ResourceList{}
			}
			r.Requests[name] = amount.DeepCopy()
		}
	}
}

// beginPod gives a new Pod its first status.
func beginPod(p *corev1.Pod) {
	p.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: quality(&p.Spec)}
	s := &p.Spec
	if len(s.SchedulingGates) > 0 {
		p.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated,
			Message: "Scheduling is blocked due to non-empty scheduling gates",
		}}
	}
}

// quality returns the quality of service of a Pod.
func quality(s *corev1.PodSpec) corev1.PodQOSClass {
	guaranteed, any := true, false
	for _, c := range slices.Concat(s.InitContainers, s.Containers) {
		limits, requests := computing(c.Resources.Limits), computing(c.Resources.Requests)
		any = any || len(limits) > 0 || len(requests) > 0
		guaranteed = guaranteed && len(limits) == 2 && equality.Semantic.DeepEqual(limits, requests)
	}
	switch {
	case !any:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

// computing returns the amounts of CPU and memory that are not zero.
func computing(list corev1.ResourceList) corev1.ResourceList {
	out := maps.Clone(list)
	maps.DeleteFunc(out, func(name corev1.ResourceName, _ resource.Quantity) bool {
		amount := list[name]
		return name != corev1.ResourceCPU && name != corev1.ResourceMemory || amount.IsZero()
	})
	return out
}
