// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// tally is a number in the status of a workload. An optional one that is absent is left out.
type tally struct {
	name   string
	number int64
}

// checkCounts checks that numbers of a status are not negative.
func checkCounts(f *findings, counts ...tally) {
	for _, c := range counts {
		f.notNegative(field.NewPath("status", c.name), c.number)
	}
}

// checkParts checks that no part of the replicas is greater than all.
func checkParts(f *findings, all int32, parts ...tally) {
	for _, part := range parts {
		if part.number > int64(all) {
			f.invalid(field.NewPath("status", part.name), part.number, "cannot be greater than status.replicas")
		}
	}
}

// checkAvailable checks that no more replicas are available than ready. The words name the field of the ready ones.
func checkAvailable(f *findings, available, ready int32, name string) {
	if available > ready {
		f.invalid(field.NewPath("status", "availableReplicas"), available, "cannot be greater than "+name)
	}
}

// optional returns the count of a field that may be absent.
func optional(name string, number *int32) []tally {
	if number == nil {
		return nil
	}
	return []tally{{name, int64(*number)}}
}

// checkCollisions checks that the number of collisions of names does not become less.
func checkCollisions(f *findings, next, old *int32) {
	is := int32(0)
	if next != nil {
		is = *next
	}
	if old != nil && is < *old {
		f.invalid(field.NewPath("status", "collisionCount"), is, "cannot be decremented")
	}
}

func checkDeploymentStatus(f *findings, next, old *appsv1.Deployment) {
	s := &next.Status
	updated := tally{"updatedReplicas", int64(s.UpdatedReplicas)}
	ready, available := tally{"readyReplicas", int64(s.ReadyReplicas)}, tally{"availableReplicas", int64(s.AvailableReplicas)}
	checkCounts(f, tally{"observedGeneration", s.ObservedGeneration}, tally{"replicas", int64(s.Replicas)}, updated, ready, available,
		tally{"unavailableReplicas", int64(s.UnavailableReplicas)})
	checkCounts(f, optional("terminatingReplicas", s.TerminatingReplicas)...)
	checkCounts(f, optional("collisionCount", s.CollisionCount)...)
	checkParts(f, s.Replicas, updated, ready, available)
	checkAvailable(f, s.AvailableReplicas, s.ReadyReplicas, "readyReplicas")
	checkCollisions(f, s.CollisionCount, old.Status.CollisionCount)
}

func checkReplicaSetStatus(f *findings, next, _ *appsv1.ReplicaSet) {
	s := &next.Status
	labeled := tally{"fullyLabeledReplicas", int64(s.FullyLabeledReplicas)}
	ready, available := tally{"readyReplicas", int64(s.ReadyReplicas)}, tally{"availableReplicas", int64(s.AvailableReplicas)}
	checkCounts(f, tally{"replicas", int64(s.Replicas)}, labeled, ready, available, tally{"observedGeneration", s.ObservedGeneration})
	checkCounts(f, optional("terminatingReplicas", s.TerminatingReplicas)...)
	checkParts(f, s.Replicas, labeled, ready, available)
	checkAvailable(f, s.AvailableReplicas, s.ReadyReplicas, "readyReplicas")
}

// checkControllerStatus checks the status of a ReplicationController as that of a ReplicaSet.
func checkControllerStatus(f *findings, next, _ *corev1.ReplicationController) {
	s := next.Status
	checkReplicaSetStatus(f, &appsv1.ReplicaSet{Status: appsv1.ReplicaSetStatus{
		Replicas: s.Replicas, FullyLabeledReplicas: s.FullyLabeledReplicas, ReadyReplicas: s.ReadyReplicas, AvailableReplicas: s.AvailableReplicas,
		ObservedGeneration: s.ObservedGeneration,
	}}, nil)
}

func checkSetStatus(f *findings, next, old *appsv1.StatefulSet) {
	s := &next.Status
	ready, available := tally{"readyReplicas", int64(s.ReadyReplicas)}, tally{"availableReplicas", int64(s.AvailableReplicas)}
	current, updated := tally{"currentReplicas", int64(s.CurrentReplicas)}, tally{"updatedReplicas", int64(s.UpdatedReplicas)}
	checkCounts(f, tally{"replicas", int64(s.Replicas)}, ready, current, updated, available, tally{"observedGeneration", s.ObservedGeneration})
	checkCounts(f, optional("collisionCount", s.CollisionCount)...)
	checkParts(f, s.Replicas, ready, current, updated, available)
	checkAvailable(f, s.AvailableReplicas, s.ReadyReplicas, "status.readyReplicas")
	checkCollisions(f, s.CollisionCount, old.Status.CollisionCount)
}

func checkDaemonSetStatus(f *findings, next, old *appsv1.DaemonSet) {
	s := &next.Status
	checkCounts(f,
		tally{"currentNumberScheduled", int64(s.CurrentNumberScheduled)}, tally{"numberMisscheduled", int64(s.NumberMisscheduled)},
		tally{"desiredNumberScheduled", int64(s.DesiredNumberScheduled)}, tally{"numberReady", int64(s.NumberReady)},
		tally{"observedGeneration", s.ObservedGeneration}, tally{"updatedNumberScheduled", int64(s.UpdatedNumberScheduled)},
		tally{"numberAvailable", int64(s.NumberAvailable)}, tally{"numberUnavailable", int64(s.NumberUnavailable)})
	checkCounts(f, optional("collisionCount", s.CollisionCount)...)
	checkCollisions(f, s.CollisionCount, old.Status.CollisionCount)
}
