// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkSelector checks that a selector is there and not empty, and selects the template's Pods. The words name the
// kind. It reports whether the template is to be checked.
func checkSelector(f *findings, selector *metav1.LabelSelector, template *corev1.PodTemplateSpec, kind string) bool {
	path, why := spec().Child("selector"), "invalid label selector"
	if kind == "statefulset" {
		why = ""
	}
	if selector == nil {
		if kind != "daemonset" {
			f.required(path, "")
		}
		return checkSelects(f, path, selector, template, why)
	}
	f.add(metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path))
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		f.invalid(path, selector, "empty selector is invalid for "+kind)
	}
	return checkSelects(f, path, selector, template, why)
}

// checkSelects checks that a selector selects the template's Pods. An empty one does. It reports whether the selector
// is one; if it is not, why says so.
func checkSelects(f *findings, path *field.Path, selector *metav1.LabelSelector, template *corev1.PodTemplateSpec, why string) bool {
	selects, err := metav1.LabelSelectorAsSelector(selector)
	switch {
	case err != nil:
		f.invalid(path, selector, why)
		return false
	case !selects.Empty() && !selects.Matches(labels.Set(template.Labels)):
		f.invalid(spec().Child("template", "metadata", "labels"), template.Labels, "`selector` does not match template `labels`")
	}
	return true
}

func checkDeployment(f *findings, next, old *appsv1.Deployment) {
	s, template := &next.Spec, spec().Child("template")
	notNegativeIf(f, spec().Child("replicas"), s.Replicas)
	if checkSelector(f, s.Selector, &s.Template, "deployment") {
		checkTemplate(f, template, &s.Template)
		restartsAlways(f, template.Child("spec"), &s.Template.Spec, "ReplicaSet")
	}
	checkStrategy(f, spec().Child("strategy"), s.Strategy)
	f.notNegative(spec().Child("minReadySeconds"), int64(s.MinReadySeconds))
	notNegativeIf(f, spec().Child("revisionHistoryLimit"), s.RevisionHistoryLimit)
	if limit := s.ProgressDeadlineSeconds; limit != nil {
		f.notNegative(spec().Child("progressDeadlineSeconds"), int64(*limit))
		if *limit <= s.MinReadySeconds {
			f.invalid(spec().Child("progressDeadlineSeconds"), *limit, "must be greater than minReadySeconds")
		}
	}
	if old != nil {
		f.fixed(spec().Child("selector"), s.Selector, old.Spec.Selector)
	}
}

// checkStrategy checks how a Deployment is updated. Words of the API server have the names of its own type.
func checkStrategy(f *findings, path *field.Path, s appsv1.DeploymentStrategy) {
	rolling := path.Child("rollingUpdate")
	switch s.Type {
	case appsv1.RecreateDeploymentStrategyType:
		if s.RollingUpdate != nil {
			f.forbidden(rolling, "may not be specified when strategy `type` is 'Recreate'")
		}
	case appsv1.RollingUpdateDeploymentStrategyType:
		checkShare(f, rolling.Child("maxUnavailable"), s.RollingUpdate.MaxUnavailable)
		checkShare(f, rolling.Child("maxSurge"), s.RollingUpdate.MaxSurge)
		if amountOf(s.RollingUpdate.MaxUnavailable) == 0 && amountOf(s.RollingUpdate.MaxSurge) == 0 {
			f.invalid(rolling.Child("maxUnavailable"), s.RollingUpdate.MaxUnavailable, "may not be 0 when `maxSurge` is 0")
		}
		notAbove100(f, rolling.Child("maxUnavailable"), s.RollingUpdate.MaxUnavailable)
	default:
		f.list = append(f.list, field.NotSupported(path, inside(s), []string{"Recreate", "RollingUpdate"}))
	}
}

