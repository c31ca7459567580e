// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkTolerations checks the tolerations of a Pod.
func checkTolerations(f *findings, path *field.Path, tolerations []corev1.Toleration) {
	for i, t := range tolerations {
		at := path.Index(i)
		if t.Key != "" {
			f.add(metav1validation.ValidateLabelName(t.Key, at.Child("key")))
		} else if t.Operator != corev1.TolerationOpExists {
			f.invalid(at.Child("operator"), t.Operator, "operator must be Exists when `key` is empty, which means \"match all values and all keys\"")
		}
		if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
			f.invalid(at.Child("effect"), t.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
		}
		switch t.Operator {
		case corev1.TolerationOpEqual, "":
			if wrong := utilvalidation.IsValidLabelValue(t.Value); len(wrong) > 0 {
				f.invalid(at.Child("operator"), t.Value, strings.Join(wrong, ";"))
			}
		case corev1.TolerationOpExists:
			if t.Value != "" {
				f.invalid(at.Child("operator"), t.Value, "value must be empty when `operator` is 'Exists'")
			}
		case corev1.TolerationOpLt, corev1.TolerationOpGt:
		default:
			supported(f, at.Child("operator"), t.Operator, corev1.TolerationOpEqual, corev1.TolerationOpExists)
		}
		if t.Effect != "" {
			supported(f, at.Child("effect"), t.Effect, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)
		}
	}
}

// checkSpread checks how Pods are spread.
func checkSpread(f *findings, path *field.Path, constraints []corev1.TopologySpreadConstraint) {
	for i, c := range constraints {
		at := path.Index(i)
		positive(f, at.Child("maxSkew"), int64(c.MaxSkew))
		if c.TopologyKey == "" {
			f.required(at.Child("topologyKey"), "can not be empty")
		}
		supported(f, at.Child("whenUnsatisfiable"), c.WhenUnsatisfiable, corev1.DoNotSchedule, corev1.ScheduleAnyway)
		for _, other := range constraints[i+1:] {
			if other.TopologyKey == c.TopologyKey && other.WhenUnsatisfiable == c.WhenUnsatisfiable {
				f.duplicate(at.Child("{topologyKey, whenUnsatisfiable}"), fmt.Sprintf("{%v, %v}", c.TopologyKey, c.WhenUnsatisfiable))
				break
			}
		}
		f.add(metav1validation.ValidateLabelSelector(c.LabelSelector, metav1validation.LabelSelectorValidationOptions{}, at.Child("labelSelector")))
	}
}

// positive checks that a number is above 0.
func positive(f *findings, path *field.Path, number int64) {
	if number <= 0 {
		f.invalid(path, number, "must be greater than zero")
	}
}

// checkAffinity checks the affinity of a Pod, which may be nil.
func checkAffinity(f *findings, path *field.Path, a *corev1.Affinity) {
	if a == nil {
		return
	}
	const required, preferred = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
	if n := a.NodeAffinity; n != nil {
		at := path.Child("nodeAffinity")
		if n.RequiredDuringSchedulingIgnoredDuringExecution != nil {
			checkNodeSelector(f, at.Child(required), n.RequiredDuringSchedulingIgnoredDuringExecution)
		}
		for i, term := range n.PreferredDuringSchedulingIgnoredDuringExecution {
			checkWeight(f, at.Child(preferred).Index(i), term.Weight)
			checkTerm(f, at.Child(preferred).Index(i).Child("preference"), term.Preference)
		}
	}
	each := func(at *field.Path, musts []corev1.PodAffinityTerm, mays []corev1.WeightedPodAffinityTerm) {
		for i, term := range musts {
			checkPodTerm(f, at.Child(required).Index(i), term)
		}
		for i, term := range mays {
			checkWeight(f, at.Child(preferred).Index(i), term.Weight)
			checkPodTerm(f, at.Child(preferred).Index(i).Child("podAffinityTerm"), term.PodAffinityTerm)
		}
	}
	if p := a.PodAffinity; p != nil {
		each(path.Child("podAffinity"), p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if p := a.PodAntiAffinity; p != nil {
		each(path.Child("podAntiAffinity"), p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

func checkWeight(f *findings, path *field.Path, weight int32) {
	if weight <= 0 || weight > 100 {
		f.invalid(path.Child("weight"), weight, "must be in the range 1-100")
	}
}

func checkPodTerm(f *findings, path *field.Path, t corev1.PodAffinityTerm) {
	f.add(metav1validation.ValidateLabelSelector(t.LabelSelector, metav1validation.LabelSelectorValidationOptions{}, path.Child("labelSelector")))
	if t.TopologyKey == "" {
		f.required(path.Child("topologyKey"), "can not be empty")
	}
	f.add(metav1validation.ValidateLabelName(t.TopologyKey, path.Child("topologyKey")))
}

// checkNodeSelector checks which nodes are selected.
func checkNodeSelector(f *findings, path *field.Path, s *corev1.NodeSelector) {
	at := path.Child("nodeSelectorTerms")
	if len(s.NodeSelectorTerms) == 0 {
		f.required(at, "must have at least one node selector term")
	}
	for i, term := range s.NodeSelectorTerms {
		checkTerm(f, at.Index(i), term)
	}
}

func checkTerm(f *findings, path *field.Path, term corev1.NodeSelectorTerm) {
	for i, r := range term.MatchExpressions {
		at := path.Child("matchExpressions").Index(i)
		values := at.Child("values")
		switch r.Operator {
		case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
			if len(r.Values) == 0 {
				f.required(values, "must be specified when `operator` is 'In' or 'NotIn'")
			}
		case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
			if len(r.Values) > 0 {
				f.forbidden(values, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
			}
		case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
			if len(r.Values) != 1 {
				f.required(values, "must be specified single value when `operator` is 'Lt' or 'Gt'")
			}
		default:
			f.invalid(at.Child("operator"), r.Operator, "not a valid selector operator")
		}
		f.add(metav1validation.ValidateLabelName(r.Key, at.Child("key")))
		for j, value := range r.Values {
			f.each(values.Index(j), value, utilvalidation.IsValidLabelValue(value))
		}
	}
}
