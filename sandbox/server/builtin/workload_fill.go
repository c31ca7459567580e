// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"math"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	history  = 10  // old ReplicaSets and revisions that are kept
	progress = 600 // seconds after which a rollout without progress has failed
	retries  = 6   // of a Job
)

func fillDeployment(d *appsv1.Deployment) {
	s := &d.Spec
	initial(&s.Replicas, 1)
	initial(&s.RevisionHistoryLimit, history)
	initial(&s.ProgressDeadlineSeconds, progress)
	orElse(&s.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if s.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		initial(&s.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		initial(&s.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		initial(&s.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	fillPodSpec(&s.Template.Spec)
}

func fillReplicaSet(r *appsv1.ReplicaSet) {
	initial(&r.Spec.Replicas, 1)
	fillPodSpec(&r.Spec.Template.Spec)
}

func fillStatefulSet(set *appsv1.StatefulSet) {
	s := &set.Spec
	initial(&s.Replicas, 1)
	initial(&s.RevisionHistoryLimit, history)
	orElse(&s.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	update := &s.UpdateStrategy
	if update.Type == "" {
		update.Type = appsv1.RollingUpdateStatefulSetStrategyType
		initial(&update.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
	}
	if update.Type == appsv1.RollingUpdateStatefulSetStrategyType && update.RollingUpdate != nil {
		initial(&update.RollingUpdate.Partition, 0)
		initial(&update.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
	}
	initial(&s.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	orElse(&s.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	orElse(&s.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	for i := range s.VolumeClaimTemplates {
		fillClaim(&s.VolumeClaimTemplates[i])
		s.VolumeClaimTemplates[i].APIVersion, s.VolumeClaimTemplates[i].Kind = "v1", "PersistentVolumeClaim"
	}
	fillPodSpec(&s.Template.Spec)
}

func fillDaemonSet(d *appsv1.DaemonSet) {
	count(d, counted(d))
	s := &d.Spec
	initial(&s.RevisionHistoryLimit, history)
	orElse(&s.UpdateStrategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if s.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		initial(&s.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		initial(&s.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
	}
	if r := s.UpdateStrategy.RollingUpdate; r != nil { // the API server's own type cannot leave them out
		initial(&r.MaxUnavailable, intstr.FromInt32(0))
		initial(&r.MaxSurge, intstr.FromInt32(0))
	}
	fillPodSpec(&s.Template.Spec)
}

func fillJob(j *batchv1.Job) {
	s := &j.Spec
	if s.Parallelism == nil {
		initial(&s.Completions, 1)
	}
	initial(&s.Parallelism, 1)
	limit := int32(retries)
	if s.BackoffLimitPerIndex != nil {
		limit = math.MaxInt32
	}
	initial(&s.BackoffLimit, limit)
	initial(&s.CompletionMode, batchv1.NonIndexedCompletion)
	initial(&s.Suspend, false)
	replacement := batchv1.TerminatingOrFailed
	if s.PodFailurePolicy != nil {
		replacement = batchv1.Failed
	}
	initial(&s.PodReplacementPolicy, replacement)
	initial(&s.ManualSelector, false)
	fillJobSpec(s)
}

// labelJob gives a Job without labels those of its template. It is called once: the template of a new Job gets more labels later.
func labelJob(j *batchv1.Job) {
	if len(j.Labels) == 0 {
		j.Labels = j.Spec.Template.Labels
	}
}

// fillJobSpec sets the defaults that the templates of CronJobs have as well.
func fillJobSpec(s *batchv1.JobSpec) {
	fillPodSpec(&s.Template.Spec)
	if s.PodFailurePolicy == nil {
		return
	}
	for _, r := range s.PodFailurePolicy.Rules {
		for i := range r.OnPodConditions {
			orElse(&r.OnPodConditions[i].Status, corev1.ConditionTrue)
		}
	}
}

func fillCronJob(c *batchv1.CronJob) {
	s := &c.Spec
	orElse(&s.ConcurrencyPolicy, batchv1.AllowConcurrent)
	initial(&s.Suspend, false)
	initial(&s.SuccessfulJobsHistoryLimit, 3)
	initial(&s.FailedJobsHistoryLimit, 1)
	fillJobSpec(&s.JobTemplate.Spec)
}

func fillController(r *corev1.ReplicationController) {
	initial(&r.Spec.Replicas, 1)
	if r.Spec.Template == nil {
		return
	}
	fillPodSpec(&r.Spec.Template.Spec)
	if labels := r.Spec.Template.Labels; labels != nil {
		if len(r.Spec.Selector) == 0 {
			r.Spec.Selector = labels
		}
		if len(r.Labels) == 0 {
			r.Labels = labels
		}
	}
}
