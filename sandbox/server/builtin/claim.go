// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/diff"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// beginClaim gives a new claim one source of its data, in both of its fields.
func beginClaim(c *corev1.PersistentVolumeClaim) {
	keepSource(&c.Spec, &corev1.PersistentVolumeClaimSpec{})
}

// keepClaim is beginClaim for an update. A claim that was stored with one of the fields has both, too.
func keepClaim(next, old *corev1.PersistentVolumeClaim) { keepSource(&next.Spec, &old.Spec) }

// keepSource drops a source that no claim can have, as earlier servers did, unless there was one before.
func keepSource(s, old *corev1.PersistentVolumeClaimSpec) {
	if at := s.DataSource; at != nil && s.DataSourceRef == nil && old.DataSource == nil && old.DataSourceRef == nil {
		group := deref(at.APIGroup)
		if (at.Kind != "PersistentVolumeClaim" || group != "") && (at.Kind != "VolumeSnapshot" || group != "snapshot.storage.k8s.io") {
			s.DataSource = nil
		}
	}
	fillSources(s)
}

// fillSources copies the source of the data of a claim between its two fields, if one has it.
func fillSources(s *corev1.PersistentVolumeClaimSpec) {
	switch from, ref := s.DataSource, s.DataSourceRef; {
	case from != nil && ref == nil:
		s.DataSourceRef = &corev1.TypedObjectReference{APIGroup: from.APIGroup, Kind: from.Kind, Name: from.Name}
	case ref != nil && from == nil && deref(ref.Namespace) == "":
		s.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}
	}
}

func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// checkDataSource checks a source of the data of a claim.
func checkDataSource(f *findings, path *field.Path, group *string, kind, name string) {
	f.filled(path.Child("name"), name)
	f.filled(path.Child("kind"), kind)
	if deref(group) != "" {
		f.each(path.Child("apiGroup"), *group, utilvalidation.IsDNS1123Subdomain(*group))
	} else if kind != "PersistentVolumeClaim" {
		f.invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
	}
}

// checkDataSources checks the source of the data of a claim.
func checkDataSources(f *findings, path *field.Path, s *corev1.PersistentVolumeClaimSpec) {
	from, ref := s.DataSource, s.DataSourceRef
	if from != nil {
		checkDataSource(f, path.Child("dataSource"), from.APIGroup, from.Kind, from.Name)
	}
	if ref != nil {
		checkDataSource(f, path.Child("dataSourceRef"), ref.APIGroup, ref.Kind, ref.Name)
	}
	if from != nil && ref != nil && (from.Kind != ref.Kind || from.Name != ref.Name || deref(from.APIGroup) != deref(ref.APIGroup)) {
		f.invalid(path, path.Child("dataSource"), "must match dataSourceRef")
	}
}

// checkClaim checks a claim.
func checkClaim(f *findings, next, old *corev1.PersistentVolumeClaim) {
	checkClaimSpec(f, spec(), &next.Spec)
	if old == nil {
		return
	}
	asked, before := next.Spec.DeepCopy(), old.Spec.DeepCopy()
	fillSources(before)
	if before.VolumeName == "" {
		before.VolumeName = asked.VolumeName
	}
	if before.StorageClassName == nil {
		asked.StorageClassName = nil // a default class that comes later
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
	checkDataSources(f, path, s)
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
