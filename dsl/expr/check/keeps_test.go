// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"testing"

	"github.com/handwerk-dev/handwerk/dsl/expr/check"
)

func TestWhatTheServerKeepsIsKnownFromSchemas(t *testing.T) {
	for name, test := range map[string]struct {
		schema string
		keeps  bool
	}{
		"a field that it names":             {`{"type": "object", "properties": {"status": {"type": "object", "properties": {"state": {"type": "string"}}}}}`, true},
		"another field":                     {`{"type": "object", "properties": {"status": {"type": "object", "properties": {"stage": {"type": "string"}}}}}`, false},
		"a map that is not there":           {`{"type": "object", "properties": {"spec": {"type": "object"}}}`, false},
		"a map without fields":              {`{"type": "object", "properties": {"status": {"type": "object"}}}`, false},
		"a map that may have any":           {`{"type": "object", "properties": {"status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}`, true},
		"a map of values of one kind":       {`{"type": "object", "properties": {"status": {"type": "object", "additionalProperties": {"type": "string"}}}}`, true},
		"a field that another schema says":  {`{"type": "object", "properties": {"status": {"allOf": [{"type": "object", "properties": {"state": {"type": "string"}}}]}}}`, true},
		"a field that no other schema says": {`{"type": "object", "properties": {"status": {"allOf": [{"type": "object", "properties": {"stage": {"type": "string"}}}]}}}`, false},
		"an object without a known schema":  {`{}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := check.Keeps(schema(t, test.schema), "status", "state"); got != test.keeps {
				t.Errorf("Keeps() = %v, want %v", got, test.keeps)
			}
		})
	}
	if !check.Keeps(nil, "status", "state") {
		t.Error("without a schema something is known")
	}
}
