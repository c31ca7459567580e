// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Lacking returns the fields of a manager that desired does not have.
func Lacking(desired, live *unstructured.Unstructured, manager string) *fieldpath.Set {
	out := fieldpath.NewSet()
	for path := range OwnFields(live, manager).All() {
		if _, wanted := valueAt(desired.Object, path); !wanted {
			out.Insert(path.Copy())
		}
	}
	return out
}

// Required returns the fields of a manager that the API server requires and that it loses when it applies desired. Only
// causes for missing required fields count: other errors may pass, and so may those of policies and webhooks.
func Required(desired, live *unstructured.Unstructured, manager string, causes []metav1.StatusCause) *fieldpath.Set {
	lacking, out := Lacking(desired, live, manager), fieldpath.NewSet()
	_, others := managersOf(live, manager)
	n := naming{desired.Object, live.Object, lacking, others}
	for _, cause := range causes {
		if cause.Type != metav1.CauseTypeFieldValueRequired {
			continue
		}
		field := strings.NewReplacer("[", ".", "]", "").Replace(cause.Field)
		for path := range lacking.All() {
			if name, whole := n.of(path); isBelow(name, field) || whole && isBelow(field, name) {
				out.Insert(path.Copy())
			}
		}
	}
	return out
}

// naming gives paths the form that they have in an error of the API server, with dots for brackets.
type naming struct {
	desired, live   any
	lacking, others *fieldpath.Set
}

// of returns the name of a path. Whole is false if it ends before a list entry whose index after the apply is unknown.
func (n naming) of(path fieldpath.Path) (name string, whole bool) {
	var names []string
	for i, each := range path {
		if each.FieldName != nil {
			names = append(names, *each.FieldName)
			continue
		}
		index := n.indexOf(path[:i], each)
		if index < 0 {
			return strings.Join(names, "."), false
		}
		names = append(names, strconv.Itoa(index))
	}
	return strings.Join(names, "."), true
}

// indexOf returns the index that an entry of a list has after the apply; -1 if it is gone then, or if desired brings new entries.
func (n naming) indexOf(list fieldpath.Path, entry fieldpath.PathElement) int {
	has, _ := valueAt(n.live, list)
	wanted, _ := valueAt(n.desired, list)
	existing, _ := has.([]any)
	sent, _ := wanted.([]any)
	for _, item := range sent {
		each, known := elementOf(fieldpath.NewSet(fieldpath.Path{entry}), item)
		if !known || !slices.ContainsFunc(existing, func(other any) bool { return isItem(each, other) }) {
			return -1
		}
	}
	index := 0
	for _, item := range existing {
		each, known := elementOf(fieldpath.NewSet(fieldpath.Path{entry}), item)
		if !known {
			return -1
		}
		at := append(slices.Clip(list), each)
		stays := !n.lacking.Has(at) || hasWithin(n.others, at)
		switch {
		case !each.Equals(entry):
			if stays {
				index++
			}
		case stays:
			return index
		default:
			return -1
		}
	}
	return -1
}

// isBelow reports whether one field is the other one, or in it.
func isBelow(field, other string) bool {
	return field != "" && other != "" && strings.HasPrefix(field+".", other+".")
}
