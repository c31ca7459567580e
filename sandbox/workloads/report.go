// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// report writes what a Pod's containers are like into its status, and the conditions that follow from it.
func report(p *corev1.Pod, s *corev1.PodStatus, f fate, now metav1.Time) {
	initial := fate{phase: corev1.PodSucceeded, ready: true}
	if f.waiting == creating {
		initial = fate{phase: corev1.PodPending, waiting: "PodInitializing"}
	}
	s.ContainerStatuses = statusesOf(p, p.Spec.Containers, s.ContainerStatuses, f, f, now)
	s.InitContainerStatuses = statusesOf(p, p.Spec.InitContainers, s.InitContainerStatuses, initial, f, now)
	s.EphemeralContainerStatuses = statusesOf(p, ephemeral(p), s.EphemeralContainerStatuses, f, f, now)
	reason, message := "", ""
	switch {
	case f.phase == corev1.PodSucceeded:
		reason = "PodCompleted"
	case f.phase == corev1.PodFailed:
		reason = "PodFailed"
	case !f.ready:
		reason, message = "ContainersNotReady", fmt.Sprintf("containers with unready status: [%s]", strings.Join(namesOf(p.Spec.Containers), " "))
	}
	ready := truth(f.ready)
	setCondition(s, now, "PodReadyToStartContainers", truth(f.phase == corev1.PodRunning || f.waiting != "" && f.waiting != creating), "", "")
	done, initialized := "", corev1.ConditionTrue
	if f.phase == corev1.PodSucceeded {
		done = "PodCompleted"
	} else if initial.waiting != "" && len(p.Spec.InitContainers) > 0 {
		done, initialized = "ContainersNotInitialized", corev1.ConditionFalse
	}
	setCondition(s, now, corev1.PodInitialized, initialized, done, "")
	setCondition(s, now, corev1.ContainersReady, ready, reason, message)
	if f.ready && !gatesOpen(p, s) {
		ready, reason, message = corev1.ConditionFalse, "ReadinessGatesNotReady", "the status of a readiness gate is not \"True\""
	}
	setCondition(s, now, corev1.PodReady, ready, reason, message)
}

// ephemeral returns the ephemeral containers of a Pod. They run as long as the others.
func ephemeral(p *corev1.Pod) (out []corev1.Container) {
	for _, e := range p.Spec.EphemeralContainers {
		out = append(out, corev1.Container(e.EphemeralContainerCommon))
	}
	return out
}

// gatesOpen reports whether all readiness gates of a Pod are true.
func gatesOpen(p *corev1.Pod, s *corev1.PodStatus) bool {
	return !slices.ContainsFunc(p.Spec.ReadinessGates, func(gate corev1.PodReadinessGate) bool {
		return !slices.ContainsFunc(s.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		})
	})
}

// statusesOf returns the statuses of containers. Those whose state is as it was keep their times. An init container
// that is always restarted has the fate of the Pod.
func statusesOf(p *corev1.Pod, containers []corev1.Container, old []corev1.ContainerStatus, f, pod fate, now metav1.Time) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, c := range containers {
		status := statusOf(p, c, f, now)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			status = statusOf(p, c, pod, now)
		}
		for _, before := range old {
			if before.Name == c.Name && alike(before, status) {
				status.State, status.LastTerminationState = before.State, before.LastTerminationState
			}
		}
		out = append(out, status)
	}
	return out
}

// alike reports whether a container is as it was, but for times.
func alike(a, b corev1.ContainerStatus) bool {
	timeless := func(s corev1.ContainerStatus) corev1.ContainerStatus {
		s = *s.DeepCopy()
		if s.State.Running != nil {
			s.State.Running.StartedAt = metav1.Time{}
		}
		for _, ended := range []*corev1.ContainerStateTerminated{s.State.Terminated, s.LastTerminationState.Terminated} {
			if ended != nil {
				ended.StartedAt, ended.FinishedAt = metav1.Time{}, metav1.Time{}
			}
		}
		return s
	}
	return equality.Semantic.DeepEqual(timeless(a), timeless(b))
}

func statusOf(p *corev1.Pod, c corev1.Container, f fate, now metav1.Time) corev1.ContainerStatus {
	started := f.phase == corev1.PodRunning && f.waiting == ""
	out := corev1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: f.ready, Started: &started}
	if f.phase != corev1.PodPending {
		out.ContainerID = fmt.Sprintf("containerd://%s-%s", p.UID, c.Name)
		out.ImageID = c.Image
	}
	end := corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now, ContainerID: out.ContainerID}
	if f.crashed {
		end.Reason, end.ExitCode = "Error", 1
	}
	switch {
	case f.waiting != "":
		out.State.Waiting = &corev1.ContainerStateWaiting{Reason: f.waiting, Message: messageOf(p, c, f.waiting)}
		if f.crashed {
			out.LastTerminationState.Terminated, out.RestartCount = &end, 1
		}
	case f.phase == corev1.PodRunning:
		out.State.Running = &corev1.ContainerStateRunning{StartedAt: now}
	default:
		out.State.Terminated = &end
	}
	return out
}

func messageOf(p *corev1.Pod, c corev1.Container, reason string) string {
	switch reason {
	case "CrashLoopBackOff":
		return fmt.Sprintf("back-off 10s restarting failed container=%s pod=%s_%s(%s)", c.Name, p.Name, p.Namespace, p.UID)
	case "ImagePullBackOff":
		return fmt.Sprintf("Back-off pulling image %q", c.Image)
	}
	return ""
}

func namesOf(list []corev1.Container) (out []string) {
	for _, c := range list {
		out = append(out, c.Name)
	}
	return out
}

func truth(yes bool) corev1.ConditionStatus {
	if yes {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}

// setCondition sets a condition of a Pod. Its time changes with its status alone.
func setCondition(s *corev1.PodStatus, now metav1.Time, kind corev1.PodConditionType, is corev1.ConditionStatus, reason, message string) {
	c := corev1.PodCondition{Type: kind, Status: is, Reason: reason, Message: message, LastTransitionTime: now, ObservedGeneration: s.ObservedGeneration}
	for i, old := range s.Conditions {
		if old.Type != kind {
			continue
		}
		if c.LastProbeTime = old.LastProbeTime; old.Status == is {
			c.LastTransitionTime = old.LastTransitionTime
		}
		s.Conditions[i] = c
		return
	}
	s.Conditions = append(s.Conditions, c)
}
