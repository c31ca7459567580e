// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// selector selects the objects of a list or a watch. A field selector may use any field with a plain value; a real
// server supports only some.
type selector struct {
	labels labels.Selector
	fields fields.Selector
	name   string
}

func selectorOf(r Request) (selector, error) {
	byLabel, err := labels.Parse(r.options.Get("labelSelector"))
	if err != nil {
		return selector{}, apierrors.NewBadRequest("labelSelector: " + err.Error())
	}
	byField, err := fields.ParseSelector(r.options.Get("fieldSelector"))
	if err != nil {
		return selector{}, apierrors.NewBadRequest("fieldSelector: " + err.Error())
	}
	return selector{labels: byLabel, fields: byField, name: r.Name}, nil
}

func (s selector) matches(o *unstructured.Unstructured) bool {
	if o == nil || s.name != "" && s.name != o.GetName() {
		return false
	}
	return s.labels.Matches(labels.Set(o.GetLabels())) && s.fields.Matches(plain{o.Object})
}

// plain makes an object's values available to a field selector.
type plain struct{ tree map[string]any }

// Has reports whether the field exists.
func (p plain) Has(field string) bool { return p.Get(field) != "" }

// Get returns the field's value as text.
func (p plain) Get(field string) string {
	value, found, err := unstructured.NestedFieldNoCopy(p.tree, strings.Split(field, ".")...)
	if err != nil || !found || value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

func everything() selector {
	return selector{labels: labels.Everything(), fields: fields.Everything()}
}
