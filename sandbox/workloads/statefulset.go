// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// stepStatefulSet makes the Pods of a StatefulSet, one after the other, and their claims.
func stepStatefulSet(l *loop, s *appsv1.StatefulSet, _ Rule) error {
	hash := hashOf(s.Spec.Template, s.Status.CollisionCount)
	set := statefulSet{loop: l, s: s, hash: hash, revision: s.Name + "-" + hash}
	set.read()
	if s.DeletionTimestamp == nil {
		if err := cmp.Or(set.history().keep(), set.advance()); err != nil {
			return err
		}
		if l.moved {
			return l.again("StatefulSet", s)
		}
	}
	return l.status("StatefulSet", s, controllers, s.Status, set.status())
}

// statefulSet is a StatefulSet with its Pods by their ordinals.
type statefulSet struct {
	*loop
	s *appsv1.StatefulSet
	// hash is that of the template, and revision the name of its ControllerRevision.
	hash, revision string
	pods           map[int]*corev1.Pod
}

// revisionHash is the label of a StatefulSet's revisions that has their hash.
const revisionHash = "controller.kubernetes.io/hash"

// history returns the history of a StatefulSet.
func (s *statefulSet) history() history {
	return history{
		loop: s.loop, owner: s.s, kind: "StatefulSet", template: &s.s.Spec.Template, hash: s.hash, label: revisionHash, limit: s.s.Spec.RevisionHistoryLimit,
		isUsed: func(c *appsv1.ControllerRevision) bool {
			return c.Name == s.s.Status.CurrentRevision || slices.ContainsFunc(slices.Collect(maps.Values(s.pods)), func(p *corev1.Pod) bool {
				return p.Labels[appsv1.StatefulSetRevisionLabel] == c.Name
			})
		},
	}
}

// createPod creates a Pod, and records an Event about it.
func (s *statefulSet) createPod(p *corev1.Pod) error {
	err := s.create("Pod", p, controllers)
	s.note("create", "Pod "+p.Name, "successful", err)
	return err
}

// deletePod deletes a Pod, and records an Event about it.
func (s *statefulSet) deletePod(p *corev1.Pod) error {
	err := s.delete("Pod", p, nil)
	s.note("delete", "Pod "+p.Name, "successful", err)
	return err
}

// note records an Event about what was done to a Pod or a claim.
func (s *statefulSet) note(verb, subject, well string, err error) {
	reason := strings.ToUpper(verb[:1]) + verb[1:]
	switch {
	case err == nil:
		s.events.normal(s.ctx, s.s, statefulSetController, "Successful"+reason, "%s %s in StatefulSet %s %s", verb, subject, s.s.Name, well)
	case !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		s.events.warning(s.ctx, s.s, statefulSetController, "Failed"+reason, "%s %s in StatefulSet %s failed error: %v", verb, subject, s.s.Name, err)
	}
}

func (s *statefulSet) read() {
	s.pods = map[int]*corev1.Pod{}
	for _, p := range listOf[*corev1.Pod](s.caches["Pod"].of(s.s.UID)) {
		if ordinal, err := strconv.Atoi(strings.TrimPrefix(p.Name, s.s.Name+"-")); err == nil {
			s.pods[ordinal] = p
		}
	}
}

// bounds are the first ordinal and the one after the last.
func (s *statefulSet) bounds() (first, end int) {
	if s.s.Spec.Ordinals != nil {
		first = int(s.s.Spec.Ordinals.Start)
	}
	return first, first + int(replicasOf(s.s.Spec.Replicas))
}

func (s *statefulSet) parallel() bool {
	return s.s.Spec.PodManagementPolicy == appsv1.ParallelPodManagement
}

// advance makes what is missing, then takes away what is too many, then replaces what is old. Unless Pods may
// change in parallel, each waits for the one before.
func (s *statefulSet) advance() error {
	first, end := s.bounds()
	for n := first; n < end; n++ {
		done, err := s.fill(n)
		if err != nil || !done && !s.parallel() {
			return err
		}
	}
	for _, n := range slices.Backward(slices.Sorted(maps.Keys(s.pods))) {
		if n >= first && n < end {
			continue
		}
		if p := s.pods[n]; p.DeletionTimestamp == nil {
			if err := s.ownClaims(n, p, false); err != nil {
				return err
			}
			if err := s.deletePod(p); err != nil {
				return err
			}
		}
		if !s.parallel() {
			return nil
		}
	}
	return s.update(first, end)
}

