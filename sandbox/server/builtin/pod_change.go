// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/diff"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// changeable are the fields of a Pod's spec that can change, as the API server names them.
const changeable = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`," +
	"`spec.tolerations` (only additions to existing tolerations)," +
	"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"

// checkPodChange checks what changes in the spec of a Pod.
func checkPodChange(f *findings, next, old *corev1.Pod) {
	for _, each := range []struct {
		name      string
		next, old []corev1.Container
	}{{"containers", next.Spec.Containers, old.Spec.Containers}, {"initContainers", next.Spec.InitContainers, old.Spec.InitContainers}} {
		if len(each.next) != len(each.old) {
			f.forbidden(spec().Child(each.name), "pod updates may not add or remove containers")
			return
		}
		for i, c := range each.next {
			if strings.TrimSpace(c.Image) != c.Image {
				f.invalid(spec().Child(each.name).Index(i).Child("image"), c.Image, "must not have leading or trailing whitespace")
			}
		}
	}
	if !checkDeadline(f, next.Spec.ActiveDeadlineSeconds, old.Spec.ActiveDeadlineSeconds) {
		return // a real server looks no further
	}
	checkAddedTolerations(f, next.Spec.Tolerations, old.Spec.Tolerations)
	checkGates(f, next.Spec.SchedulingGates, old.Spec.SchedulingGates)
	if equality.Semantic.DeepEqual(next.Spec, old.Spec) {
		return
	}
	rest := withOldFields(next.Spec.DeepCopy(), &old.Spec)
	if !equality.Semantic.DeepEqual(*rest, old.Spec) {
		f.forbidden(spec(), fmt.Sprintf("pod updates may not change fields other than %s\n%v", changeable, diff.Diff(inside(old.Spec), inside(*rest))))
	}
}

// withOldFields returns a spec with the old values of the fields that can change. A binding changes the node.
func withOldFields(s, old *corev1.PodSpec) *corev1.PodSpec {
	for i := range s.Containers {
		s.Containers[i].Image = old.Containers[i].Image
	}
	for i := range s.InitContainers {
		s.InitContainers[i].Image = old.InitContainers[i].Image
	}
	s.ActiveDeadlineSeconds, s.Tolerations, s.SchedulingGates = old.ActiveDeadlineSeconds, old.Tolerations, old.SchedulingGates
	if len(old.SchedulingGates) > 0 {
		s.NodeSelector, s.Affinity = old.NodeSelector, old.Affinity
	}
	return s
}

// checkDeadline checks that a deadline comes no later than before. It reports whether the rest of the Pod is to be checked.
func checkDeadline(f *findings, next, old *int64) bool {
	path := spec().Child("activeDeadlineSeconds")
	switch {
	case next == nil && old == nil:
	case next == nil:
		f.invalid(path, next, "must not update from a positive integer to nil value")
	case *next < 0 || *next > math.MaxInt32:
		f.invalid(path, *next, utilvalidation.InclusiveRangeError(0, math.MaxInt32))
		return false
	case old != nil && *old < *next:
		f.invalid(path, *next, "must be less than or equal to previous value")
		return false
	}
	return true
}

// checkAddedTolerations checks that no toleration is gone; only its time can change.
func checkAddedTolerations(f *findings, next, old []corev1.Toleration) {
	for _, o := range old {
		if !slices.ContainsFunc(next, func(n corev1.Toleration) bool {
			n.TolerationSeconds = o.TolerationSeconds
			return equality.Semantic.DeepEqual(n, o)
		}) {
			f.forbidden(spec().Child("tolerations"), "existing toleration can not be modified except its tolerationSeconds")
			return
		}
	}
}

// checkGates checks that no scheduling gate is added.
func checkGates(f *findings, next, old []corev1.PodSchedulingGate) {
	for i, gate := range next {
		if !slices.Contains(old, gate) {
			f.list = append(f.list, field.Forbidden(spec().Child("schedulingGates").Index(i),
				"only deletion is allowed, but found new scheduling gate '"+gate.Name+"'"))
		}
	}
}
