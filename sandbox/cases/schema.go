// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"reflect"

	"github.com/handwerk-dev/handwerk/dsl/form"
)

// Schema returns the JSON Schema (draft 2020-12) of files with cases, for editors.
func Schema() ([]byte, error) {
	return Describe().Document("cases.v1alpha1.json", "Cases of a Handwerk operator")
}

// Describe returns the schema of files with cases.
func Describe() *form.Schema { return form.Describe(reflect.TypeFor[document](), nil) }
