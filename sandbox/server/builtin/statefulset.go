// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
)

// checkStatefulSet checks a StatefulSet.
func checkStatefulSet(f *findings, next, old *appsv1.StatefulSet) {
	s := &next.Spec
	if s.PodManagementPolicy != appsv1.OrderedReadyPodManagement && s.PodManagementPolicy != appsv1.ParallelPodManagement {
		f.invalid(spec().Child("podManagementPolicy"), s.PodManagementPolicy, mustBe(appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement))
	}
	checkSetUpdate(f, s.UpdateStrategy)
	retention := spec().Child("persistentVolumeClaimRetentionPolicy")
	known := []appsv1.PersistentVolumeClaimRetentionPolicyType{
		appsv1.DeletePersistentVolumeClaimRetentionPolicyType, appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
	}
	supported(f, retention.Child("whenDeleted"), s.PersistentVolumeClaimRetentionPolicy.WhenDeleted, known...)
	supported(f, retention.Child("whenScaled"), s.PersistentVolumeClaimRetentionPolicy.WhenScaled, known...)
	if old == nil {
		for i := range s.VolumeClaimTemplates {
			checkClaimSpec(f, spec().Child("volumeClaimTemplates").Index(i).Child("spec"), &s.VolumeClaimTemplates[i].Spec)
		}
	}
	notNegativeIf(f, spec().Child("replicas"), s.Replicas)
	f.notNegative(spec().Child("minReadySeconds"), int64(s.MinReadySeconds))
	if s.Ordinals != nil {
		f.notNegative(spec().Child("ordinals.start"), int64(s.Ordinals.Start))
	}
	if s.ServiceName != "" && old == nil {
		f.each(spec().Child("serviceName"), s.ServiceName, utilvalidation.IsDNS1123Label(s.ServiceName))
	}
	template := spec().Child("template")
	if checkSelector(f, s.Selector, &s.Template, "statefulset") {
		checkTemplate(f, template, withClaims(s))
	}
	restartsAlways(f, template.Child("spec"), &s.Template.Spec, "StatefulSet")
	if old != nil {
		f.fixed(spec().Child("selector"), s.Selector, old.Spec.Selector)
		f.fixed(spec().Child("volumeClaimTemplates"), s.VolumeClaimTemplates, old.Spec.VolumeClaimTemplates)
		f.fixed(spec().Child("serviceName"), s.ServiceName, old.Spec.ServiceName)
		f.fixed(spec().Child("podManagementPolicy"), s.PodManagementPolicy, old.Spec.PodManagementPolicy)
	}
}

// withClaims returns the template of a StatefulSet with the volumes and without the names that its controller replaces.
func withClaims(s *appsv1.StatefulSetSpec) *corev1.PodTemplateSpec {
	out := s.Template
	out.Spec.Hostname, out.Spec.Subdomain = "", ""
	if len(s.VolumeClaimTemplates) == 0 {
		return &out
	}
	out.Spec.Volumes = nil
	claimed := map[string]bool{}
	for _, c := range s.VolumeClaimTemplates {
		claimed[c.Name] = true
		out.Spec.Volumes = append(out.Spec.Volumes, corev1.Volume{Name: c.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.Name},
		}})
	}
	for _, v := range s.Template.Spec.Volumes {
		if !claimed[v.Name] {
			out.Spec.Volumes = append(out.Spec.Volumes, v)
		}
	}
	return &out
}

// checkSetUpdate checks how a StatefulSet is updated.
func checkSetUpdate(f *findings, u appsv1.StatefulSetUpdateStrategy) {
	path := spec().Child("updateStrategy")
	rolling := path.Child("rollingUpdate")
	switch u.Type {
	case appsv1.OnDeleteStatefulSetStrategyType:
		if u.RollingUpdate != nil {
			f.invalid(rolling, inside(u.RollingUpdate), "only allowed for updateStrategy 'RollingUpdate'")
		}
	case appsv1.RollingUpdateStatefulSetStrategyType:
		if u.RollingUpdate == nil {
			return
		}
		notNegativeIf(f, rolling.Child("partition"), u.RollingUpdate.Partition)
		if u.RollingUpdate.MaxUnavailable != nil {
			checkShare(f, rolling.Child("maxUnavailable"), u.RollingUpdate.MaxUnavailable)
			if amountOf(u.RollingUpdate.MaxUnavailable) == 0 {
				f.invalid(rolling.Child("maxUnavailable"), u.RollingUpdate.MaxUnavailable, "cannot be 0")
			}
			notAbove100(f, rolling.Child("maxUnavailable"), u.RollingUpdate.MaxUnavailable)
		}
	default:
		f.invalid(path, inside(u), mustBe(appsv1.RollingUpdateStatefulSetStrategyType, appsv1.OnDeleteStatefulSetStrategyType))
	}
}
