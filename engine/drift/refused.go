// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"regexp"
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

// Refused returns the fields of a manager that the API server requires and that it loses when it applies desired. Only a cause that
// says so counts: any other error may pass, and so may those of policies and webhooks.
func Refused(desired, live *unstructured.Unstructured, manager string, causes []metav1.StatusCause) *fieldpath.Set {
	lacking, out := Lacking(desired, live, manager), fieldpath.NewSet()
	for _, cause := range causes {
		if cause.Type != metav1.CauseTypeFieldValueRequired {
			continue
		}
		for path := range lacking.All() {
			if related(namesOf(path), indexes.ReplaceAllString(cause.Field, "")) {
				out.Insert(path.Copy())
			}
		}
	}
	return out
}

// indexes are the parts of a field's name that stand for an entry of a list or a map.
var indexes = regexp.MustCompile(`\[[^\]]*\]`)

// namesOf returns a path in the form of an error, without entries of lists.
func namesOf(path fieldpath.Path) string {
	var names []string
	for _, each := range path {
		if each.FieldName != nil {
			names = append(names, *each.FieldName)
		}
	}
	return strings.Join(names, ".")
}

// related reports whether one field is the other one, or in it.
func related(a, b string) bool {
	return a != "" && b != "" && (strings.HasPrefix(a+".", b+".") || strings.HasPrefix(b+".", a+"."))
}
