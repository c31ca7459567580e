// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package openapi_test

import (
	"encoding/json"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl/openapi"
)

func TestConditionsThatASchemaDoesNotKeepAreFound(t *testing.T) {
	status := func(text string) string { return `{"properties": {"status": ` + text + `}}` }
	conditions := func(items string) string { return status(`{"properties": {"conditions": {"items": ` + items + `}}}`) }
	for name, tt := range map[string]struct{ schema, want string }{
		"all of a condition":           {conditions(`{"properties": {"type": {}, "status": {}, "reason": {}, "message": {}}}`), ""},
		"no status and no reason":      {conditions(`{"properties": {"type": {}, "message": {}}}`), "the schema's status.conditions have no status and no reason"},
		"no reason":                    {conditions(`{"properties": {"type": {}, "status": {}}}`), "the schema's status.conditions have no reason"},
		"nothing of a condition":       {conditions(`{"type": "object"}`), "the schema's status.conditions have no type and no status and no reason"},
		"no conditions":                {status(`{"properties": {"phase": {}}}`), "the schema has no status.conditions"},
		"no status":                    {`{"properties": {"spec": {}}}`, "the schema has no status.conditions"},
		"conditions of any form":       {conditions(`{"x-kubernetes-preserve-unknown-fields": true}`), ""},
		"a status of any form":         {status(`{"x-kubernetes-preserve-unknown-fields": true}`), ""},
		"an object of any form":        {`{"x-kubernetes-preserve-unknown-fields": true}`, ""},
		"a map of conditions":          {status(`{"additionalProperties": {"type": "object"}}`), ""},
		"a list of what is not stated": {status(`{"properties": {"conditions": {"type": "array"}}}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			self := &spec.Schema{}
			if err := json.Unmarshal([]byte(tt.schema), self); err != nil {
				t.Fatal(err)
			}
			if got := openapi.ConditionsLack(self); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