// fill makes the Pod of an ordinal, and reports whether it is available.
func (s *statefulSet) fill(n int) (bool, error) {
	p := s.pods[n]
	if p != nil {
		if err := s.ownClaims(n, p, true); err != nil {
			return false, err
		}
	}
	switch {
	case p == nil:
		if err := s.claim(n); err != nil {
			return false, err
		}
		return false, s.createPod(s.pod(n))
	case p.DeletionTimestamp != nil:
		return false, nil
	case finished(p):
		return false, s.deletePod(p)
	}
	return s.available(p), nil
}

func (s *statefulSet) available(p *corev1.Pod) bool {
	return s.count("StatefulSet", s.s, []*corev1.Pod{p}, s.s.Spec.MinReadySeconds).available == 1
}

// update replaces Pods of an older template, from the last ordinal down to the partition.
func (s *statefulSet) update(first, end int) error {
	if s.s.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return nil
	}
	least, missing := first, 1
	if rolling := s.s.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		if rolling.Partition != nil {
			least = max(least, int(*rolling.Partition))
		}
		if rolling.MaxUnavailable != nil {
			if n, err := intstr.GetScaledValueFromIntOrPercent(rolling.MaxUnavailable, end-first, true); err == nil {
				missing = max(1, n)
			}
		}
	}
	for n := end - 1; n >= least && missing > 0; n-- {
		p := s.pods[n]
		switch {
		case p == nil || p.DeletionTimestamp != nil:
			missing--
		case p.Labels[appsv1.StatefulSetRevisionLabel] != s.revision:
			if err := s.deletePod(p); err != nil {
				return err
			}
			missing--
		case !s.available(p):
			missing--
		}
	}
	return nil
}

func (s *statefulSet) pod(n int) *corev1.Pod {
	p := podFrom(&s.s.Spec.Template, s.s, "StatefulSet")
	p.Name = s.s.Name + "-" + strconv.Itoa(n)
	p.Labels = with(p.Labels, appsv1.StatefulSetPodNameLabel, p.Name)
	p.Labels[appsv1.StatefulSetRevisionLabel], p.Labels[appsv1.PodIndexLabel] = s.revision, strconv.Itoa(n)
	p.Spec.Hostname, p.Spec.Subdomain = p.Name, s.s.Spec.ServiceName
	for _, claim := range s.s.Spec.VolumeClaimTemplates {
		p.Spec.Volumes = slices.DeleteFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == claim.Name })
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: claim.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name + "-" + p.Name},
		}})
	}
	return p
}

func (s *statefulSet) status() appsv1.StatefulSetStatus {
	pods := slices.Collect(maps.Values(s.pods))
	c := s.count("StatefulSet", s.s, pods, s.s.Spec.MinReadySeconds)
	next := *s.s.Status.DeepCopy()
	next.ObservedGeneration, next.UpdateRevision = s.s.Generation, s.revision
	next.Replicas, next.ReadyReplicas, next.AvailableReplicas = c.all+c.ending, c.ready, c.available
	if next.CurrentRevision == "" {
		next.CurrentRevision = s.revision
	}
	if next.CollisionCount == nil {
		next.CollisionCount = new(int32)
	}
	of := func(revision string) (n int32) {
		for _, p := range pods {
			if active(p) && p.Labels[appsv1.StatefulSetRevisionLabel] == revision {
				n++
			}
		}
		return n
	}
	next.UpdatedReplicas = of(s.revision)
	if next.UpdatedReplicas == next.Replicas && next.ReadyReplicas == next.Replicas && next.Replicas == replicasOf(s.s.Spec.Replicas) {
		next.CurrentRevision = s.revision
	}
	next.CurrentReplicas = of(next.CurrentRevision)
	return next
}
