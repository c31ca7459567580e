// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
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
