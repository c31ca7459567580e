// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"fmt"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"maps"
	"slices"
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
	if len(j.Labels) > 0 && maps.Equal(j.Labels, j.Spec.Template.Labels) {
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
	s, selector := &next.Spec, spec().Child("selector")
	if old == nil && !*s.ManualSelector {
		checkGenerated(f, next)
	}
	checkJobSpec(f, spec(), s)
	if s.Selector == nil {
		f.required(selector, "")
	} else {
		f.add(metav1validation.ValidateLabelSelector(s.Selector, metav1validation.LabelSelectorValidationOptions{}, selector))
	}
	if _, err := metav1.LabelSelectorAsSelector(s.Selector); err == nil {
		checkSelects(f, selector, s.Selector, &s.Template, "")
	}
	if old != nil {
		checkJobChange(f, next, old)
	}
	checkHostname(f, next)
}

// checkHostname checks that the Pods of an indexed Job, whose hostnames have their indexes, can be created.
func checkHostname(f *findings, j *batchv1.Job) {
	if j.Spec.CompletionMode == nil || *j.Spec.CompletionMode != batchv1.IndexedCompletion || j.Spec.Completions == nil || *j.Spec.Completions < 1 {
		return
	}
	longest := fmt.Sprintf("%s-%d", j.Name, *j.Spec.Completions-1)
	if len(utilvalidation.IsDNS1123Label(longest)) > 0 {
		f.invalid(field.NewPath("metadata", "name"), j.Name, "will not able to create pod with invalid DNS label: "+longest)
	}
}

// checkGenerated checks that a client has not set other labels than the generated ones, by which the server finds the Pods of a Job.
func checkGenerated(f *findings, j *batchv1.Job) {
	at, all := spec().Child("template", "metadata", "labels"), j.Spec.Template.Labels
	generated := labels.Set{}
	for _, each := range []struct{ key, value string }{
		{"controller-uid", string(j.UID)}, {"job-name", j.Name}, {batchv1.ControllerUidLabel, string(j.UID)}, {batchv1.JobNameLabel, j.Name},
	} {
		generated[each.key] = each.value
		if all[each.key] != each.value {
			f.invalid(at.Key(each.key), all, fmt.Sprintf("must be '%s'", each.value))
		}
	}
	if selects, err := metav1.LabelSelectorAsSelector(j.Spec.Selector); err == nil && !selects.Matches(generated) {
		f.invalid(spec().Child("selector"), j.Spec.Selector, "`selector` not auto-generated")
	}
}

// checkJobChange checks what changes in a Job.
func checkJobChange(f *findings, job, stored *batchv1.Job) {
	next, old, completions := &job.Spec, &stored.Spec, spec().Child("completions")
	switch {
	case *next.CompletionMode != batchv1.IndexedCompletion:
		f.fixed(completions, next.Completions, old.Completions)
	case next.Completions != nil && (old.Completions == nil || *old.Completions != *next.Completions) && *next.Completions != *next.Parallelism:
		f.invalid(completions, *next.Completions, "can only be modified in tandem with spec.parallelism")
	}
	f.fixed(spec().Child("selector"), next.Selector, old.Selector)
	if before := old.Template.DeepCopy(); isAtRest(stored) {
		mergeSuspended(before, &next.Template)
		f.fixed(spec().Child("template", "spec"), next.Template.Spec, before.Spec)
	} else {
		f.fixed(spec().Child("template"), next.Template, *before)
	}
	f.fixed(spec().Child("completionMode"), next.CompletionMode, old.CompletionMode)
	f.fixed(spec().Child("podFailurePolicy"), next.PodFailurePolicy, old.PodFailurePolicy)
	f.fixed(spec().Child("backoffLimitPerIndex"), next.BackoffLimitPerIndex, old.BackoffLimitPerIndex)
	f.fixed(spec().Child("managedBy"), next.ManagedBy, old.ManagedBy)
	f.fixed(spec().Child("successPolicy"), next.SuccessPolicy, old.SuccessPolicy)
}

// isAtRest reports whether a Job is suspended and none of its Pods runs, so that where they are to run can change.
func isAtRest(j *batchv1.Job) bool {
	said := slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == batchv1.JobSuspended && c.Status == corev1.ConditionTrue
	})
	return j.Spec.Suspend != nil && *j.Spec.Suspend && (j.Status.StartTime == nil || said) && j.Status.Active == 0
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
	if s.PodFailurePolicy != nil {
		checkFailurePolicy(f, path.Child("podFailurePolicy", "rules"), s)
	}
	if replacement := path.Child("podReplacementPolicy"); s.PodFailurePolicy != nil {
		supportedIf(f, replacement, s.PodReplacementPolicy, batchv1.Failed)
	} else {
		supportedIf(f, replacement, s.PodReplacementPolicy, batchv1.Failed, batchv1.TerminatingOrFailed)
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
