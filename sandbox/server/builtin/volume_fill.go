// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	corev1 "k8s.io/api/core/v1"
)

// fillVolume sets the defaults of a volume. One without a source is an empty folder.
func fillVolume(v *corev1.VolumeSource) {
	if *v == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	const mode = corev1.ConfigMapVolumeSourceDefaultMode
	if v.ConfigMap != nil {
		initial(&v.ConfigMap.DefaultMode, mode)
	}
	if v.Secret != nil {
		initial(&v.Secret.DefaultMode, mode)
	}
	if v.HostPath != nil {
		initial(&v.HostPath.Type, corev1.HostPathUnset)
	}
	if v.Image != nil {
		orElse(&v.Image.PullPolicy, pullPolicy(v.Image.Reference))
	}
	if v.DownwardAPI != nil {
		initial(&v.DownwardAPI.DefaultMode, mode)
		fillFiles(v.DownwardAPI.Items)
	}
	if v.Projected != nil {
		initial(&v.Projected.DefaultMode, mode)
		for _, source := range v.Projected.Sources {
			if source.DownwardAPI != nil {
				fillFiles(source.DownwardAPI.Items)
			}
			if source.ServiceAccountToken != nil {
				initial(&source.ServiceAccountToken.ExpirationSeconds, 3600)
			}
		}
	}
	if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
		fillClaimSpec(&v.Ephemeral.VolumeClaimTemplate.Spec)
	}
	fillRareVolume(v)
}

// fillRareVolume sets the defaults of volumes that few clusters have.
func fillRareVolume(v *corev1.VolumeSource) {
	if v.ISCSI != nil {
		orElse(&v.ISCSI.ISCSIInterface, "default")
	}
	if v.RBD != nil {
		orElse(&v.RBD.RBDPool, "rbd")
		orElse(&v.RBD.RadosUser, "admin")
		orElse(&v.RBD.Keyring, "/etc/ceph/keyring")
	}
	if v.AzureDisk != nil {
		initial(&v.AzureDisk.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		initial(&v.AzureDisk.Kind, corev1.AzureSharedBlobDisk)
		initial(&v.AzureDisk.FSType, "ext4")
		initial(&v.AzureDisk.ReadOnly, false)
	}
}

func fillFiles(files []corev1.DownwardAPIVolumeFile) {
	for _, file := range files {
		if file.FieldRef != nil {
			orElse(&file.FieldRef.APIVersion, "v1")
		}
	}
}

func fillClaimSpec(s *corev1.PersistentVolumeClaimSpec) {
	initial(&s.VolumeMode, corev1.PersistentVolumeFilesystem)
	fillAmounts(s.Resources.Limits)
	fillAmounts(s.Resources.Requests)
}

func fillClaim(c *corev1.PersistentVolumeClaim) {
	fillClaimSpec(&c.Spec)
	fillAmounts(c.Status.Capacity)
	orElse(&c.Status.Phase, corev1.ClaimPending)
}

func fillPersistentVolume(v *corev1.PersistentVolume) {
	orElse(&v.Status.Phase, corev1.VolumePending)
	orElse(&v.Spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
	initial(&v.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	fillAmounts(v.Spec.Capacity)
	if v.Spec.HostPath != nil {
		initial(&v.Spec.HostPath.Type, corev1.HostPathUnset)
	}
}
