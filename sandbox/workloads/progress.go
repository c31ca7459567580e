// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// usualDeadline is the progress deadline of a Deployment that does not say one.
const usualDeadline = 600 * time.Second

// report writes the status of a Deployment and the number of its revision.
func (r rollout) report() error {
	d, next := r.d, r.d.Status.DeepCopy()
	all := r.all()
	next.ObservedGeneration = d.Generation
	next.Replicas, next.ReadyReplicas, next.AvailableReplicas = sum(all, existing), sum(all, ready), sum(all, available)
	next.UnavailableReplicas = max(0, sum(all, wanted)-next.AvailableReplicas)
	next.UpdatedReplicas = 0
	ending := sum(all, func(rs *appsv1.ReplicaSet) int32 {
		if rs.Status.TerminatingReplicas == nil {
			return 0
		}
		return *rs.Status.TerminatingReplicas
	})
	next.TerminatingReplicas = &ending
	if r.next != nil {
		next.UpdatedReplicas = existing(r.next)
	}
	r.setAvailable(next)
	r.setProgressing(next)
	r.setFailure(next)
	return r.write(next)
}

// write writes the status, and with it the revision, as the controller of a cluster does.
func (r rollout) write(next *appsv1.DeploymentStatus) error {
	revision := r.d.Annotations[revisionAnnotation]
	if r.next != nil {
		revision = strconv.FormatInt(revisionOf(r.next), 10)
	}
	if revision == r.d.Annotations[revisionAnnotation] {
		return r.status("Deployment", r.d, controllers, r.d.Status, *next)
	}
	before, err := treeOf(r.d.Status)
	if err != nil {
		return err
	}
	after, err := treeOf(next)
	if err != nil {
		return err
	}
	return r.patch("Deployment", r.d, controllers, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{revisionAnnotation: revision}}, "status": difference(before, after),
	}, "status")
}

func (r rollout) setAvailable(s *appsv1.DeploymentStatus) {
	_, missing := r.bounds()
	is, reason, message := corev1.ConditionFalse, "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
	if s.AvailableReplicas >= replicasOf(r.d.Spec.Replicas)-missing {
		is, reason, message = corev1.ConditionTrue, "MinimumReplicasAvailable", "Deployment has minimum availability."
	}
	setDeploymentCondition(s, r.now(), appsv1.DeploymentAvailable, is, reason, message, false)
}

// setProgressing says how far the rollout is.
func (r rollout) setProgressing(s *appsv1.DeploymentStatus) {
	old := deploymentCondition(&r.d.Status, appsv1.DeploymentProgressing)
	set := func(is corev1.ConditionStatus, reason, message string, touch bool) {
		setDeploymentCondition(s, r.now(), appsv1.DeploymentProgressing, is, reason, message, touch)
	}
	fresh, moved := r.isFresh(), r.hasMoved(s)
	switch {
	case r.d.Spec.Paused:
		set(corev1.ConditionUnknown, "DeploymentPaused", "Deployment is paused", false)
	case r.isComplete(s):
		set(corev1.ConditionTrue, "NewReplicaSetAvailable", r.subject()+" has successfully progressed.", false)
	case old != nil && old.Reason == "DeploymentPaused":
		set(corev1.ConditionUnknown, "DeploymentResumed", "Deployment is resumed", true)
	case r.next != nil && !moved && (old == nil || fresh):
		set(corev1.ConditionTrue, "NewReplicaSetCreated", fmt.Sprintf("Created new replica set %q", r.next.Name), true)
	case moved || fresh || old == nil:
		set(corev1.ConditionTrue, "ReplicaSetUpdated", r.subject()+" is progressing.", true)
	case old.Reason == "NewReplicaSetAvailable" && s.UpdatedReplicas == s.Replicas:
		// It was complete, and stays so when it is scaled or Pods fail.
	default:
		r.setTimedOut(s, *old)
	}
}

// setTimedOut says that the rollout has not moved for too long, or looks again when it will have been so long.
func (r rollout) setTimedOut(s *appsv1.DeploymentStatus, old appsv1.DeploymentCondition) {
	deadline := usualDeadline
	if seconds := r.d.Spec.ProgressDeadlineSeconds; seconds != nil {
		deadline = time.Duration(*seconds) * time.Second
	}
	if left := r.until(old.LastUpdateTime.Add(deadline)); left > 0 {
		r.later("Deployment", r.d, left)
		return
	}
	setDeploymentCondition(s, r.now(), appsv1.DeploymentProgressing, corev1.ConditionFalse, "ProgressDeadlineExceeded", r.subject()+" has timed out progressing.", false)
}

// subject is what progresses, as the controller of a cluster calls it.
func (r rollout) subject() string {
	if r.next != nil {
		return fmt.Sprintf("ReplicaSet %q", r.next.Name)
	}
	return fmt.Sprintf("Deployment %q", r.d.Name)
}

// isFresh reports whether this revision has no status yet.
func (r rollout) isFresh() bool {
	return r.d.Status.ObservedGeneration == 0 ||
		r.next != nil && r.d.Annotations[revisionAnnotation] != strconv.FormatInt(revisionOf(r.next), 10)
}

func (r rollout) isComplete(s *appsv1.DeploymentStatus) bool {
	want := replicasOf(r.d.Spec.Replicas)
	return r.next != nil && s.UpdatedReplicas == want && s.Replicas == want && s.AvailableReplicas >= want
}

// hasMoved reports whether the rollout is further than it was.
func (r rollout) hasMoved(s *appsv1.DeploymentStatus) bool {
	old := r.d.Status
	return s.UpdatedReplicas != old.UpdatedReplicas || s.Replicas-s.UpdatedReplicas < old.Replicas-old.UpdatedReplicas ||
		s.ReadyReplicas > old.ReadyReplicas || s.AvailableReplicas > old.AvailableReplicas
}

// setFailure takes over why a ReplicaSet cannot create Pods.
func (r rollout) setFailure(s *appsv1.DeploymentStatus) {
	for _, rs := range r.all() {
		for _, c := range rs.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure {
				setDeploymentCondition(s, r.now(), appsv1.DeploymentReplicaFailure, c.Status, c.Reason, c.Message, false)
				return
			}
		}
	}
	for i, c := range s.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure {
			s.Conditions = append(s.Conditions[:i], s.Conditions[i+1:]...)
			return
		}
	}
}

func deploymentCondition(s *appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == kind {
			return &s.Conditions[i]
		}
	}
	return nil
}

// setDeploymentCondition sets a condition. Touch says that it is confirmed even if it is as it was.
func setDeploymentCondition(
	s *appsv1.DeploymentStatus, now metav1.Time, kind appsv1.DeploymentConditionType, is corev1.ConditionStatus, reason, message string, touch bool,
) {
	c := appsv1.DeploymentCondition{Type: kind, Status: is, Reason: reason, Message: message, LastUpdateTime: now, LastTransitionTime: now}
	old := deploymentCondition(s, kind)
	switch {
	case old == nil:
		s.Conditions = append(s.Conditions, c)
	case !touch && old.Status == is && old.Reason == reason && old.Message == message:
	default:
		if old.Status == is {
			c.LastTransitionTime = old.LastTransitionTime
		}
		*old = c
	}
}
