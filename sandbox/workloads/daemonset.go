// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"cmp"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// stepDaemonSet keeps a Pod on each node that fits.
func stepDaemonSet(l *loop, d *appsv1.DaemonSet, _ Rule) error {
	hash := hashOf(d.Spec.Template, d.Status.CollisionCount)
	if d.DeletionTimestamp == nil {
		if err := cmp.Or(l.historyOf(d, hash).keep(), l.spread(d, hash)); err != nil {
			return err
		}
		if l.moved {
			return l.again("DaemonSet", d)
		}
	}
	pods := listOf[*corev1.Pod](l.caches["Pod"].of(d.UID))
	c := l.count("DaemonSet", d, pods, d.Spec.MinReadySeconds)
	next := d.Status.DeepCopy()
	next.DesiredNumberScheduled = int32(len(l.nodesOf(d)))
	next.CurrentNumberScheduled, next.NumberReady, next.NumberAvailable = c.all, c.ready, c.available
	next.NumberUnavailable = max(0, next.DesiredNumberScheduled-c.available)
	next.UpdatedNumberScheduled = 0
	for _, p := range pods {
		if active(p) && p.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] == hash {
			next.UpdatedNumberScheduled++
		}
	}
	next.ObservedGeneration = d.Generation
	return l.status("DaemonSet", d, controllers, d.Status, *next)
}

// historyOf returns the history of a DaemonSet.
func (l *loop) historyOf(d *appsv1.DaemonSet, hash string) history {
	return history{
		loop: l, owner: d, kind: "DaemonSet", template: &d.Spec.Template, hash: hash, label: appsv1.DefaultDaemonSetUniqueLabelKey, limit: d.Spec.RevisionHistoryLimit,
		isUsed: func(c *appsv1.ControllerRevision) bool {
			return slices.ContainsFunc(l.caches["Pod"].of(d.UID), func(p object) bool {
				return p.GetLabels()[appsv1.DefaultDaemonSetUniqueLabelKey] == c.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]
			})
		},
	}
}

// nodesOf returns the names of the nodes on which a DaemonSet runs.
func (l *loop) nodesOf(d *appsv1.DaemonSet) (out []string) {
	pod := &corev1.Pod{Spec: d.Spec.Template.Spec}
	for _, n := range listOf[*corev1.Node](l.caches["Node"].all()) {
		if matchesNode(pod, n) {
			out = append(out, n.Name)
		}
	}
	return out
}

// spread makes the Pods that nodes lack, and deletes those that have ended, are too many or are old.
func (l *loop) spread(d *appsv1.DaemonSet, hash string) error {
	missing := l.nodesOf(d)
	var old []*corev1.Pod
	unavailable := 0
	for _, p := range listOf[*corev1.Pod](l.caches["Pod"].of(d.UID)) {
		node, _ := affinityOf(p)
		at := slices.Index(missing, node)
		switch {
		case p.DeletionTimestamp == nil && (at < 0 || finished(p)):
			if err := l.deletePod(d, p, daemonSetController); err != nil {
				return err
			}
		case p.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] != hash && p.DeletionTimestamp == nil:
			old = append(old, p)
		case l.count("DaemonSet", d, []*corev1.Pod{p}, d.Spec.MinReadySeconds).available == 0:
			unavailable++
		}
		if at >= 0 {
			missing = slices.Delete(missing, at, at+1)
		}
	}
	for _, node := range missing {
		unavailable++
		if err := l.createPod(d, daemonPod(d, hash, node), daemonSetController); err != nil {
			return err
		}
	}
	return l.replace(d, old, unavailable)
}

// replace deletes old Pods of a DaemonSet, as many at once as may be unavailable.
func (l *loop) replace(d *appsv1.DaemonSet, old []*corev1.Pod, unavailable int) error {
	if d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		return nil
	}
	most := 1
	if rolling := d.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		n, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(rolling.MaxUnavailable, intstr.FromInt32(1)), len(l.nodesOf(d)), true)
		if err == nil {
			most = max(1, n)
		}
	}
	for _, p := range old {
		if readySince(p) != nil {
			if unavailable >= most {
				continue
			}
			unavailable++
		}
		if err := l.deletePod(d, p, daemonSetController); err != nil {
			return err
		}
	}
	return nil
}

// daemonPod returns the Pod for a node. Its affinity names the node, and the scheduler puts it there.
func daemonPod(d *appsv1.DaemonSet, hash, node string) *corev1.Pod {
	p := podFrom(&d.Spec.Template, d, "DaemonSet")
	p.GenerateName = d.Name + "-"
	p.Labels = with(p.Labels, appsv1.DefaultDaemonSetUniqueLabelKey, hash)
	p.Labels["pod-template-generation"] = strconv.FormatInt(d.Generation, 10)
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	if p.Spec.Affinity.NodeAffinity == nil {
		p.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
	}}}
	return p
}
