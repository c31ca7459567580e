// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// The finalizers by which a claim outlives the Pods that use it, a volume the claim that it is bound to, and a class of attributes
// the claims and volumes that name it. Admission sets
// them in a cluster, and its controllers where that has not.
const (
	claimInUse  = "kubernetes.io/pvc-protection"
	volumeInUse = "kubernetes.io/pv-protection"
	classInUse  = "kubernetes.io/vac-protection"
)

// protect puts a finalizer on an object, and takes it off one that is being deleted and not used. It reports whether it
// has written.
func (l *loop) protect(row string, o object, finalizer string, used func() (bool, error)) (wrote bool, err error) {
	have, ends := o.GetFinalizers(), o.GetDeletionTimestamp() != nil
	if slices.Contains(have, finalizer) != ends {
		return false, nil
	}
	next := append(slices.Clone(have), finalizer)
	if ends {
		if is, err := used(); is || err != nil {
			return false, err
		}
		next = slices.DeleteFunc(slices.Clone(have), func(each string) bool { return each == finalizer })
	}
	return true, l.patch(row, o, controllers, map[string]any{"metadata": map[string]any{"finalizers": next}})
}

// uses reports whether a Pod that is on a node uses a claim. It asks the server, too: the watch of Pods may be behind that
// of claims.
func (l *loop) uses(c *corev1.PersistentVolumeClaim) (bool, error) {
	uses := func(p *corev1.Pod) bool { return p.Spec.NodeName != "" && slices.Contains(claimsOf(p), c.Name) }
	if slices.ContainsFunc(listOf[*corev1.Pod](l.caches["Pod"].in(c.Namespace)), uses) {
		return true, nil
	}
	row := l.row("Pod")
	items, _, err := l.link.list(l.ctx, row, c.Namespace)
	for _, data := range items {
		if o, err := row.decode(data); err == nil && uses(o.(*corev1.Pod)) {
			return true, nil
		}
	}
	return false, err
}

// wakeEnding queues the claims of a Pod that wait for its end.
func (l *loop) wakeEnding(p *corev1.Pod) {
	for _, name := range claimsOf(p) {
		if c := l.caches["PersistentVolumeClaim"].get(p.Namespace, name); c != nil && c.GetDeletionTimestamp() != nil {
			l.queue.add(key{"PersistentVolumeClaim", p.Namespace, name})
		}
	}
}

// stepAttributesClass protects a VolumeAttributesClass.
func stepAttributesClass(l *loop, c *storagev1.VolumeAttributesClass, _ Rule) error {
	names := func(name *string) bool { return name != nil && *name == c.Name }
	_, err := l.protect("VolumeAttributesClass", c, classInUse, func() (bool, error) {
		claims, volumes := l.caches["PersistentVolumeClaim"].all(), l.caches["PersistentVolume"].all()
		return slices.ContainsFunc(listOf[*corev1.PersistentVolumeClaim](claims), func(each *corev1.PersistentVolumeClaim) bool { return names(each.Spec.VolumeAttributesClassName) }) ||
			slices.ContainsFunc(listOf[*corev1.PersistentVolume](volumes), func(each *corev1.PersistentVolume) bool { return names(each.Spec.VolumeAttributesClassName) }), nil
	})
	return err
}

// wakeClass queues the VolumeAttributesClass that a claim or a volume names.
func (l *loop) wakeClass(name *string) {
	if name != nil && l.allKinds {
		l.queue.add(key{kind: "VolumeAttributesClass", name: *name})
	}
}
