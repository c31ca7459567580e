// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// provisioner is the name of the one that makes volumes.
const provisioner = "stages.handwerk.dev"

// The annotations of claims and volumes that the controllers of a cluster set.
const (
	provisionedBy  = "pv.kubernetes.io/provisioned-by"
	bindCompleted  = "pv.kubernetes.io/bind-completed"
	boundByControl = "pv.kubernetes.io/bound-by-controller"
)

// stepClaim protects a claim, and binds it.
func stepClaim(l *loop, c *corev1.PersistentVolumeClaim, rule Rule) error {
	wrote, err := l.protect("PersistentVolumeClaim", c, claimInUse, func() (bool, error) { return l.uses(c) })
	if wrote || err != nil {
		return err
	}
	return l.bindClaim(c, rule)
}

// bindClaim binds a claim to a volume that is made for it, or to the one that it names.
func (l *loop) bindClaim(c *corev1.PersistentVolumeClaim, rule Rule) error {
	if c.Status.Phase == corev1.ClaimBound {
		l.release(c)
		return nil
	}
	if c.DeletionTimestamp != nil {
		return nil
	}
	if rule.Fail != "" || !l.waited("PersistentVolumeClaim", c, "bound", rule.Delay) {
		return holdClaim(l, c)
	}
	volume := c.Spec.VolumeName
	if volume == "" {
		volume = "pvc-" + string(c.UID)
		if err := l.provision(c, volume); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		return l.patch("PersistentVolumeClaim", c, controllers, map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{bindCompleted: "yes", boundByControl: "yes"}},
			"spec":     map[string]any{"volumeName": volume},
		})
	}
	v, _ := l.caches["PersistentVolume"].get("", volume).(*corev1.PersistentVolume)
	if v == nil || v.Spec.ClaimRef != nil && (v.Spec.ClaimRef.Name != c.Name || v.Spec.ClaimRef.Namespace != c.Namespace) {
		return holdClaim(l, c)
	}
	if v.Spec.ClaimRef == nil || v.Spec.ClaimRef.UID == "" {
		if err := l.patch("PersistentVolume", v, controllers, map[string]any{"spec": map[string]any{"claimRef": claimRef(c)}}); err != nil {
			return err
		}
	}
	next := c.Status.DeepCopy()
	next.Phase, next.AccessModes, next.Capacity = corev1.ClaimBound, v.Spec.AccessModes, v.Spec.Capacity
	return l.status("PersistentVolumeClaim", c, controllers, c.Status, *next)
}

// holdClaim leaves a claim as it is; a new one is Pending.
func holdClaim(l *loop, o object) error {
	c := o.(*corev1.PersistentVolumeClaim)
	next := c.Status.DeepCopy()
	if next.Phase == "" {
		next.Phase = corev1.ClaimPending
	}
	return l.status("PersistentVolumeClaim", c, controllers, c.Status, *next)
}

func claimRef(c *corev1.PersistentVolumeClaim) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: c.Namespace, Name: c.Name, UID: c.UID}
}

// provision makes a volume for a claim.
func (l *loop) provision(c *corev1.PersistentVolumeClaim, name string) error {
	class, modes := "", slices.Clone(c.Spec.AccessModes)
	if c.Spec.StorageClassName != nil {
		class = *c.Spec.StorageClassName
	}
	if len(modes) == 0 {
		modes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	}
	return l.create("PersistentVolume", &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{volumeInUse}, Annotations: map[string]string{provisionedBy: provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: c.Spec.Resources.Requests, AccessModes: modes, ClaimRef: claimRef(c), StorageClassName: class, VolumeMode: c.Spec.VolumeMode,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/volumes/" + name}},
		},
	}, controllers)
}

// wakeNaming queues the claims that name a volume and wait for it.
func (l *loop) wakeNaming(v *corev1.PersistentVolume) {
	for _, c := range listOf[*corev1.PersistentVolumeClaim](l.caches["PersistentVolumeClaim"].all()) {
		if c.Spec.VolumeName == v.Name && c.Status.Phase != corev1.ClaimBound {
			l.queue.add(key{"PersistentVolumeClaim", c.Namespace, c.Name})
		}
	}
}

// stepVolume keeps the phase of a volume, and deletes one that was made for a claim that is gone.
func stepVolume(l *loop, v *corev1.PersistentVolume, _ Rule) error {
	bound := func() (bool, error) { return v.Status.Phase == corev1.VolumeBound, nil }
	if wrote, err := l.protect("PersistentVolume", v, volumeInUse, bound); wrote || err != nil {
		return err
	}
	l.wakeNaming(v)
	next := v.Status.DeepCopy()
	next.Phase = corev1.VolumeAvailable
	if ref := v.Spec.ClaimRef; ref != nil && ref.UID != "" {
		next.Phase = corev1.VolumeBound
		claim := l.caches["PersistentVolumeClaim"].get(ref.Namespace, ref.Name)
		if claim == nil || claim.GetUID() != ref.UID {
			next.Phase = corev1.VolumeReleased
			if v.DeletionTimestamp == nil && v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete && v.Annotations[provisionedBy] == provisioner {
				return l.delete("PersistentVolume", v, nil)
			}
		}
	}
	if next.Phase != v.Status.Phase {
		changed := l.now()
		next.LastPhaseTransitionTime = &changed
	}
	return l.status("PersistentVolume", v, controllers, v.Status, *next)
}
