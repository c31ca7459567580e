// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The annotations by which kubectl and the controllers know revisions.
const (
	revisionAnnotation = "deployment.kubernetes.io/revision"
	historyAnnotation  = "deployment.kubernetes.io/revision-history"
	desiredAnnotation  = "deployment.kubernetes.io/desired-replicas"
	maxAnnotation      = "deployment.kubernetes.io/max-replicas"
)

// stepDeployment rolls a Deployment out by its ReplicaSets.
func stepDeployment(l *loop, d *appsv1.Deployment, _ Rule) error {
	r := l.rolloutOf(d)
	if d.DeletionTimestamp == nil {
		if err := r.advance(); err != nil {
			return err
		}
		if l.moved {
			return l.again("Deployment", d)
		}
	}
	return r.report()
}

// rollout is a Deployment with its ReplicaSets, old ones in the order of their creation.
type rollout struct {
	*loop
	d    *appsv1.Deployment
	next *appsv1.ReplicaSet // the one with the template of the Deployment; nil if there is none
	old  []*appsv1.ReplicaSet
}

func (l *loop) rolloutOf(d *appsv1.Deployment) rollout {
	out := rollout{loop: l, d: d}
	for _, rs := range listOf[*appsv1.ReplicaSet](l.caches["ReplicaSet"].of(d.UID)) {
		if out.next == nil && equality.Semantic.DeepEqual(unhashed(rs.Spec.Template, appsv1.DefaultDeploymentUniqueLabelKey), unhashed(d.Spec.Template, appsv1.DefaultDeploymentUniqueLabelKey)) {
			out.next = rs
		} else if rs.DeletionTimestamp == nil {
			out.old = append(out.old, rs)
		}
	}
	return out
}

// unhashed returns a template without the label that a controller adds.
func unhashed(t corev1.PodTemplateSpec, label string) *corev1.PodTemplateSpec {
	out := t.DeepCopy()
	if delete(out.Labels, label); len(out.Labels) == 0 {
		out.Labels = nil
	}
	return out
}

// advance brings the ReplicaSets a step further.
func (r rollout) advance() error {
	switch {
	case r.d.Spec.Paused:
		return r.keepUp()
	case r.d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType:
		return r.recreate()
	}
	begin := func() error { return r.renew(r.room()) }
	for _, part := range []func() error{begin, r.grow, r.shrink} {
		if err := part(); err != nil || r.moved {
			return err // the next step sees what has become of it
		}
	}
	return r.forget()
}

// room is how many Pods a new ReplicaSet may begin with.
func (r rollout) room() int32 {
	want := replicasOf(r.d.Spec.Replicas)
	return max(0, min(want, want+r.surge()-sum(r.old, wanted)))
}

// keepUp gives the newest ReplicaSet of a paused Deployment the replicas that are wanted.
func (r rollout) keepUp() error {
	at := r.next
	for _, rs := range r.old {
		if at == nil || replicasOf(at.Spec.Replicas) == 0 && replicasOf(rs.Spec.Replicas) > 0 {
			at = rs
		}
	}
	if at == nil {
		return nil
	}
	others := sum(r.all(), wanted) - replicasOf(at.Spec.Replicas)
	return r.size(at, max(0, replicasOf(r.d.Spec.Replicas)-others))
}

// recreate makes the new ReplicaSet as soon as all Pods of the old ones are gone.
func (r rollout) recreate() error {
	for _, rs := range r.old {
		if err := r.size(rs, 0); err != nil {
			return err
		}
	}
	if r.moved {
		return nil // the next step sees what has become of it
	}
	for _, rs := range r.old {
		for _, p := range listOf[*corev1.Pod](r.caches["Pod"].of(rs.UID)) {
			if !finished(p) {
				return nil // its ReplicaSet changes when it is gone, and that is seen
			}
		}
	}
	if err := r.renew(replicasOf(r.d.Spec.Replicas)); err != nil || r.moved {
		return err
	}
	if err := r.size(r.next, replicasOf(r.d.Spec.Replicas)); err != nil {
		return err
	}
	return r.forget()
}

// renew makes sure that there is a ReplicaSet of the current template, with the highest revision.
func (r rollout) renew(replicas int32) error {
	last := int64(0)
	for _, rs := range r.old {
		last = max(last, revisionOf(rs))
	}
	if r.next == nil {
		return r.createNext(last+1, replicas)
	}
	revision := revisionOf(r.next)
	if revision <= last {
		revision = last + 1
	}
	annotations := r.annotations(revision)
	if was := r.next.Annotations[revisionAnnotation]; was != "" && was != annotations[revisionAnnotation] {
		annotations[historyAnnotation] = lengthened(r.next.Annotations[historyAnnotation], was)
	}
	delete(annotations, desiredAnnotation) // they go with the size
	delete(annotations, maxAnnotation)
	maps.DeleteFunc(annotations, func(name, value string) bool { return r.next.Annotations[name] == value })
	if len(annotations) == 0 && r.next.Spec.MinReadySeconds == r.d.Spec.MinReadySeconds {
		return nil
	}
	return r.patch("ReplicaSet", r.next, controllers, map[string]any{
		"metadata": map[string]any{"annotations": annotations}, "spec": map[string]any{"minReadySeconds": r.d.Spec.MinReadySeconds},
	})
}

