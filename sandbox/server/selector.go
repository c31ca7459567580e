// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// stored has the stored names of fields, as a table has them.
	stored map[string]string
}

// selection returns what a list, a watch or the deletion of a collection is about, and its options, or why they are refused.
func (s *Server) selection(t *table, r Request) (selector, metav1.ListOptions, error) {
	var options metav1.ListOptions
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&r.options, &options, nil); err != nil {
		return selector{}, options, apierrors.NewBadRequest(err.Error())
	}
	byLabel, err := labels.Parse(options.LabelSelector)
	if err != nil {
		return selector{}, options, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(options.FieldSelector)
	if err != nil {
		return selector{}, options, apierrors.NewBadRequest(err.Error())
	}
	out := selector{labels: byLabel, fields: byField, name: r.Name, stored: t.stored}
	return out, options, cmp.Or(validOptions(r, options), s.selects(t, r, byField))
}

func (s selector) matches(row *store.Row) bool {
	if row == nil || s.name != "" && s.name != row.Name {
		return false
	}
	return s.labels.Matches(row.Labels) && (s.fields.Empty() || s.fields.Matches(values{row, s.stored}))
}

// values makes an object's values available to a field selector.
type values struct {
	row    *store.Row
	stored map[string]string
}

// Has reports whether the field exists.
func (v values) Has(field string) bool { return v.Get(field) != "" }

// Get returns the field's value as text.
func (v values) Get(field string) string {
	switch field {
	case "metadata.name":
		return v.row.Name
	case "metadata.namespace":
		return v.row.Namespace
	}
	path := strings.Split(field, ".")
	path[0] = cmp.Or(v.stored[path[0]], path[0])
	value, found, err := unstructured.NestedFieldNoCopy(v.row.Tree().Object, path...)
	if err != nil || !found || value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

func everything() selector {
	return selector{labels: labels.Everything(), fields: fields.Everything()}
}

func (s selector) empty() bool { return s.name == "" && s.labels.Empty() && s.fields.Empty() }
