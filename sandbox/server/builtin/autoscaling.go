// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"fmt"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
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

func checkAutoscaler(f *findings, next, _ *autoscalingv2.HorizontalPodAutoscaler) {
	s := &next.Spec
	if s.MaxReplicas >= 0 && s.MinReplicas != nil && s.MaxReplicas < *s.MinReplicas || s.MaxReplicas < 0 && s.MinReplicas != nil {
		f.invalid(spec().Child("maxReplicas"), s.MaxReplicas, "must be greater than or equal to `minReplicas`")
	}
	target := spec().Child("scaleTargetRef")
	if f.filled(target.Child("kind"), s.ScaleTargetRef.Kind) {
		f.each(target.Child("kind"), s.ScaleTargetRef.Kind, roleName(s.ScaleTargetRef.Kind, false))
	}
	if f.filled(target.Child("name"), s.ScaleTargetRef.Name) {
		f.each(target.Child("name"), s.ScaleTargetRef.Name, roleName(s.ScaleTargetRef.Name, false))
	}
	if _, group, _ := strings.Cut(s.ScaleTargetRef.APIVersion, "/"); group == "" {
		f.invalid(target.Child("apiVersion"), s.ScaleTargetRef.APIVersion, "apiVersion must specify API group")
	}
	for i := range s.Metrics {
		checkMetric(f, spec().Child("metrics").Index(i), &s.Metrics[i])
	}
	atLeast(f, spec().Child("minReplicas"), *s.MinReplicas, 0)
	if s.MaxReplicas == 0 {
		f.last = append(f.last, field.Required(spec().Child("maxReplicas"), ""))
	} else {
		atLeast(f, spec().Child("maxReplicas"), s.MaxReplicas, 1)
	}
}

// atLeast checks a number, by a rule of the API server's types.
func atLeast(f *findings, path *field.Path, number, least int32) {
	if number < least {
		f.last = append(f.last, field.Invalid(path, number, fmt.Sprintf("must be greater than or equal to %d", least)))
	}
}

// checkMetric checks that a metric has the source of its type, and only that.
func checkMetric(f *findings, path *field.Path, m *autoscalingv2.MetricSpec) {
	if m.Type == "" {
		f.required(path.Child("type"), "must specify a metric source type")
	}
	for _, each := range []struct {
		kind  autoscalingv2.MetricSourceType
		name  string
		given bool
	}{
		{autoscalingv2.ObjectMetricSourceType, "object", m.Object != nil},
		{autoscalingv2.PodsMetricSourceType, "pods", m.Pods != nil},
		{autoscalingv2.ResourceMetricSourceType, "resource", m.Resource != nil},
		{autoscalingv2.ContainerResourceMetricSourceType, "containerResource", m.ContainerResource != nil},
		{autoscalingv2.ExternalMetricSourceType, "external", m.External != nil},
	} {
		switch {
		case each.kind == m.Type && !each.given:
			f.required(path.Child(each.name), "must populate information for the given metric source")
		case each.kind != m.Type && each.given:
			f.forbidden(path.Child(each.name), "must populate the given metric source only")
		}
	}
}