// checkShare checks a number, or a percentage, of Pods.
func checkShare(f *findings, path *field.Path, share *intstr.IntOrString) {
	switch {
	case share == nil:
	case share.Type == intstr.String:
		for _, message := range utilvalidation.IsValidPercent(share.StrVal) {
			f.invalid(path, share, message)
		}
	default:
		f.notNegative(path, int64(share.IntVal))
	}
}

// amountOf returns the number of a share, be it a percentage or not.
func amountOf(share *intstr.IntOrString) int {
	if share == nil {
		return 0
	}
	if share.Type == intstr.Int {
		return int(share.IntVal)
	}
	percent, _ := strconv.Atoi(strings.TrimSuffix(share.StrVal, "%"))
	return percent
}

func notAbove100(f *findings, path *field.Path, share *intstr.IntOrString) {
	if share != nil && share.Type == intstr.String && strings.HasSuffix(share.StrVal, "%") && amountOf(share) > 100 {
		f.invalid(path, share, "must not be greater than 100%")
	}
}

func checkReplicaSet(f *findings, next, old *appsv1.ReplicaSet) {
	s, template := &next.Spec, spec().Child("template")
	notNegativeIf(f, spec().Child("replicas"), s.Replicas)
	f.notNegative(spec().Child("minReadySeconds"), int64(s.MinReadySeconds))
	if checkSelector(f, s.Selector, &s.Template, "deployment") { // the word of the API server
		checkTemplate(f, template, &s.Template)
		restartsAlways(f, template.Child("spec"), &s.Template.Spec, "ReplicaSet")
	}
	if old != nil {
		f.fixed(spec().Child("selector"), s.Selector, old.Spec.Selector)
	}
}

func checkDaemonSet(f *findings, next, old *appsv1.DaemonSet) {
	s, template := &next.Spec, spec().Child("template")
	if old != nil {
		f.fixed(spec().Child("selector"), s.Selector, old.Spec.Selector)
	}
	checkSelector(f, s.Selector, &s.Template, "daemonset")
	checkTemplate(f, template, &s.Template)
	restartsAlways(f, template.Child("spec"), &s.Template.Spec, "DaemonSet")
	f.notNegative(spec().Child("minReadySeconds"), int64(s.MinReadySeconds))
	update := spec().Child("updateStrategy")
	switch s.UpdateStrategy.Type {
	case appsv1.OnDeleteDaemonSetStrategyType:
	case appsv1.RollingUpdateDaemonSetStrategyType:
		checkDaemonUpdate(f, update.Child("rollingUpdate"), s.UpdateStrategy.RollingUpdate)
	default:
		f.list = append(f.list, field.NotSupported(update, inside(s.UpdateStrategy), []string{"RollingUpdate", "OnDelete"}))
	}
	notNegativeIf(f, spec().Child("revisionHistoryLimit"), s.RevisionHistoryLimit)
}

func checkDaemonUpdate(f *findings, path *field.Path, r *appsv1.RollingUpdateDaemonSet) {
	unavailable, surge := path.Child("maxUnavailable"), path.Child("maxSurge")
	checkShare(f, unavailable, r.MaxUnavailable)
	checkShare(f, surge, r.MaxSurge)
	notAbove100(f, unavailable, r.MaxUnavailable)
	notAbove100(f, surge, r.MaxSurge)
	switch {
	case amountOf(r.MaxUnavailable) != 0 && amountOf(r.MaxSurge) != 0:
		f.invalid(surge, r.MaxSurge, "may not be set when maxUnavailable is non-zero")
	case amountOf(r.MaxUnavailable) == 0 && amountOf(r.MaxSurge) == 0:
		f.required(unavailable, "cannot be 0 when maxSurge is 0")
	}
}

// mustBe is how the API server names the values of a field of a StatefulSet.
func mustBe[T ~string](values ...T) string {
	if len(values) == 2 {
		return fmt.Sprintf("must be '%s' or '%s'", values[0], values[1])
	}
	return fmt.Sprintf("must be '%s', '%s', or '%s'", values[0], values[1], values[2])
}
