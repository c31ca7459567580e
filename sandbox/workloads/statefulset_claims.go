// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// claimName returns the name of an ordinal's claim.
func (s *statefulSet) claimName(template string, n int) string {
	return fmt.Sprintf("%s-%s-%d", template, s.s.Name, n)
}

// claim makes the claims of an ordinal that are missing.
func (s *statefulSet) claim(n int) error {
	for _, template := range s.s.Spec.VolumeClaimTemplates {
		c := &corev1.PersistentVolumeClaim{Spec: *template.Spec.DeepCopy()}
		c.Namespace, c.Name = s.s.Namespace, s.claimName(template.Name, n)
		c.Labels, c.Annotations, c.Finalizers = maps.Clone(template.Labels), template.Annotations, []string{claimInUse}
		if s.s.Spec.Selector != nil {
			for name, value := range s.s.Spec.Selector.MatchLabels {
				c.Labels = with(c.Labels, name, value)
			}
		}
		if s.caches["PersistentVolumeClaim"].get(c.Namespace, c.Name) != nil {
			continue
		}
		err := s.create("PersistentVolumeClaim", c, controllers)
		s.note("create", fmt.Sprintf("Claim %s Pod %s-%d", c.Name, s.s.Name, n), "success", err)
		if err != nil {
			return err
		}
	}
	return nil
}

// ownClaims gives the claims of a Pod the owner with which they are deleted, as the retention policy says: the StatefulSet for a
// wanted Pod, and the Pod itself before it is scaled away.
func (s *statefulSet) ownClaims(n int, p *corev1.Pod, wanted bool) error {
	const remove = appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	policy := s.s.Spec.PersistentVolumeClaimRetentionPolicy
	var owner []metav1.OwnerReference
	switch {
	case policy == nil:
		return nil
	case policy.WhenScaled == remove && !wanted:
		owner = ownedBy(p, "Pod")
	case policy.WhenDeleted == remove:
		owner = ownedBy(s.s, "StatefulSet")
	}
	for _, template := range s.s.Spec.VolumeClaimTemplates {
		c := s.caches["PersistentVolumeClaim"].get(s.s.Namespace, s.claimName(template.Name, n))
		if c == nil {
			continue
		}
		next := slices.DeleteFunc(slices.Clone(c.GetOwnerReferences()), func(ref metav1.OwnerReference) bool {
			return ref.Kind == "StatefulSet" && ref.Name == s.s.Name || ref.Kind == "Pod" && ref.Name == p.Name
		})
		if foreign := metav1.GetControllerOfNoCopy(&metav1.ObjectMeta{OwnerReferences: next}); foreign == nil {
			next = append(next, owner...)
		}
		if equality.Semantic.DeepEqual(next, c.GetOwnerReferences()) {
			continue
		}
		if err := s.patch("PersistentVolumeClaim", c, controllers, map[string]any{"metadata": map[string]any{"ownerReferences": next}}); err != nil {
			return err
		}
	}
	return nil
}
