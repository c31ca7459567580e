// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkFailurePolicy checks the rules about failed Pods of a Job.
func checkFailurePolicy(f *findings, path *field.Path, s *batchv1.JobSpec) {
	atMost(f, path, len(s.PodFailurePolicy.Rules), 20)
	for i := range s.PodFailurePolicy.Rules {
		r, at := &s.PodFailurePolicy.Rules[i], path.Index(i)
		if r.Action == batchv1.PodFailurePolicyActionFailIndex && s.BackoffLimitPerIndex == nil {
			f.invalid(at.Child("action"), r.Action, "requires the backoffLimitPerIndex to be set")
		}
		listed(f, at.Child("action"), r.Action, batchv1.PodFailurePolicyActionCount, batchv1.PodFailurePolicyActionFailIndex,
			batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionIgnore)
		if r.OnExitCodes != nil {
			checkExitCodes(f, at.Child("onExitCodes"), r.OnExitCodes, &s.Template.Spec)
		}
		atMost(f, at.Child("onPodConditions"), len(r.OnPodConditions), 20)
		for j, c := range r.OnPodConditions {
			f.each(at.Child("onPodConditions").Index(j).Child("type"), string(c.Type), utilvalidation.IsQualifiedName(string(c.Type)))
			listed(f, at.Child("onPodConditions").Index(j).Child("status"), c.Status, corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown)
		}
		switch conditions := len(r.OnPodConditions) > 0; {
		case r.OnExitCodes != nil && conditions:
			f.invalid(at, field.OmitValueType{}, "specifying both OnExitCodes and OnPodConditions is not supported")
		case r.OnExitCodes == nil && !conditions:
			f.invalid(at, field.OmitValueType{}, "specifying one of OnExitCodes and OnPodConditions is required")
		}
	}
}

// checkExitCodes checks the exit codes that a rule is about.
func checkExitCodes(f *findings, path *field.Path, r *batchv1.PodFailurePolicyOnExitCodesRequirement, pod *corev1.PodSpec) {
	listed(f, path.Child("operator"), r.Operator, batchv1.PodFailurePolicyOnExitCodesOpIn, batchv1.PodFailurePolicyOnExitCodesOpNotIn)
	named := func(c corev1.Container) bool { return c.Name == *r.ContainerName }
	if r.ContainerName != nil && !slices.ContainsFunc(pod.Containers, named) && !slices.ContainsFunc(pod.InitContainers, named) {
		f.invalid(path.Child("containerName"), *r.ContainerName, "must be one of the container or initContainer names in the pod template")
	}
	values := path.Child("values")
	if len(r.Values) == 0 {
		f.invalid(values, r.Values, "at least one value is required")
	}
	atMost(f, values, len(r.Values), 255)
	for i, code := range r.Values {
		if code == 0 && r.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn {
			f.invalid(values.Index(i), code, "must not be 0 for the In operator")
		}
		if slices.Contains(r.Values[:i], code) {
			f.duplicate(values.Index(i), code)
		}
	}
	if !slices.IsSorted(r.Values) {
		f.invalid(values, r.Values, "must be ordered")
	}
}

// listed checks that a value is one of an enumeration's, which an absent value is told.
func listed[T ~string](f *findings, path *field.Path, value T, values ...T) {
	if value == "" {
		f.required(path, fmt.Sprintf("valid values: %q", values))
		return
	}
	supported(f, path, value, values...)
}

// atMost checks the length of a list.
func atMost(f *findings, path *field.Path, length, most int) {
	if length > most {
		f.list = append(f.list, field.TooMany(path, length, most))
	}
}
