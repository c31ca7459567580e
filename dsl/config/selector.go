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

	"github.com/handwerk-dev/handwerk/dsl/form"
)

type selector struct {
	MatchLabels      map[string]string `yaml:"matchLabels" doc:"Labels that an object must have, with these values."`
	MatchExpressions []requirement     `yaml:"matchExpressions" doc:"Conditions on labels."`
	Fields           form.Texts        `yaml:"fields" doc:"Field selectors that the server knows for the resource, such as status.phase=Running; one or a list."`
}

type requirement struct {
	Key      string   `yaml:"key" required:"true" doc:"The label."`
	Operator operator `yaml:"operator" required:"true" doc:"How the label is compared."`
	Values   []string `yaml:"values" doc:"What it is compared to, for In and NotIn."`
}

// operator is how a label is compared.
type operator string

// Choices are the ways.
func (operator) Choices() (string, []string) {
	return "operator", []string{"In", "NotIn", "Exists", "DoesNotExist"}
}

func (w *watched) selector(s *selector) {
	at := w.at.Key("selector")
	w.out.LabelSelector = w.labelSelector(at, s)
	for i, text := range s.Fields {
		place := at.Key("fields")
		if w.Has(place.Index(i)) {
			place = place.Index(i)
		}
		if _, err := fields.ParseSelector(text); err != nil {
			w.Fault(place, "want a field selector such as status.phase=Running: %v", err)
		}
	}
	w.out.FieldSelector = strings.Join(s.Fields, ",")
}

// labelSelector returns the selector's conditions on labels in kubectl's form.
func (w *watched) labelSelector(at path, s *selector) string {
	chosen := labels.NewSelector()
	add := func(key string, op selection.Operator, values ...string) {
		if r, err := labels.NewRequirement(key, op, values); err == nil {
			chosen = chosen.Add(*r)
		}
	}
	equal := at.Key("matchLabels")
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		value := s.MatchLabels[key]
		w.labelKey(equal.Key(key), key)
		w.labelValue(equal.Key(key), value)
		add(key, selection.Equals, value)
	}
	for i, r := range s.MatchExpressions {
		if op, ok := w.requirement(at.Key("matchExpressions").Index(i), r); ok {
			add(r.Key, op, r.Values...)
		}
	}
	return chosen.String()
}

func (w *watched) requirement(at path, r requirement) (selection.Operator, bool) {
	if r.Key != "" {
		w.labelKey(at.Key("key"), r.Key)
	}
	for i, value := range r.Values {
		w.labelValue(at.Key("values").Index(i), value)
	}
	operators := map[operator]selection.Operator{
		"In": selection.In, "NotIn": selection.NotIn, "Exists": selection.Exists, "DoesNotExist": selection.DoesNotExist,
	}
	values := at.Key("values")
	switch r.Operator {
	case "":
		return "", false
	case "In", "NotIn":
		if !w.Has(values) {
			w.Fault(at, "values is required for operator %s", r.Operator)
		}
	default:
		if w.Has(values) {
			w.FaultKey(values, "is not for operator %s", r.Operator)
		}
	}
	return operators[r.Operator], true
}

func (p *part) labelKey(at path, key string) {
	if faults := validation.IsQualifiedName(key); len(faults) > 0 {
		p.FaultKey(at, "the key is not one that objects may have: %s", faults[0])
	}
}

func (p *part) labelValue(at path, value string) {
	if faults := validation.IsValidLabelValue(value); len(faults) > 0 {
		p.Fault(at, "the value is not one that labels may have: %s", faults[0])
	}
}
