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

// notReady is how many seconds a Pod stays on a node that is not ready, unless it says so itself.
const notReady = 300

// beginPod gives a new Pod its first status, and what the admission of every cluster adds.
func beginPod(p *corev1.Pod) {
	p.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: quality(&p.Spec)}
	s := &p.Spec
	orElse(&s.ServiceAccountName, "default")
	s.DeprecatedServiceAccount = s.ServiceAccountName
	initial(&s.Priority, 0)
	initial(&s.PreemptionPolicy, corev1.PreemptLowerPriority)
	tolerate(s)
}

// keepPod gives a Pod what admission adds at each change: a template that lists tolerations replaces those that were added before.
func keepPod(next, old *corev1.Pod) {
	s := &next.Spec
	if s.Priority == nil {
		s.Priority = old.Spec.Priority
	}
	if s.PreemptionPolicy == nil {
		s.PreemptionPolicy = old.Spec.PreemptionPolicy
	}
	tolerate(s)
}

// tolerate lets a Pod stay for some time on a node that is not ready.
func tolerate(s *corev1.PodSpec) {
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		tolerated := slices.ContainsFunc(s.Tolerations, func(t corev1.Toleration) bool {
			return (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
		})
		if !tolerated {
			s.Tolerations = append(s.Tolerations, corev1.Toleration{
				Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(notReady)),
			})
		}
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
