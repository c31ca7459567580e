// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/handwerk-dev/handwerk/dsl/form"
)

type selector struct {
	MatchLabels      map[string]string `yaml:"matchLabels" doc:"Labels that an object must have, with these values."`
	MatchExpressions []requirement     `yaml:"matchExpressions" doc:"Conditions on labels; all must hold."`
	Fields           form.Texts        `yaml:"fields" doc:"Field selectors that the API server knows for the resource, as in status.phase=Running; one or a list."`
}

type requirement struct {
	Key      string   `yaml:"key" required:"true" doc:"The label."`
	Operator operator `yaml:"operator" required:"true" doc:"How the label is compared."`
	Values   []string `yaml:"values" doc:"The values to compare with, for In and NotIn."`
}

// operator is the operator of a condition on a label.
type operator string

// Choices returns the operators.
func (operator) Choices() (string, []string) {
	return "operator", []string{"In", "NotIn", "Exists", "DoesNotExist"}
}

func (c *compiling) selector(at path, s *selector) {
	c.out.LabelSelector = c.labelSelector(at, s)
	for i, text := range s.Fields {
		place := at.Key("fields")
		if c.Has(place.Index(i)) {
			place = place.Index(i)
		}
		if _, err := fields.ParseSelector(text); err != nil {
			c.Fault(place, "want a field selector such as status.phase=Running: %v", err)
		}
	}
	c.out.FieldSelector = strings.Join(s.Fields, ",")
}

// labelSelector returns the selector's conditions on labels in kubectl's form.
func (p *part) labelSelector(at path, s *selector) string {
	chosen := metav1.LabelSelector{MatchLabels: s.MatchLabels}
	equal := at.Key("matchLabels")
	for key, value := range s.MatchLabels {
		p.labelKey(equal.Key(key), key)
		p.labelValue(equal.Key(key), value)
	}
	for i, r := range s.MatchExpressions {
		p.requirement(at.Key("matchExpressions").Index(i), r)
		chosen.MatchExpressions = append(chosen.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: r.Key, Operator: metav1.LabelSelectorOperator(r.Operator), Values: r.Values,
		})
	}
	out, err := metav1.LabelSelectorAsSelector(&chosen)
	if err != nil {
		return "" // the fault is reported already
	}
	return out.String()
}

func (p *part) requirement(at path, r requirement) {
	if r.Key != "" {
		p.labelKey(at.Key("key"), r.Key)
	}
	values := at.Key("values")
	for i, value := range r.Values {
		p.labelValue(values.Index(i), value)
	}
	switch r.Operator {
	case "":
	case "In", "NotIn":
		if !p.Has(values) {
			p.Fault(at, "values is required for operator %s", r.Operator)
		}
	default:
		if p.Has(values) {
			p.FaultKey(values, "is not for operator %s", r.Operator)
		}
	}
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
