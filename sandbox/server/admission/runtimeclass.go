// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// runtimeClass gives a Pod the overhead, the node selector and the tolerations of its RuntimeClass, and refuses a Pod whose class
// does not exist.
func runtimeClass() step {
	return step{
		complete: onNewPod(func(c *call, pod *corev1.Pod) error {
			class, err := runtimeClassOf(c, pod)
			if class == nil {
				return err
			}
			if class.Overhead != nil {
				if len(pod.Spec.Overhead) > 0 && !equality.Semantic.DeepEqual(pod.Spec.Overhead, class.Overhead.PodFixed) {
					return c.forbidden("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
				}
				pod.Spec.Overhead = class.Overhead.PodFixed
			}
			return scheduleAs(c, &pod.Spec, class.Scheduling)
		}),
		refuse: onNewPod(func(c *call, pod *corev1.Pod) error {
			class, err := runtimeClassOf(c, pod)
			switch {
			case err != nil:
				return err
			case class == nil || class.Overhead == nil:
				if pod.Spec.Overhead != nil {
					return c.forbidden("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
				}
			case !equality.Semantic.DeepEqual(pod.Spec.Overhead, class.Overhead.PodFixed):
				return c.forbidden("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
			}
			return nil
		}),
	}
}

// runtimeClassOf returns the RuntimeClass of a Pod, or nil if the Pod names none.
func runtimeClassOf(c *call, pod *corev1.Pod) (*nodev1.RuntimeClass, error) {
	name := pod.Spec.RuntimeClassName
	if name == nil {
		return nil, nil
	}
	class, err := get[nodev1.RuntimeClass](c.objects, schema.GroupResource{Group: nodev1.GroupName, Resource: "runtimeclasses"}, "", *name)
	if err == nil && class == nil {
		return nil, c.forbidden("pod rejected: RuntimeClass %q not found", *name)
	}
	return class, err
}

// scheduleAs gives a Pod the node selector and the tolerations of its RuntimeClass.
func scheduleAs(c *call, s *corev1.PodSpec, by *nodev1.Scheduling) error {
	if by == nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(by.NodeSelector)) {
		if value, found := s.NodeSelector[key]; found && value != by.NodeSelector[key] {
			return c.forbidden("conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; pod.spec.nodeSelector[%s] = %s", key, by.NodeSelector[key], key, value)
		}
	}
	if s.NodeSelector == nil && by.NodeSelector != nil {
		s.NodeSelector = map[string]string{}
	}
	maps.Copy(s.NodeSelector, by.NodeSelector)
	s.Tolerations = joinTolerations(s.Tolerations, by.Tolerations)
	return nil
}

// joinTolerations returns two lists as one, without tolerations that another one covers.
func joinTolerations(first, second []corev1.Toleration) (out []corev1.Toleration) {
	all := slices.Concat(first, second)
	for i, t := range all {
		covered := slices.ContainsFunc(out, func(other corev1.Toleration) bool { return covers(other, t) }) ||
			slices.ContainsFunc(all[i+1:], func(other corev1.Toleration) bool { return covers(other, t) && !covers(t, other) })
		if !covered {
			out = append(out, t)
		}
	}
	return out
}

// covers reports whether a toleration tolerates at least as much as another one.
func covers(a, b corev1.Toleration) bool {
	if equality.Semantic.DeepEqual(a, b) {
		return true
	}
	exists := a.Operator == corev1.TolerationOpExists
	switch {
	case a.Key != b.Key && (a.Key != "" || !exists), a.Effect != b.Effect && a.Effect != "":
		return false
	case a.Effect == corev1.TaintEffectNoExecute && a.TolerationSeconds != nil && (b.TolerationSeconds == nil || *b.TolerationSeconds > *a.TolerationSeconds):
		return false
	}
	return exists || b.Operator == corev1.TolerationOpEqual && a.Value == b.Value
}
