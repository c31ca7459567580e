// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	usage  = 80 // percent of the CPU that a HorizontalPodAutoscaler aims at
	period = 15 // seconds
)

func fillAutoscaler(h *autoscalingv2.HorizontalPodAutoscaler) {
	dropCarried(h.Annotations)
	s := &h.Spec
	initial(&s.MinReplicas, 1)
	if len(s.Metrics) == 0 {
		s.Metrics = []autoscalingv2.MetricSpec{cpuMetric(new(int32(usage)))}
	}
	if s.Behavior == nil {
		return
	}
	double := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: period}
	initial(&s.Behavior.ScaleDown, autoscalingv2.HPAScalingRules{})
	fillScaling(s.Behavior.ScaleDown, double)
	initial(&s.Behavior.ScaleUp, autoscalingv2.HPAScalingRules{})
	initial(&s.Behavior.ScaleUp.StabilizationWindowSeconds, 0)
	fillScaling(s.Behavior.ScaleUp, autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: period}, double)
}

func fillScaling(r *autoscalingv2.HPAScalingRules, policies ...autoscalingv2.HPAScalingPolicy) {
	initial(&r.SelectPolicy, autoscalingv2.MaxChangePolicySelect)
	if r.Policies == nil {
		r.Policies = policies
	}
}

func checkAutoscaler(f *findings, next, old *autoscalingv2.HorizontalPodAutoscaler) {
	s := &next.Spec
	if s.MinReplicas != nil && s.MaxReplicas < *s.MinReplicas {
		f.invalid(spec().Child("maxReplicas"), s.MaxReplicas, "must be greater than or equal to `minReplicas`")
	}
	stored := old != nil && old.Spec.ScaleTargetRef.APIVersion == s.ScaleTargetRef.APIVersion && old.Spec.ScaleTargetRef.Kind == s.ScaleTargetRef.Kind
	needsGroup := s.ScaleTargetRef.Kind != "ReplicationController" // the one kind without a group that has a scale
	checkReference(f, spec().Child("scaleTargetRef"), &s.ScaleTargetRef, !stored, needsGroup)
	checkMetrics(f, spec().Child("metrics"), s)
	if s.Behavior != nil {
		checkScaling(f, spec().Child("behavior", "scaleUp"), s.Behavior.ScaleUp)
		checkScaling(f, spec().Child("behavior", "scaleDown"), s.Behavior.ScaleDown)
	}
	atLeast(f, spec().Child("minReplicas"), *s.MinReplicas, 0)
	if s.MaxReplicas == 0 {
		f.last = append(f.last, field.Required(spec().Child("maxReplicas"), ""))
	} else {
		atLeast(f, spec().Child("maxReplicas"), s.MaxReplicas, 1)
	}
}

// checkReference checks a reference to an object; its version only if that is asked for.
func checkReference(f *findings, path *field.Path, ref *autoscalingv2.CrossVersionObjectReference, version, needsGroup bool) {
	for _, each := range []struct{ name, value string }{{"kind", ref.Kind}, {"name", ref.Name}} {
		if f.filled(path.Child(each.name), each.value) {
			f.each(path.Child(each.name), each.value, roleName(each.value, false))
		}
	}
	if !version {
		return
	}
	parsed, err := schema.ParseGroupVersion(ref.APIVersion)
	switch {
	case err != nil:
		f.invalid(path.Child("apiVersion"), ref.APIVersion, err.Error())
	case needsGroup && parsed.Group == "":
		f.invalid(path.Child("apiVersion"), ref.APIVersion, "apiVersion must specify API group")
	}
}

// checkScaling checks how fast an autoscaler scales in a direction.
func checkScaling(f *findings, path *field.Path, r *autoscalingv2.HPAScalingRules) {
	if r == nil {
		return
	}
	if seconds := r.StabilizationWindowSeconds; seconds != nil {
		if *seconds < 0 {
			f.invalid(path.Child("stabilizationWindowSeconds"), *seconds, "must be greater than or equal to zero")
		}
		within(f, path.Child("stabilizationWindowSeconds"), *seconds, 3600)
	}
	supportedIf(f, path.Child("selectPolicy"), r.SelectPolicy,
		autoscalingv2.DisabledPolicySelect, autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect)
	if len(r.Policies) == 0 {
		f.required(path.Child("policies"), "must specify at least one Policy")
	}
	for i, p := range r.Policies {
		at := path.Child("policies").Index(i)
		supported(f, at.Child("type"), p.Type, autoscalingv2.PercentScalingPolicy, autoscalingv2.PodsScalingPolicy)
		if p.Value <= 0 {
			f.invalid(at.Child("value"), p.Value, "must be greater than zero")
		}
		if p.PeriodSeconds <= 0 {
			f.invalid(at.Child("periodSeconds"), p.PeriodSeconds, "must be greater than zero")
		}
		within(f, at.Child("periodSeconds"), p.PeriodSeconds, 1800)
	}
	if r.Tolerance != nil && r.Tolerance.Sign() < 0 {
		f.invalid(path.Child("tolerance"), r.Tolerance.String(), "must be greater than or equal to 0")
	}
}

// within checks that a number is at most another.
func within(f *findings, path *field.Path, number, most int32) {
	if number > most {
		f.invalid(path, number, fmt.Sprintf("must be less than or equal to %d", most))
	}
}

// atLeast checks a number, by a rule of the API server's types.
func atLeast(f *findings, path *field.Path, number, least int32) {
	if number < least {
		f.last = append(f.last, field.Invalid(path, number, fmt.Sprintf("must be greater than or equal to %d", least)))
	}
}
