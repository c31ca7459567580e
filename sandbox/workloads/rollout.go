// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The numbers of a ReplicaSet that a rollout adds up.
func wanted(rs *appsv1.ReplicaSet) int32    { return replicasOf(rs.Spec.Replicas) }
func available(rs *appsv1.ReplicaSet) int32 { return rs.Status.AvailableReplicas }
func ready(rs *appsv1.ReplicaSet) int32     { return rs.Status.ReadyReplicas }
func existing(rs *appsv1.ReplicaSet) int32  { return rs.Status.Replicas }

func sum(list []*appsv1.ReplicaSet, of func(*appsv1.ReplicaSet) int32) (out int32) {
	for _, rs := range list {
		out += of(rs)
	}
	return out
}

// all are all ReplicaSets, the new one last.
func (r rollout) all() []*appsv1.ReplicaSet {
	if r.next == nil {
		return r.old
	}
	return append(slices.Clip(r.old), r.next)
}

// usual is the share of Pods that a rolling update may add or take away if the Deployment does not say.
const usual = "25%"

// surge is how many Pods a rolling update may add.
func (r rollout) surge() int32 {
	surge, _ := r.bounds()
	return surge
}

// bounds are how many Pods a rolling update may add, and how many may be missing.
func (r rollout) bounds() (surge, missing int32) {
	if r.d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return 0, 0
	}
	var up, down *intstr.IntOrString
	if rolling := r.d.Spec.Strategy.RollingUpdate; rolling != nil {
		up, down = rolling.MaxSurge, rolling.MaxUnavailable
	}
	want := int(replicasOf(r.d.Spec.Replicas))
	surge, missing = share(up, want, true), share(down, want, false)
	if surge == 0 && missing == 0 {
		missing = 1 // nothing would ever move
	}
	return surge, min(missing, int32(want))
}

// share is a number or a percentage of a whole.
func share(n *intstr.IntOrString, of int, up bool) int32 {
	part := intstr.ValueOrDefault(n, intstr.FromString(usual))
	out, err := intstr.GetScaledValueFromIntOrPercent(part, of, up)
	if err != nil {
		return 0
	}
	return int32(out)
}

// grow gives the new ReplicaSet more Pods as far as the surge allows, or takes away what is no longer wanted.
func (r rollout) grow() error {
	want, has := replicasOf(r.d.Spec.Replicas), wanted(r.next)
	n := has
	if room := want + r.surge() - sum(r.all(), wanted); has < want && room > 0 {
		n = min(want, has+room)
	} else if has > want {
		n = want
	}
	return r.size(r.next, n)
}

// shrink takes Pods away from old ReplicaSets: first those that are not available, then as many as may be missing.
func (r rollout) shrink() error {
	if sum(r.old, wanted) == 0 {
		return nil
	}
	_, missing := r.bounds()
	least := replicasOf(r.d.Spec.Replicas) - missing
	spare := sum(r.all(), wanted) - least - (wanted(r.next) - available(r.next))
	for _, rs := range r.old {
		sick := min(wanted(rs)-available(rs), spare)
		if sick <= 0 {
			continue
		}
		return r.size(rs, wanted(rs)-sick)
	}
	spare = min(spare, sum(r.all(), available)-least)
	for _, rs := range r.old {
		if n := min(wanted(rs), spare); n > 0 {
			return r.size(rs, wanted(rs)-n)
		}
	}
	return nil
}