func (r rollout) createNext(revision int64, replicas int32) error {
	template := r.d.Spec.Template.DeepCopy()
	hash := hashOf(template, r.d.Status.CollisionCount)
	selector := r.d.Spec.Selector.DeepCopy()
	if selector == nil {
		selector = &metav1.LabelSelector{}
	}
	selector.MatchLabels = with(selector.MatchLabels, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	template.Labels = with(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.d.Namespace, Name: r.d.Name + "-" + hash, Labels: template.Labels,
			Annotations: r.annotations(revision), OwnerReferences: ownedBy(r.d, "Deployment"),
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, MinReadySeconds: r.d.Spec.MinReadySeconds, Selector: selector, Template: *template},
	}
	if err := r.create("ReplicaSet", rs, controllers); err != nil {
		return err
	}
	if replicas > 0 {
		r.events.normal(r.ctx, r.d, deploymentController, "ScalingReplicaSet", "Scaled up replica set %s from 0 to %d", rs.Name, replicas)
	}
	return nil
}

// annotations are those of a ReplicaSet: the Deployment's, and what kubectl needs to know.
func (r rollout) annotations(revision int64) map[string]string {
	out := with(r.d.Annotations, revisionAnnotation, strconv.FormatInt(revision, 10))
	delete(out, corev1.LastAppliedConfigAnnotation)
	delete(out, historyAnnotation)
	want := replicasOf(r.d.Spec.Replicas)
	out[desiredAnnotation], out[maxAnnotation] = strconv.Itoa(int(want)), strconv.Itoa(int(want+r.surge()))
	return out
}

// size changes the replicas of a ReplicaSet.
func (r rollout) size(rs *appsv1.ReplicaSet, n int32) error {
	annotations := r.annotations(revisionOf(rs))
	same := rs.Annotations[desiredAnnotation] == annotations[desiredAnnotation] && rs.Annotations[maxAnnotation] == annotations[maxAnnotation]
	if replicasOf(rs.Spec.Replicas) == n && (same || n == 0) {
		return nil
	}
	was := replicasOf(rs.Spec.Replicas)
	err := r.patch("ReplicaSet", rs, controllers, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{desiredAnnotation: annotations[desiredAnnotation], maxAnnotation: annotations[maxAnnotation]}},
		"spec":     map[string]any{"replicas": n},
	})
	if err != nil || was == n {
		return err
	}
	way := "up"
	if n < was {
		way = "down"
	}
	r.events.normal(r.ctx, r.d, deploymentController, "ScalingReplicaSet", "Scaled %s replica set %s from %d to %d", way, rs.Name, was, n)
	return nil
}

// forget deletes the oldest ReplicaSets without Pods that are more than the Deployment wants to keep.
func (r rollout) forget() error {
	keep := 10
	if limit := r.d.Spec.RevisionHistoryLimit; limit != nil {
		keep = int(*limit)
	}
	idle := slices.DeleteFunc(slices.Clone(r.old), func(rs *appsv1.ReplicaSet) bool {
		return replicasOf(rs.Spec.Replicas) != 0 || rs.Status.Replicas != 0 || rs.Generation > rs.Status.ObservedGeneration || len(r.caches["Pod"].of(rs.UID)) > 0
	})
	slices.SortStableFunc(idle, func(a, b *appsv1.ReplicaSet) int { return int(revisionOf(a) - revisionOf(b)) })
	for _, rs := range idle[:max(0, len(idle)-keep)] {
		if err := r.delete("ReplicaSet", rs, nil); err != nil {
			return err
		}
	}
	return nil
}

func revisionOf(rs *appsv1.ReplicaSet) int64 {
	n, err := strconv.ParseInt(rs.Annotations[revisionAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// mostHistory is how many letters the revisions of a ReplicaSet take at most, as in a cluster.
const mostHistory = 2000

// lengthened returns a list of revisions with one more. It forgets the first ones when it is too long.
func lengthened(list, revision string) string {
	if list == "" {
		return revision
	}
	for list += "," + revision; len(list) > mostHistory; {
		_, list, _ = strings.Cut(list, ",")
	}
	return list
}

// with returns a copy of a map with another entry.
func with[V any](m map[string]V, name string, value V) map[string]V {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]V{}
	}
	out[name] = value
	return out
}
