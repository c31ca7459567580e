// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

func TestAnOldDocumentHasWhatOldClientsCanRead(t *testing.T) {
	for name, c := range map[string]struct{ v3, v2 string }{
		"a reference":               {`{"$ref":"#/components/schemas/a.B"}`, `{"$ref":"#/definitions/a.B"}`},
		"a reference with a text":   {`{"description":"b","default":{},"allOf":[{"$ref":"#/components/schemas/a.B"}]}`, `{"description":"b","default":{},"$ref":"#/definitions/a.B"}`},
		"a reference of items":      {`{"type":"array","items":{"$ref":"#/components/schemas/a.B"}}`, `{"type":"array","items":{"$ref":"#/definitions/a.B"}}`},
		"a number or a text":        {`{"format":"int-or-string","oneOf":[{"type":"integer"},{"type":"string"}]}`, `{"format":"int-or-string","type":"string"}`},
		"one of a CRD":              {`{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]}`, `{"x-kubernetes-int-or-string":true}`},
		"rules of values":           {`{"type":"string","enum":["a"],"not":{"enum":["b"]},"oneOf":[{"pattern":"a"}]}`, `{"type":"string","enum":["a"]}`},
		"a field that may be null":  {`{"type":"object","required":["a","b"],"properties":{"a":{"type":"string","nullable":true},"b":{"type":"string"}}}`, `{"type":"object","required":["b"],"properties":{"a":{},"b":{"type":"string"}}}`},
		"unknown fields":            {`{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"type":"string"}}}`, `{"x-kubernetes-preserve-unknown-fields":true}`},
		"a list of unknown content": {`{"type":"array"}`, `{}`},
		"values by names":           {`{"type":"object","additionalProperties":{"$ref":"#/components/schemas/a.B"}}`, `{"type":"object","additionalProperties":{"$ref":"#/definitions/a.B"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			from := &spec.Schema{}
			if err := json.Unmarshal([]byte(c.v3), from); err != nil {
				t.Fatal(err)
			}
			data, err := json.Marshal(V2(from))
			if err != nil {
				t.Fatal(err)
			}
			var want, got any
			if err := json.Unmarshal([]byte(c.v2), &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("in v2 (-want +got):\n%s", diff)
			}
			again, err := json.Marshal(from)
			if err != nil {
				t.Fatal(err)
			}
			if got = nil; json.Unmarshal(again, &got) != nil {
				t.Fatal(again)
			}
			if want = nil; json.Unmarshal([]byte(c.v3), &want) != nil {
				t.Fatal(c.v3)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the schema of v3 has changed:\n%s", diff)
			}
		})
	}
	if _, err := Binary([]byte("[")); err == nil {
		t.Error("what is no document has a binary form")
	}
}
