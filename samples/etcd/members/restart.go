// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package members

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/handwerk-dev/handwerk/dsl"
)

// containerBefore is an annotation of a Pod whose image was changed: the id of the container that ran before the
// change, a space, and that container's image. The patch that changes the image writes it, so no crash comes in
// between. It is how a later look knows whether the kubelet has restarted the container yet. The image in a
// container's status does not tell it: a runtime may report another name of the same image.
const containerBefore = "etcd.handwerk.dev/container-before"

// restart gives one member the wanted image, if it has another one and all other members are healthy. The kubelet
// then restarts its container in the same Pod, with its data.
func restart(ctx context.Context, s *session) error {
	if err := s.look(ctx); err != nil {
		return err
	}
	name := s.nextToRestart()
	if name == "" {
		return nil
	}
	err := s.changeImage(ctx, name)
	if apierrors.IsConflict(err) {
		return dsl.Waiting(fmt.Sprintf("Pod %s has changed since it was read", name), soon)
	}
	if err != nil {
		return fmt.Errorf("restarting member %s of %s: %w", name, s.Name, err)
	}
	s.Log.Info("restarting an etcd member", "member", name, "image", s.image(name))
	s.note(s.Status.Members)
	return nil
}

// nextToRestart returns the member to restart, or none. A member that is away is the only candidate, because no
// second one may be: a new image may mend it. If all are healthy, the leader comes last.
func (s *session) nextToRestart() (found string) {
	var away []memberStatus
	for _, m := range s.Status.Members {
		if !m.Healthy || m.Restarting {
			away = append(away, m)
		}
	}
	if len(away) > 0 {
		if len(away) == 1 && away[0].Outdated {
			return away[0].Name
		}
		return ""
	}
	for _, m := range s.Status.Members {
		if !m.Outdated {
			continue
		}
		if found = m.Name; !s.leads(m.Name) {
			break
		}
	}
	return found
}

// leads reports whether a member is the leader.
func (s *session) leads(name string) bool { return s.answers[name].ID == s.leader }

// changeImage changes the image of a member's Pod. The patch has the Pod's resourceVersion: if the Pod has changed
// since it was read, the container may be another one already, so the patch is refused and the next run looks again.
func (s *session) changeImage(ctx context.Context, name string) error {
	pod := s.pods[name].DeepCopy()
	before := containerID(pod) + " " + pod.Spec.Containers[0].Image
	if earlier := pod.Annotations[containerBefore]; earlier != "" && restarting(pod) {
		if id, _, _ := strings.Cut(earlier, " "); id == containerID(pod) {
			before = earlier // the container of the last change has not started, so this one replaces the same container
		}
	}
	pod.Spec.Containers[0].Image = s.image(name)
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pod.Spec)
	if err != nil {
		return dsl.Permanent(err)
	}
	patched, err := dsl.As[corev1.Pod](s.Client.MergePatch(ctx, podResource, s.Namespace, name, map[string]any{
		"metadata": map[string]any{
			"uid": string(pod.UID), "resourceVersion": pod.ResourceVersion,
			"annotations": map[string]any{containerBefore: before},
		},
		"spec": map[string]any{"containers": spec["containers"]}, // a merge patch replaces lists
	}))
	if err != nil {
		return err
	}
	s.pods[name] = patched
	return nil
}

// image returns the image that the first container of a member's Pod is to have; empty if the parameters have none.
func (s *session) image(name string) string {
	containers, _, err := unstructured.NestedSlice(s.params.Pod, "spec", "containers")
	if err != nil || len(containers) == 0 {
		return ""
	}
	first, _ := containers[0].(map[string]any)
	image, _ := first["image"].(string)
	return s.words(name).Replace(image)
}

// outdated reports whether a member's Pod has another image than the wanted one.
func (s *session) outdated(name string) bool {
	want := s.image(name)
	return s.alive(name) && want != "" && len(s.pods[name].Spec.Containers) > 0 && s.pods[name].Spec.Containers[0].Image != want
}

// restarting reports whether the kubelet has yet to start a container of the image that the Pod has now.
func restarting(pod *corev1.Pod) bool {
	before, changed := pod.Annotations[containerBefore]
	if !changed || len(pod.Spec.Containers) == 0 {
		return false
	}
	if seen := pod.Status.ObservedGeneration; seen != 0 && seen < pod.Generation { // kubelets before 1.34 do not report it
		return true
	}
	id, image, _ := strings.Cut(before, " ")
	now := containerID(pod)
	// Where a change was taken back in time, the kubelet leaves the container as it is.
	return now == "" || now == id && pod.Spec.Containers[0].Image != image
}

// containerID returns the id of a Pod's first container; empty if it has none yet.
func containerID(pod *corev1.Pod) string {
	for _, status := range pod.Status.ContainerStatuses {
		if len(pod.Spec.Containers) > 0 && status.Name == pod.Spec.Containers[0].Name {
			return status.ContainerID
		}
	}
	return ""
}
