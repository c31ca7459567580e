// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stepReplicaSet makes Pods that are missing, deletes those that are too many, and counts them.
func stepReplicaSet(l *loop, rs *appsv1.ReplicaSet, _ Rule) error {
	pods := listOf[*corev1.Pod](l.caches["Pod"].of(rs.UID))
	living := slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return !active(p) })
	var failed error
	if rs.DeletionTimestamp == nil {
		failed = l.scale(rs, living, int(replicasOf(rs.Spec.Replicas)))
		if failed == nil && l.moved {
			return l.again("ReplicaSet", rs)
		}
		pods = listOf[*corev1.Pod](l.caches["Pod"].of(rs.UID))
	}
	next := rs.Status.DeepCopy()
	c := l.count("ReplicaSet", rs, pods, rs.Spec.MinReadySeconds)
	next.Replicas, next.FullyLabeledReplicas, next.ReadyReplicas, next.AvailableReplicas = c.all, c.all, c.ready, c.available
	next.TerminatingReplicas = &c.ending
	next.ObservedGeneration = rs.Generation
	refused(next, failed, l.now())
	if err := l.status("ReplicaSet", rs, controllers, rs.Status, *next); err != nil {
		return err
	}
	return failed
}

// refused sets or removes the condition that says why Pods cannot be created.
func refused(s *appsv1.ReplicaSetStatus, err error, now metav1.Time) {
	at := slices.IndexFunc(s.Conditions, func(c appsv1.ReplicaSetCondition) bool { return c.Type == appsv1.ReplicaSetReplicaFailure })
	switch {
	case err != nil && at < 0:
		s.Conditions = append(s.Conditions, appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, LastTransitionTime: now,
			Reason: "FailedCreate", Message: err.Error(),
		})
	case err == nil && at >= 0:
		s.Conditions = slices.Delete(s.Conditions, at, at+1)
	}
}

// scale makes or deletes Pods of a ReplicaSet.
func (l *loop) scale(rs *appsv1.ReplicaSet, living []*corev1.Pod, want int) error {
	for range want - len(living) {
		pod := podFrom(&rs.Spec.Template, rs, "ReplicaSet")
		pod.GenerateName = rs.Name + "-"
		if err := l.createPod(rs, pod, replicaSetController); err != nil {
			return err
		}
	}
	slices.SortStableFunc(living, cheaper)
	for _, p := range living[:max(0, len(living)-want)] {
		if err := l.deletePod(rs, p, replicaSetController); err != nil {
			return err
		}
	}
	return nil
}

// createPod creates a Pod of an owner, and records an Event about it.
func (l *loop) createPod(owner object, p *corev1.Pod, component string) error {
	if err := l.create("Pod", p, controllers); err != nil {
		if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			l.events.warning(l.ctx, owner, component, "FailedCreate", "Error creating: %v", err)
		}
		return err
	}
	l.events.normal(l.ctx, owner, component, "SuccessfulCreate", "Created pod: %s", p.Name)
	return nil
}

// deletePod deletes a Pod of an owner, and records an Event about it.
func (l *loop) deletePod(owner object, p *corev1.Pod, component string) error {
	if err := l.delete("Pod", p, nil); err != nil {
		return err
	}
	l.events.normal(l.ctx, owner, component, "SuccessfulDelete", "Deleted pod: %s", p.Name)
	return nil
}

// cheaper sorts Pods so that those whose loss costs least come first.
func cheaper(a, b *corev1.Pod) int {
	rank := func(p *corev1.Pod) int {
		switch {
		case p.Spec.NodeName == "":
			return 0
		case p.Status.Phase != corev1.PodRunning:
			return 1
		case readySince(p) == nil:
			return 2
		}
		return 3
	}
	return cmp.Or(rank(a)-rank(b), b.CreationTimestamp.Compare(a.CreationTimestamp.Time))
}

// counts are the numbers of a workload's Pods.
type counts struct{ all, ready, available, ending int32 }

// count counts Pods, and queues their workload for when the next one is available.
func (l *loop) count(row string, owner metav1.Object, pods []*corev1.Pod, minReady int32) (out counts) {
	for _, p := range pods {
		switch since := readySince(p); {
		case p.DeletionTimestamp != nil:
			out.ending++
		case finished(p):
		case since == nil:
			out.all++
		default:
			out.all++
			out.ready++
			if left := l.until(since.Add(time.Duration(minReady) * time.Second)); left <= 0 {
				out.available++
			} else {
				l.later(row, owner, left)
			}
		}
	}
	return out
}

// podFrom returns a Pod that its owner makes from a template.
func podFrom(template *corev1.PodTemplateSpec, owner object, kind string) *corev1.Pod {
	t := template.DeepCopy()
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: owner.GetNamespace(), Labels: t.Labels, Annotations: t.Annotations, Finalizers: t.Finalizers,
		OwnerReferences: ownedBy(owner, kind),
	}, Spec: t.Spec}
}

// ownedBy returns the reference to the controller of an object.
func ownedBy(owner object, kind string) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{
		APIVersion: owner.GetObjectKind().GroupVersionKind().GroupVersion().String(), Kind: kind, Name: owner.GetName(), UID: owner.GetUID(),
		Controller: &yes, BlockOwnerDeletion: &yes,
	}}
}

// replicasOf returns the wanted number of replicas; without one it is 1.
func replicasOf(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}
