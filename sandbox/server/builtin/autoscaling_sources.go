// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkMetrics checks the metrics of an autoscaler. Pods that are not there have no metric of their own.
func checkMetrics(f *findings, path *field.Path, s *autoscalingv2.HorizontalPodAutoscalerSpec) {
	other := false
	for i := range s.Metrics {
		checkMetric(f, path.Index(i), &s.Metrics[i])
		kind := s.Metrics[i].Type
		other = other || kind == autoscalingv2.ObjectMetricSourceType || kind == autoscalingv2.ExternalMetricSourceType
	}
	if *s.MinReplicas == 0 && !other {
		f.forbidden(path, "must specify at least one Object or External metric to support scaling to zero replicas")
	}
}

// checkMetric checks that a metric has the source of its type, and only that.
func checkMetric(f *findings, path *field.Path, m *autoscalingv2.MetricSpec) {
	kinds := []autoscalingv2.MetricSourceType{
		autoscalingv2.ContainerResourceMetricSourceType, autoscalingv2.ExternalMetricSourceType, autoscalingv2.ObjectMetricSourceType,
		autoscalingv2.PodsMetricSourceType, autoscalingv2.ResourceMetricSourceType,
	}
	names := []string{"containerResource", "external", "object", "pods", "resource"}
	given := []bool{m.ContainerResource != nil, m.External != nil, m.Object != nil, m.Pods != nil, m.Resource != nil}
	if m.Type == "" {
		f.required(path.Child("type"), "must specify a metric source type")
	}
	supported(f, path.Child("type"), m.Type, kinds...)
	checkMetricSource(f, path, m)
	sources := 0
	for i, kind := range kinds {
		if given[i] {
			sources++
		} else if kind == m.Type {
			f.required(path.Child(names[i]), "must populate information for the given metric source")
		}
	}
	for i, kind := range kinds {
		if sources > 1 && given[i] && kind != m.Type {
			f.forbidden(path.Child(names[i]), "must populate the given metric source only")
		}
	}
}

// checkMetricSource checks the source of a metric. Of several ones, the first is checked.
func checkMetricSource(f *findings, path *field.Path, m *autoscalingv2.MetricSpec) {
	switch {
	case m.Object != nil:
		at := path.Child("object")
		checkReference(f, at.Child("describedObject"), &m.Object.DescribedObject, true, false)
		checkIdentifier(f, at.Child("metric", "name"), m.Object.Metric.Name)
		checkTarget(f, at.Child("target"), &m.Object.Target)
		if t := &m.Object.Target; t.Value == nil && t.AverageValue == nil {
			f.required(at.Child("target", "averageValue"), "must set either a target value or averageValue")
		}
	case m.External != nil:
		at, t := path.Child("external"), &m.External.Target
		checkIdentifier(f, at.Child("metric", "name"), m.External.Metric.Name)
		checkTarget(f, at.Child("target"), t)
		if t.Value == nil && t.AverageValue == nil {
			f.required(at.Child("target", "averageValue"), "must set either a target value for metric or a per-pod target")
		} else if t.Value != nil && t.AverageValue != nil {
			f.forbidden(at.Child("target", "value"), "may not set both a target value for metric and a per-pod target")
		}
	case m.Pods != nil:
		at := path.Child("pods")
		checkIdentifier(f, at.Child("metric", "name"), m.Pods.Metric.Name)
		checkTarget(f, at.Child("target"), &m.Pods.Target)
		if m.Pods.Target.AverageValue == nil {
			f.required(at.Child("target", "averageValue"), "must specify a positive target averageValue")
		}
	case m.Resource != nil:
		at := path.Child("resource")
		if m.Resource.Name == "" {
			f.required(at.Child("name"), "must specify a resource name")
		}
		checkUsage(f, at.Child("target"), &m.Resource.Target)
	case m.ContainerResource != nil:
		checkContainerMetric(f, path.Child("containerResource"), m.ContainerResource)
	}
}

// checkIdentifier checks the name of a metric.
func checkIdentifier(f *findings, path *field.Path, name string) {
	if name == "" {
		f.required(path, "must specify a metric name")
		return
	}
	f.each(path, name, roleName(name, false))
}

// checkContainerMetric checks a metric of the usage of a resource by one container of each Pod.
func checkContainerMetric(f *findings, path *field.Path, m *autoscalingv2.ContainerResourceMetricSource) {
	if m.Name == "" {
		f.required(path.Child("name"), "must specify a resource name")
	} else {
		checkResourceName(f, path.Child("name"), m.Name)
	}
	if m.Container == "" {
		f.required(path.Child("container"), "must specify a container")
	} else {
		f.each(path.Child("container"), m.Container, utilvalidation.IsDNS1123Label(m.Container))
	}
	checkUsage(f, path.Child("target"), &m.Target)
}

// checkUsage checks the usage of a resource that an autoscaler aims at.
func checkUsage(f *findings, path *field.Path, t *autoscalingv2.MetricTarget) {
	checkTarget(f, path, t)
	switch {
	case t.AverageUtilization != nil && t.AverageValue != nil:
		f.forbidden(path.Child("averageValue"), "may not set both a target raw value and a target utilization")
	case t.AverageUtilization == nil && t.AverageValue == nil:
		f.required(path.Child("averageUtilization"), "must set either a target raw value or a target utilization")
	}
}

// checkTarget checks what a metric is to come to.
func checkTarget(f *findings, path *field.Path, t *autoscalingv2.MetricTarget) {
	if t.Type == "" {
		f.required(path.Child("type"), "must specify a metric target type")
	}
	switch t.Type {
	case autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType, autoscalingv2.AverageValueMetricType:
	default:
		f.invalid(path.Child("type"), t.Type, "must be either Utilization, Value, or AverageValue")
	}
	if t.Value != nil && t.Value.Sign() < 1 {
		f.invalid(path.Child("value"), t.Value, "must be positive")
	}
	if t.AverageValue != nil && t.AverageValue.Sign() < 1 {
		f.invalid(path.Child("averageValue"), t.AverageValue, "must be positive")
	}
	if t.AverageUtilization != nil && *t.AverageUtilization < 1 {
		f.invalid(path.Child("averageUtilization"), t.AverageUtilization, "must be greater than 0")
	}
}
