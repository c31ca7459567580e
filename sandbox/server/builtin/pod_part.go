// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkPodPart checks a Pod after a write of the part of its spec that a subresource writes.
func checkPodPart(f *findings, part string, next, old *corev1.Pod) {
	checkPodSpec(f, spec(), &next.Spec)
	if part == "resize" {
		checkResize(f, next, old)
		return
	}
	path := spec().Child("ephemeralContainers")
	for _, was := range old.Spec.EphemeralContainers {
		is := ephemeralContainer(next, was.Name)
		switch {
		case is == nil:
			f.forbidden(path, fmt.Sprintf("existing ephemeral containers %q may not be removed\n", was.Name))
		case !equality.Semantic.DeepEqual(was, *is):
			f.forbidden(path, fmt.Sprintf("existing ephemeral containers %q may not be changed\n%v", was.Name, diff.Diff(inside(was), inside(*is))))
		}
	}
}

func ephemeralContainer(p *corev1.Pod, name string) *corev1.EphemeralContainer {
	for i := range p.Spec.EphemeralContainers {
		if p.Spec.EphemeralContainers[i].Name == name {
			return &p.Spec.EphemeralContainers[i]
		}
	}
	return nil
}

// checkEphemeralContainers checks the ephemeral containers of a Pod.
func checkEphemeralContainers(f *findings, path *field.Path, s *corev1.PodSpec, volumes map[string]bool) {
	others, all := map[string]bool{}, map[string]bool{}
	for _, list := range [][]corev1.Container{s.Containers, s.InitContainers} {
		for _, c := range list {
			others[c.Name], all[c.Name] = true, true
		}
	}
	for i := range s.EphemeralContainers {
		at, e := path.Index(i), &s.EphemeralContainers[i]
		c := (*corev1.Container)(&e.EphemeralContainerCommon)
		checkContainer(f, at, c, volumes)
		if all[c.Name] {
			f.duplicate(at.Child("name"), c.Name)
		}
		all[c.Name] = true
		if target := e.TargetContainerName; target != "" && !others[target] {
			f.list = append(f.list, field.NotFound(at.Child("targetContainerName"), target))
		}
		checkEphemeralFields(f, at, c)
	}
}

// checkEphemeralFields checks that an ephemeral container has no fields of those that run for good.
func checkEphemeralFields(f *findings, path *field.Path, c *corev1.Container) {
	const why = "cannot be set for an Ephemeral Container"
	for _, each := range []struct {
		name string
		set  bool
	}{
		{"ports", c.Ports != nil}, {"resources", !equality.Semantic.DeepEqual(c.Resources, corev1.ResourceRequirements{})},
		{"resizePolicy", c.ResizePolicy != nil}, {"restartPolicy", c.RestartPolicy != nil}, {"restartPolicyRules", c.RestartPolicyRules != nil},
		{"livenessProbe", c.LivenessProbe != nil}, {"readinessProbe", c.ReadinessProbe != nil}, {"startupProbe", c.StartupProbe != nil},
		{"lifecycle", c.Lifecycle != nil},
	} {
		if each.set {
			f.forbidden(path.Child(each.name), why)
		}
	}
	for i, m := range c.VolumeMounts {
		if m.SubPath != "" {
			f.forbidden(path.Child("volumeMounts").Index(i).Child("subPath"), why)
		}
		if m.SubPathExpr != "" {
			f.forbidden(path.Child("volumeMounts").Index(i).Child("subPathExpr"), why)
		}
	}
}

// checkResize checks what changes in the resources of a Pod's containers.
func checkResize(f *findings, next, old *corev1.Pod) {
	if quality(&old.Spec) != quality(&next.Spec) {
		f.invalid(spec(), next.Status.QOSClass, "Pod QOS Class may not change as a result of resizing")
	}
	for _, each := range []struct {
		name      string
		next, old []corev1.Container
	}{{"containers", next.Spec.Containers, old.Spec.Containers}, {"initContainers", next.Spec.InitContainers, old.Spec.InitContainers}} {
		path := spec().Child(each.name)
		if len(each.next) != len(each.old) {
			f.forbidden(path, each.name+" may not be added or removed on resize")
			continue
		}
		for i := range each.old {
			if each.next[i].Name != each.old[i].Name {
				f.forbidden(path.Index(i).Child("name"), each.name+" may not be renamed or reordered on resize")
				continue
			}
			checkContainerResize(f, path.Index(i), each.next[i].Resources, each.old[i].Resources)
		}
	}
}

// checkContainerResize checks that only amounts of CPU and memory change, and that none is gone.
func checkContainerResize(f *findings, path *field.Path, next, old corev1.ResourceRequirements) {
	for _, each := range []struct {
		name, word string
		next, old  corev1.ResourceList
	}{{"requests", "resource requests", next.Requests, old.Requests}, {"limits", "resource limits", next.Limits, old.Limits}} {
		for name := range each.old {
			if _, found := each.next[name]; !found {
				f.forbidden(path.Child("resources", each.name), each.word+" cannot be removed")
				break
			}
		}
	}
	if !equality.Semantic.DeepEqual(fixedAmounts(next.Requests), fixedAmounts(old.Requests)) || !equality.Semantic.DeepEqual(fixedAmounts(next.Limits), fixedAmounts(old.Limits)) {
		f.forbidden(spec(), "only cpu and memory resources are mutable")
	}
}

// fixedAmounts returns the amounts that cannot change while a Pod runs.
func fixedAmounts(list corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, amount := range list {
		if name != corev1.ResourceCPU && name != corev1.ResourceMemory {
			out[name] = amount
		}
	}
	return out
}
