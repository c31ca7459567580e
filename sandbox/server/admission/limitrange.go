// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// limitRanger gives the containers of a new Pod the requests and limits that the LimitRanges of its namespace have as defaults. It
// refuses Pods and claims that ask for less or more than these allow.
func limitRanger() step {
	return step{
		complete: onNewPod(func(c *call, pod *corev1.Pod) error {
			ranges, err := limitRanges(c)
			for _, r := range ranges {
				fillLimits(pod, r)
			}
			return err
		}),
		refuse: func(c *call) error {
			if c.Old != nil && c.Old.GetDeletionTimestamp() != nil {
				return nil
			}
			switch {
			case c.isNew(pods()), c.Resource == pods() && c.Subresource == "resize":
				return checkPodLimits(c)
			case c.Resource == claims() && c.Subresource == "":
				return checkClaimLimits(c)
			}
			return nil
		},
	}
}

func limitRanges(c *call) ([]*corev1.LimitRange, error) {
	return list[corev1.LimitRange](c.objects, schema.GroupResource{Resource: "limitranges"}, c.Namespace)
}

// fillLimits gives the containers of a Pod the defaults of a LimitRange, and an annotation says which.
func fillLimits(pod *corev1.Pod, by *corev1.LimitRange) {
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	for _, l := range by.Spec.Limits {
		if l.Type == corev1.LimitTypeContainer {
			maps.Copy(requests, l.DefaultRequest)
			maps.Copy(limits, l.Default)
		}
	}
	var notes []string
	fill := func(kind string, c *corev1.Container) {
		for _, part := range []struct {
			name     string
			from, to corev1.ResourceList
			set      func(corev1.ResourceList)
		}{
			{"request", requests, c.Resources.Requests, func(l corev1.ResourceList) { c.Resources.Requests = l }},
			{"limit", limits, c.Resources.Limits, func(l corev1.ResourceList) { c.Resources.Limits = l }},
		} {
			next, added := filled(part.to, part.from)
			if len(added) > 0 {
				part.set(next)
				notes = append(notes, fmt.Sprintf("%s %s for %s %s", strings.Join(added, ", "), part.name, kind, c.Name))
			}
		}
	}
	for i := range pod.Spec.Containers {
		fill("container", &pod.Spec.Containers[i])
	}
	for i := range pod.Spec.InitContainers {
		fill("init container", &pod.Spec.InitContainers[i])
	}
	if len(notes) == 0 {
		return
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations["kubernetes.io/limit-ranger"] = "LimitRanger plugin set: " + strings.Join(notes, "; ")
}

// filled returns amounts with those of another list that they lack, and the names of these.
func filled(to, from corev1.ResourceList) (out corev1.ResourceList, added []string) {
	out = maps.Clone(to)
	if out == nil {
		out = corev1.ResourceList{}
	}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if _, found := out[name]; !found {
			out[name] = from[name].DeepCopy()
			added = append(added, string(name))
		}
	}
	return out, added
}

// checkPodLimits returns why a Pod does not keep to the LimitRanges of its namespace.
func checkPodLimits(c *call) error {
	ranges, err := limitRanges(c)
	if err != nil || len(ranges) == 0 {
		return err
	}
	if err := c.readPods(); err != nil {
		return err
	}
	for _, r := range ranges {
		var errs []error
		for _, l := range r.Spec.Limits {
			switch l.Type {
			case corev1.LimitTypeContainer:
				for _, container := range slices.Concat(c.pod.Spec.Containers, c.pod.Spec.InitContainers) {
					errs = append(errs, checkAmounts(l, container.Resources.Requests, container.Resources.Limits)...)
				}
			case corev1.LimitTypePod:
				errs = append(errs, checkAmounts(l, podAmounts(&c.pod.Spec, requested), podAmounts(&c.pod.Spec, limited))...)
			}
		}
		if err := utilerrors.NewAggregate(errs); err != nil {
			return c.forbidden("%w", err)
		}
	}
	return nil
}

// checkClaimLimits returns why a claim does not keep to the LimitRanges of its namespace. A claim has requests and no limits.
func checkClaimLimits(c *call) error {
	ranges, err := limitRanges(c)
	if err != nil || len(ranges) == 0 {
		return err
	}
	claim, err := read[corev1.PersistentVolumeClaim](c.Object)
	if err != nil {
		return internal(err)
	}
	asked := claim.Spec.Resources.Requests
	for _, r := range ranges {
		var errs []error
		for _, l := range r.Spec.Limits {
			if l.Type != corev1.LimitTypePersistentVolumeClaim {
				continue
			}
			for name, amount := range sorted(l.Min) {
				errs = append(errs, atLeast(l.Type, name, amount, asked, nil))
			}
			for name, amount := range sorted(l.Max) {
				errs = append(errs, requestAtMost(l.Type, name, amount, asked))
			}
		}
		if err := utilerrors.NewAggregate(errs); err != nil {
			return c.forbidden("%w", err)
		}
	}
	return nil
}
