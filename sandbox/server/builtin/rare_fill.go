// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

func fillNamespace(n *corev1.Namespace) {
	orElse(&n.Status.Phase, corev1.NamespaceActive)
	if n.Name == "" {
		return // it is generated later
	}
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[corev1.LabelMetadataName] = n.Name
}

// keepNamespace keeps what only a subresource may change.
func keepNamespace(next, old *corev1.Namespace) { next.Spec.Finalizers = old.Spec.Finalizers }

func fillNode(n *corev1.Node) {
	fillAmounts(n.Status.Capacity)
	fillAmounts(n.Status.Allocatable)
	if n.Status.Allocatable == nil {
		n.Status.Allocatable = maps.Clone(n.Status.Capacity)
	}
}

func fillQuota(q *corev1.ResourceQuota) {
	fillAmounts(q.Spec.Hard)
	fillAmounts(q.Status.Hard)
	fillAmounts(q.Status.Used)
}

// fillLimitRange makes the maximum the default, and that or the minimum the default request.
func fillLimitRange(r *corev1.LimitRange) {
	for i := range r.Spec.Limits {
		item := &r.Spec.Limits[i]
		for _, list := range []corev1.ResourceList{item.Max, item.Min, item.Default, item.DefaultRequest, item.MaxLimitRequestRatio} {
			fillAmounts(list)
		}
		if item.Type == corev1.LimitTypeContainer {
			item.Default = completed(item.Default, item.Max)
			item.DefaultRequest = completed(completed(item.DefaultRequest, item.Default), item.Min)
		}
	}
}

// completed returns amounts with those of another list that they lack.
func completed(list, from corev1.ResourceList) corev1.ResourceList {
	if list == nil {
		list = corev1.ResourceList{}
	}
	for name, amount := range from {
		if _, found := list[name]; !found {
			list[name] = amount.DeepCopy()
		}
	}
	return list
}

//nolint:staticcheck // clients still write them
func fillEndpoints(e *corev1.Endpoints) {
	for i := range e.Subsets {
		for j := range e.Subsets[i].Ports {
			orElse(&e.Subsets[i].Ports[j].Protocol, corev1.ProtocolTCP)
		}
	}
}

func fillEndpointSlice(s *discoveryv1.EndpointSlice) {
	if len(s.Endpoints) == 0 {
		s.Endpoints = nil // a real server stores no empty list
	}
	for i := range s.Ports {
		initial(&s.Ports[i].Name, "")
		initial(&s.Ports[i].Protocol, corev1.ProtocolTCP)
	}
}

func fillIngressClass(c *networkingv1.IngressClass) {
	if c.Spec.Parameters != nil {
		initial(&c.Spec.Parameters.Scope, networkingv1.IngressClassParametersReferenceScopeCluster)
	}
}

func fillStorageClass(c *storagev1.StorageClass) {
	initial(&c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
	initial(&c.VolumeBindingMode, storagev1.VolumeBindingImmediate)
}

func fillCSIDriver(d *storagev1.CSIDriver) {
	s := &d.Spec
	initial(&s.AttachRequired, true)
	for _, at := range []**bool{&s.PodInfoOnMount, &s.StorageCapacity, &s.RequiresRepublish, &s.SELinuxMount, &s.PreventPodSchedulingIfMissing} {
		initial(at, false)
	}
	initial(&s.FSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)
	if len(s.VolumeLifecycleModes) == 0 {
		s.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
	}
}

func fillPriorityClass(c *schedulingv1.PriorityClass) {
	initial(&c.PreemptionPolicy, corev1.PreemptLowerPriority)
}

// beginVolume says since when a new volume has its phase.
func beginVolume(v *corev1.PersistentVolume) {
	v.Status.LastPhaseTransitionTime = v.CreationTimestamp.DeepCopy()
}

// templates is the annotation that counts the templates which a DaemonSet has had.
const templates = appsv1.DeprecatedTemplateGeneration

func beginDaemonSet(d *appsv1.DaemonSet) { count(d, max(1, counted(d))) }

// keepDaemonSet counts a changed template.
func keepDaemonSet(next, old *appsv1.DaemonSet) {
	n := counted(old)
	if !equality.Semantic.DeepEqual(next.Spec.Template, old.Spec.Template) {
		n++
	}
	count(next, n)
}

// counted returns how many templates a DaemonSet has had; 0 if a client has sent no number.
func counted(d *appsv1.DaemonSet) int {
	n, _ := strconv.Atoi(d.Annotations[templates])
	return n
}

func count(d *appsv1.DaemonSet, n int) {
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	d.Annotations[templates] = strconv.Itoa(n)
}
