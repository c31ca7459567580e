// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"
)

func (w *watched) selector(s *selector) {
	at := w.at.key("selector")
	w.out.LabelSelector = w.labelSelector(at, s)
	for i, text := range s.Fields {
		place := at.key("fields")
		if w.has(place.index(i)) {
			place = place.index(i)
		}
		if _, err := fields.ParseSelector(text); err != nil {
			w.fault(place, "want a field selector such as status.phase=Running: %v", err)
		}
	}
	w.out.FieldSelector = strings.Join(s.Fields, ",")
}

// labelSelector returns the selector's conditions on labels in kubectl's form.
func (w *watched) labelSelector(at path, s *selector) string {
	if len(w.nearest(at).Content) == 0 {
		w.fault(at, "must not be empty")
	}
	chosen := labels.NewSelector()
	add := func(key string, op selection.Operator, values ...string) {
		if r, err := labels.NewRequirement(key, op, values); err == nil {
			chosen = chosen.Add(*r)
		}
	}
	equal := at.key("matchLabels")
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		value := s.MatchLabels[key]
		w.labelKey(equal.key(key), key)
		w.labelValue(equal.key(key), value)
		add(key, selection.Equals, value)
	}
	for i, r := range s.MatchExpressions {
		if op, ok := w.requirement(at.key("matchExpressions").index(i), r); ok {
			add(r.Key, op, r.Values...)
		}
	}
	return chosen.String()
}

func (w *watched) requirement(at path, r requirement) (selection.Operator, bool) {
	if r.Key != "" {
		w.labelKey(at.key("key"), r.Key)
	}
	for i, value := range r.Values {
		w.labelValue(at.key("values").index(i), value)
	}
	operators := map[operator]selection.Operator{
		"In": selection.In, "NotIn": selection.NotIn, "Exists": selection.Exists, "DoesNotExist": selection.DoesNotExist,
	}
	values := at.key("values")
	switch r.Operator {
	case "":
		return "", false
	case "In", "NotIn":
		if !w.has(values) {
			w.fault(at, "values is required for operator %s", r.Operator)
		}
	default:
		if w.has(values) {
			w.faultKey(values, "is not for operator %s", r.Operator)
		}
	}
	return operators[r.Operator], true
}

func (p *part) labelKey(at path, key string) {
	if faults := validation.IsQualifiedName(key); len(faults) > 0 {
		p.faultKey(at, "the key is not one that objects may have: %s", faults[0])
	}
}

func (p *part) labelValue(at path, value string) {
	if faults := validation.IsValidLabelValue(value); len(faults) > 0 {
		p.fault(at, "the value is not one that labels may have: %s", faults[0])
	}
}
