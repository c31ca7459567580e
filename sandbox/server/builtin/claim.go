// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkClaim checks a claim.
func checkClaim(f *findings, next, old *corev1.PersistentVolumeClaim) {
	checkClaimSpec(f, spec(), &next.Spec)
	if old == nil {
		return
	}
	asked, before := next.Spec.DeepCopy(), old.Spec.DeepCopy()
	if before.VolumeName == "" {
		before.VolumeName = asked.VolumeName
	}
	if before.StorageClassName == nil {
		before.StorageClassName = asked.StorageClassName // a default class that comes later
	}
	if next.Status.Phase == corev1.ClaimBound && asked.Resources.Requests != nil {
		asked.Resources.Requests[corev1.ResourceStorage] = old.Spec.Resources.Requests[corev1.ResourceStorage]
		asked.VolumeAttributesClassName = before.VolumeAttributesClassName
	}
	if !equality.Semantic.DeepEqual(asked, before) {
		f.forbidden(spec(), fmt.Sprintf("spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n%v",
			diff.Diff(inside(*before), inside(*asked))))
	}
	size, was := next.Spec.Resources.Requests[corev1.ResourceStorage], old.Spec.Resources.Requests[corev1.ResourceStorage]
	capacity := old.Status.Capacity[corev1.ResourceStorage]
	if size.Cmp(was) < 0 && size.Cmp(capacity) <= 0 {
		f.forbidden(spec().Child("resources", "requests", "storage"), "field can not be less than status.capacity")
	}
	f.fixed(field.NewPath("volumeMode"), next.Spec.VolumeMode, old.Spec.VolumeMode)
}

// checkModes checks access modes.
func checkModes(f *findings, path *field.Path, modes []corev1.PersistentVolumeAccessMode) {
	single, other := false, false
	for _, mode := range modes {
		known := supported(f, path, mode, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadWriteOncePod)
		single = single || mode == corev1.ReadWriteOncePod
		other = other || known && mode != corev1.ReadWriteOncePod
	}
	if single && other {
		f.forbidden(path, "may not use ReadWriteOncePod with other access modes")
	}
}

func checkClaimSpec(f *findings, path *field.Path, s *corev1.PersistentVolumeClaimSpec) {
	if len(s.AccessModes) == 0 {
		f.required(path.Child("accessModes"), "at least 1 access mode is required")
	}
	if s.Selector != nil {
		f.add(metav1validation.ValidateLabelSelector(s.Selector, metav1validation.LabelSelectorValidationOptions{}, path.Child("selector")))
	}
	checkModes(f, path.Child("accessModes"), s.AccessModes)
	storage := path.Child("resources").Key(string(corev1.ResourceStorage))
	if size, found := s.Resources.Requests[corev1.ResourceStorage]; !found {
		f.required(storage, "")
	} else if size.Sign() <= 0 {
		f.invalid(storage, size.String(), "must be greater than zero")
	}
	checkClass(f, path.Child("storageClassName"), s.StorageClassName)
	supportedIf(f, path.Child("volumeMode"), s.VolumeMode, corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)
	checkClass(f, path.Child("volumeAttributesClassName"), s.VolumeAttributesClassName)
}

// checkPersistentVolume checks a volume of the cluster.
func checkPersistentVolume(f *findings, next, old *corev1.PersistentVolume) {
	s := &next.Spec
	if len(s.AccessModes) == 0 {
		f.required(spec().Child("accessModes"), "")
	}
	checkModes(f, spec().Child("accessModes"), s.AccessModes)
	if len(s.Capacity) == 0 {
		f.required(spec().Child("capacity"), "")
	}
	if _, found := s.Capacity[corev1.ResourceStorage]; !found || len(s.Capacity) > 1 {
		f.list = append(f.list, field.NotSupported(spec().Child("capacity"), s.Capacity, []corev1.ResourceName{corev1.ResourceStorage}))
	}
	for name, size := range s.Capacity {
		at := spec().Child("capacity").Key(string(name))
		if size.Sign() <= 0 {
			f.invalid(at, size.String(), "must be greater than zero")
		}
	}
	supported(f, spec().Child("persistentVolumeReclaimPolicy"), s.PersistentVolumeReclaimPolicy,
		corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle, corev1.PersistentVolumeReclaimRetain)
	if s.PersistentVolumeSource == (corev1.PersistentVolumeSource{}) {
		f.required(spec(), "must specify a volume type")
	}
	supportedIf(f, spec().Child("volumeMode"), s.VolumeMode, corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)
	if old != nil && !equality.Semantic.DeepEqual(s.PersistentVolumeSource, old.Spec.PersistentVolumeSource) {
		f.forbidden(spec().Child("persistentvolumesource"), fmt.Sprintf("spec.persistentvolumesource is immutable after creation\n%v",
			diff.Diff(inside(old.Spec.PersistentVolumeSource), inside(s.PersistentVolumeSource))))
	}
}
