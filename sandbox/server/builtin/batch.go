// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"fmt"
	"maps"
	"strings"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// beginJob gives a new Job the selector and the labels by which its Pods are found.
func beginJob(j *batchv1.Job) {
	if *j.Spec.ManualSelector {
		return
	}
	added := map[string]string{
		"job-name": j.Name, batchv1.JobNameLabel: j.Name,
		"controller-uid": string(j.UID), batchv1.ControllerUidLabel: string(j.UID),
	}
	maps.Copy(added, j.Spec.Template.Labels)
	if maps.Equal(j.Labels, j.Spec.Template.Labels) {
		j.Labels = added // a Job without labels has those of its template
	}
	j.Spec.Template.Labels = added
	initial(&j.Spec.Selector, metav1.LabelSelector{})
	if j.Spec.Selector.MatchLabels == nil {
		j.Spec.Selector.MatchLabels = map[string]string{}
	}
	if _, found := j.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel]; !found {
		j.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel] = string(j.UID)
	}
}

func checkJob(f *findings, next, old *batchv1.Job) {
	s := &next.Spec
	checkJobSpec(f, spec(), s)
	if s.Selector == nil {
		f.required(spec().Child("selector"), "")
	} else {
		checkSelects(f, spec().Child("selector"), s.Selector, &s.Template, "")
	}
	if old != nil {
		checkJobChange(f, s, &old.Spec)
	}
}

// checkJobChange checks what changes in a Job.
func checkJobChange(f *findings, next, old *batchv1.JobSpec) {
	completions := spec().Child("completions")
	switch {
	case *next.CompletionMode != batchv1.IndexedCompletion:
		f.fixed(completions, next.Completions, old.Completions)
	case next.Completions != nil && (old.Completions == nil || *old.Completions != *next.Completions) && *next.Completions != *next.Parallelism:
		f.invalid(completions, *next.Completions, "can only be modified in tandem with spec.parallelism")
	}
	f.fixed(spec().Child("selector"), next.Selector, old.Selector)
	before := old.Template.DeepCopy()
	if old.Suspend != nil && *old.Suspend {
		mergeSuspended(before, &next.Template)
	}
	f.fixed(spec().Child("template"), next.Template, *before)
	f.fixed(spec().Child("completionMode"), next.CompletionMode, old.CompletionMode)
	f.fixed(spec().Child("podFailurePolicy"), next.PodFailurePolicy, old.PodFailurePolicy)
	f.fixed(spec().Child("backoffLimitPerIndex"), next.BackoffLimitPerIndex, old.BackoffLimitPerIndex)
	f.fixed(spec().Child("managedBy"), next.ManagedBy, old.ManagedBy)
	f.fixed(spec().Child("successPolicy"), next.SuccessPolicy, old.SuccessPolicy)
}

// mergeSuspended gives a template what can change in that of a suspended Job: where its Pods run, and with what.
func mergeSuspended(into, next *corev1.PodTemplateSpec) {
	into.Labels, into.Annotations = next.Labels, next.Annotations
	into.Spec.NodeSelector, into.Spec.Tolerations, into.Spec.Affinity = next.Spec.NodeSelector, next.Spec.Tolerations, next.Spec.Affinity
	into.Spec.SchedulingGates = next.Spec.SchedulingGates
	for i := range min(len(into.Spec.Containers), len(next.Spec.Containers)) {
		into.Spec.Containers[i].Resources = next.Spec.Containers[i].Resources
	}
}

// checkJobSpec checks what Jobs and the templates of CronJobs have.
func checkJobSpec(f *findings, path *field.Path, s *batchv1.JobSpec) {
	notNegativeIf(f, path.Child("parallelism"), s.Parallelism)
	notNegativeIf(f, path.Child("completions"), s.Completions)
	notNegativeIf(f, path.Child("activeDeadlineSeconds"), s.ActiveDeadlineSeconds)
	notNegativeIf(f, path.Child("backoffLimit"), s.BackoffLimit)
	notNegativeIf(f, path.Child("ttlSecondsAfterFinished"), s.TTLSecondsAfterFinished)
	notNegativeIf(f, path.Child("backoffLimitPerIndex"), s.BackoffLimitPerIndex)
	notNegativeIf(f, path.Child("maxFailedIndexes"), s.MaxFailedIndexes)
	supportedIf(f, path.Child("completionMode"), s.CompletionMode, batchv1.NonIndexedCompletion, batchv1.IndexedCompletion)
	if s.CompletionMode != nil && *s.CompletionMode == batchv1.IndexedCompletion {
		if s.Completions == nil {
			f.required(path.Child("completions"), "when completion mode is Indexed")
		}
	} else {
		if s.BackoffLimitPerIndex != nil {
			f.invalid(path.Child("backoffLimitPerIndex"), *s.BackoffLimitPerIndex, "requires indexed completion mode")
		}
		if s.MaxFailedIndexes != nil {
			f.invalid(path.Child("maxFailedIndexes"), *s.MaxFailedIndexes, "requires indexed completion mode")
		}
	}
	checkTemplate(f, path.Child("template"), &s.Template)
	checkEnd(f, path.Child("template", "spec", "restartPolicy"), s)
}

// checkEnd checks that the Pods of a Job can end.
func checkEnd(f *findings, path *field.Path, s *batchv1.JobSpec) {
	switch policy := s.Template.Spec.RestartPolicy; {
	case policy == corev1.RestartPolicyAlways || policy == "":
		f.required(path, fmt.Sprintf("valid values: %q, %q", corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever))
	case policy != corev1.RestartPolicyOnFailure && policy != corev1.RestartPolicyNever:
		supported(f, path, policy, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	case s.PodFailurePolicy != nil && policy != corev1.RestartPolicyNever:
		f.invalid(path, policy, fmt.Sprintf("only %q is supported when podFailurePolicy is specified", corev1.RestartPolicyNever))
	}
}

// longestCronJob is the longest name of a CronJob: its Jobs' names have a time as well.
const longestCronJob = 52

func checkCronJob(f *findings, next, old *batchv1.CronJob) {
	s := &next.Spec
	if path := spec().Child("schedule"); f.declared(path, s.Schedule) {
		checkSchedule(f, path, s.Schedule)
	}
	notNegativeIf(f, spec().Child("startingDeadlineSeconds"), s.StartingDeadlineSeconds)
	oneOf(f, spec().Child("concurrencyPolicy"), s.ConcurrencyPolicy, batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)
	template := spec().Child("jobTemplate", "spec")
	checkJobSpec(f, template, &s.JobTemplate.Spec)
	if s.JobTemplate.Spec.Selector != nil {
		f.invalid(template.Child("selector"), s.JobTemplate.Spec.Selector, "`selector` will be auto-generated")
	}
	notNegativeIf(f, spec().Child("successfulJobsHistoryLimit"), s.SuccessfulJobsHistoryLimit)
	notNegativeIf(f, spec().Child("failedJobsHistoryLimit"), s.FailedJobsHistoryLimit)
	if old == nil && len(next.Name) > longestCronJob {
		f.invalid(field.NewPath("metadata", "name"), next.Name, "must be no more than 52 characters")
	}
}

// checkSchedule checks a schedule. The parser panics on some.
func checkSchedule(f *findings, path *field.Path, schedule string) {
	defer func() {
		if r := recover(); r != nil {
			f.invalid(path, schedule, fmt.Sprintf("invalid schedule format: %v", r))
		}
	}()
	if _, err := cron.ParseStandard(schedule); err != nil {
		f.invalid(path, schedule, err.Error())
	}
	if strings.Contains(schedule, "TZ") {
		f.invalid(path, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
	}
}
