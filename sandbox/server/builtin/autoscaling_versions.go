// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"encoding/json"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The annotations in which autoscaling/v1 has what its fields cannot have.
const (
	carriedMetrics    = "autoscaling.alpha.kubernetes.io/metrics"
	carriedStatuses   = "autoscaling.alpha.kubernetes.io/current-metrics"
	carriedConditions = "autoscaling.alpha.kubernetes.io/conditions"
	carriedBehavior   = "autoscaling.alpha.kubernetes.io/behavior"
)

// dropCarried removes these annotations, and two of earlier servers.
func dropCarried(annotations map[string]string) {
	for _, key := range []string{carriedMetrics, carriedStatuses, carriedConditions, carriedBehavior} {
		delete(annotations, key)
	}
	delete(annotations, "autoscaling.alpha.kubernetes.io/scale-down-tolerance")
	delete(annotations, "autoscaling.alpha.kubernetes.io/scale-up-tolerance")
}

// otherVersion converts an object of a kind with two versions. It takes ownership of the object.
func otherVersion(o runtime.Object) runtime.Object {
	switch o := o.(type) {
	case *autoscalingv1.HorizontalPodAutoscaler:
		return newAutoscaler(o)
	case *autoscalingv2.HorizontalPodAutoscaler:
		return oldAutoscaler(o)
	}
	return o
}

// newAutoscaler converts a HorizontalPodAutoscaler of autoscaling/v1.
func newAutoscaler(o *autoscalingv1.HorizontalPodAutoscaler) *autoscalingv2.HorizontalPodAutoscaler {
	out := &autoscalingv2.HorizontalPodAutoscaler{TypeMeta: o.TypeMeta, ObjectMeta: o.ObjectMeta}
	out.APIVersion = autoscalingv2.SchemeGroupVersion.String()
	out.Spec = autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference(o.Spec.ScaleTargetRef),
		MinReplicas:    o.Spec.MinReplicas, MaxReplicas: o.Spec.MaxReplicas,
	}
	out.Status = autoscalingv2.HorizontalPodAutoscalerStatus{
		ObservedGeneration: o.Status.ObservedGeneration, LastScaleTime: o.Status.LastScaleTime,
		CurrentReplicas: o.Status.CurrentReplicas, DesiredReplicas: o.Status.DesiredReplicas,
	}
	if percent := o.Status.CurrentCPUUtilizationPercentage; percent != nil {
		out.Status.CurrentMetrics = []autoscalingv2.MetricStatus{{
			Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricStatus{
				Name: corev1.ResourceCPU, Current: autoscalingv2.MetricValueStatus{AverageUtilization: percent}},
		}}
	}
	for _, m := range carried[[]autoscalingv1.MetricSpec](o, carriedMetrics) {
		out.Spec.Metrics = append(out.Spec.Metrics, newMetric(m))
	}
	percent := o.Spec.TargetCPUUtilizationPercentage
	if percent == nil && len(out.Spec.Metrics) == 0 {
		percent = new(int32(usage))
	}
	if percent != nil {
		out.Spec.Metrics = append(out.Spec.Metrics, cpuMetric(percent))
	}
	// A field of the annotation has the name of the Go field, which the case of letters does not matter for.
	if behavior := carried[autoscalingv2.HorizontalPodAutoscalerBehavior](o, carriedBehavior); behavior != (autoscalingv2.HorizontalPodAutoscalerBehavior{}) {
		out.Spec.Behavior = &behavior
	}
	if statuses := carried[[]autoscalingv1.MetricStatus](o, carriedStatuses); statuses != nil {
		out.Status.CurrentMetrics = nil
		for _, m := range statuses {
			out.Status.CurrentMetrics = append(out.Status.CurrentMetrics, newMetricStatus(m))
		}
	}
	out.Status.Conditions = carried[[]autoscalingv2.HorizontalPodAutoscalerCondition](o, carriedConditions)
	dropCarried(out.Annotations)
	return out
}

// carried returns what an annotation has; nothing if it is malformed.
func carried[T any](o *autoscalingv1.HorizontalPodAutoscaler, annotation string) T {
	var out, none T
	if text, found := o.Annotations[annotation]; found && json.Unmarshal([]byte(text), &out) == nil {
		return out
	}
	return none
}

// cpuMetric aims at a percentage of the CPU that is requested.
func cpuMetric(percent *int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
		Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: percent},
	}}
}

// oldAutoscaler converts a HorizontalPodAutoscaler of autoscaling/v2.
func oldAutoscaler(o *autoscalingv2.HorizontalPodAutoscaler) *autoscalingv1.HorizontalPodAutoscaler {
	out := &autoscalingv1.HorizontalPodAutoscaler{TypeMeta: o.TypeMeta, ObjectMeta: o.ObjectMeta}
	out.APIVersion = autoscalingv1.SchemeGroupVersion.String()
	out.Spec = autoscalingv1.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv1.CrossVersionObjectReference(o.Spec.ScaleTargetRef),
		MinReplicas:    o.Spec.MinReplicas, MaxReplicas: o.Spec.MaxReplicas,
	}
	out.Status = autoscalingv1.HorizontalPodAutoscalerStatus{
		ObservedGeneration: o.Status.ObservedGeneration, LastScaleTime: o.Status.LastScaleTime,
		CurrentReplicas: o.Status.CurrentReplicas, DesiredReplicas: o.Status.DesiredReplicas,
	}
	dropCarried(out.Annotations)
	var others []autoscalingv1.MetricSpec
	for _, m := range o.Spec.Metrics {
		switch r := m.Resource; {
		case m.Type != autoscalingv2.ResourceMetricSourceType || r == nil || r.Name != corev1.ResourceCPU || r.Target.AverageUtilization == nil:
			others = append(others, oldMetric(m))
		case out.Spec.TargetCPUUtilizationPercentage == nil:
			out.Spec.TargetCPUUtilizationPercentage = r.Target.AverageUtilization
		}
	}
	var statuses []autoscalingv1.MetricStatus
	for _, m := range o.Status.CurrentMetrics {
		statuses = append(statuses, oldMetricStatus(m))
		if r := m.Resource; m.Type == autoscalingv2.ResourceMetricSourceType && r != nil && r.Name == corev1.ResourceCPU && r.Current.AverageUtilization != nil {
			out.Status.CurrentCPUUtilizationPercentage = r.Current.AverageUtilization
		}
	}
	carry(out, carriedMetrics, len(others) > 0, others)
	carry(out, carriedStatuses, len(statuses) > 0, statuses)
	carry(out, carriedBehavior, o.Spec.Behavior != nil, inside(o.Spec.Behavior))
	carry(out, carriedConditions, len(o.Status.Conditions) > 0, o.Status.Conditions)
	return out
}

// carry gives an object an annotation, if there is something to carry.
func carry(to *autoscalingv1.HorizontalPodAutoscaler, annotation string, something bool, value any) {
	text, err := json.Marshal(value)
	if !something || err != nil {
		return
	}
	if to.Annotations == nil {
		to.Annotations = map[string]string{}
	}
	to.Annotations[annotation] = string(text)
}
