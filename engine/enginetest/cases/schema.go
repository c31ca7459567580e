// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"bytes"
	"encoding/json"

	"github.com/handwerk-dev/handwerk/dsl/form"
)

// Schema returns the JSON Schema (draft 2020-12) of files with cases, for editors.
func Schema() ([]byte, error) {
	root := form.Describe(typeOf[document](), nil)
	root.Schema = "https://json-schema.org/draft/2020-12/schema"
	root.ID = "https://handwerk.dev/schemas/cases.v1alpha1.json"
	root.Title = "Cases of a Handwerk operator"
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(root)
	return out.Bytes(), err
}
