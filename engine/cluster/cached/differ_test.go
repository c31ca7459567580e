// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestStatesDifferInFields holds when two states of an object differ in what a reader looks at.
func TestStatesDifferInFields(t *testing.T) {
	const entry = `{"manager":"kubectl-edit","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:x":{}}}}`
	tests := map[string]struct {
		a, b   string
		differ bool
	}{
		"nothing differs":                       {`{"data":{"a":"1"}}`, `{"data":{"a":"1"}}`, false},
		"a field beside":                        {`{"data":{"a":"1","b":"1"}}`, `{"data":{"a":"1","b":"2"}}`, false},
		"a field beside comes":                  {`{"data":{"a":"1"}}`, `{"data":{"a":"1","b":"2"},"status":{}}`, false},
		"a field":                               {`{"data":{"a":"1"}}`, `{"data":{"a":"2"}}`, true},
		"a field goes":                          {`{"data":{"a":"1","b":"1"}}`, `{"data":{"b":"1"}}`, true},
		"the map around it goes":                {`{"data":{"a":"1"}}`, `{}`, true},
		"an empty map around it comes":          {`{}`, `{"data":{}}`, true},
		"the map around it is no map":           {`{"data":{"a":"1"}}`, `{"data":"a"}`, true},
		"what is below a field":                 {`{"spec":{"x":{"y":1}}}`, `{"spec":{"x":{"y":2}}}`, true},
		"what is beside a field in its map":     {`{"spec":{"x":{"y":1}}}`, `{"spec":{"x":{"y":1},"z":1}}`, false},
		"a key that JSON escapes":               {`{"data":{"a":"1","q\"":{"b":"1"}}}`, `{"data":{"a":"1","q\"":{"b":"2"}}}`, false},
		"below a key that JSON escapes":         {`{"odd":{"q\"":"1"}}`, `{"odd":{"q\"":"2"}}`, true},
		"a key that the server escapes":         {`{"amp":{"q\u0026":"1"}}`, `{"amp":{"q\u0026":"2"}}`, true},
		"the entry of a manager that counts":    {`{}`, `{"metadata":{"managedFields":[` + entry + `]}}`, true},
		"the entry of one that does not count":  {`{"metadata":{}}`, `{"metadata":{"managedFields":[` + strings.Replace(entry, "edit", "label", 1) + `]}}`, false},
		"one goes beside one that stays":        {`{"metadata":{"managedFields":[` + entry + `,` + strings.Replace(entry, "edit", "label", 1) + `]}}`, `{"metadata":{"managedFields":[` + entry + `]}}`, false},
		"a label, where one label is looked at": {`{"metadata":{"labels":{"app":"x"}}}`, `{"metadata":{"labels":{"app":"x","b":"y"}}}`, false},
		"that label":                            {`{"metadata":{"labels":{"app":"x"}}}`, `{"metadata":{"labels":{"app":"z"}}}`, true},
	}
	object := func(t *testing.T, text string) *Object { return hold(t, Form{Markers: "kubectl"}, parse(t, text)) }
	fields := FieldsOf([]dsl.Path{{"data", "a"}, {"spec", "x"}, {"odd", `q"`}, {"amp", "q&"}, {"metadata", "labels", "app"}})
	counts := func(manager string) bool { return manager == "kubectl-edit" }
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a, b := object(t, tt.a), object(t, tt.b)
			if got := fields.Differ(a, b, counts); got != tt.differ {
				t.Errorf("differ %t, want %t", got, tt.differ)
			}
			if got := fields.Differ(b, a, counts); got != tt.differ {
				t.Errorf("the other way round: differ %t, want %t", got, tt.differ)
			}
			if !FieldsOf([]dsl.Path{nil}).Differ(a, object(t, `{"x":1}`), counts) {
				t.Error("the whole object does not differ")
			}
		})
	}
}
