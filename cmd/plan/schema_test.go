// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// definition is a schema of an object.
type definition struct {
	Required   []string
	Properties map[string]any
}

// TestThePublishedSchemaIsThatOfAPlan holds that each type of a plan has the fields of its schema, and no others.
func TestThePublishedSchemaIsThatOfAPlan(t *testing.T) {
	text, err := os.ReadFile("../../docs/plan.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		definition

		Defs map[string]definition `json:"$defs"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	schema.Defs["Report"] = schema.definition
	for _, value := range []any{Report{}, Change{}, Field{}, HandlerRun{}, Call{}, Rights{}, Unready{}, Refusal{}, Failure{}} {
		of := reflect.TypeOf(value)
		t.Run(of.Name(), func(t *testing.T) {
			var names, required []string
			for _, f := range reflect.VisibleFields(of) {
				name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
				names = append(names, name)
				if options != "omitempty" {
					required = append(required, name)
				}
			}
			got := schema.Defs[of.Name()]
			slices.Sort(names)
			slices.Sort(required)
			slices.Sort(got.Required)
			var properties []string
			for name := range got.Properties {
				properties = append(properties, name)
			}
			slices.Sort(properties)
			if diff := cmp.Diff([][]string{names, required}, [][]string{properties, got.Required}); diff != "" {
				t.Errorf("fields and required fields (-type +schema):\n%s", diff)
			}
		})
	}
}
