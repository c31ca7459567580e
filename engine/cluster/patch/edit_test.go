// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// TestEditRepeats holds when the same patch of an object overwrites only what it overwrote before.
func TestEditRepeats(t *testing.T) {
	tests := map[string]struct {
		was, made, is, makes string
		want                 bool
	}{
		"nothing else has changed":                     {`{}`, `{"a":1}`, `{}`, `{"a":1}`, true},
		"another field has changed":                    {`{"b":1}`, `{"a":1,"b":1}`, `{"b":2}`, `{"a":1,"b":2}`, true},
		"the field has another value":                  {`{}`, `{"a":1}`, `{"a":2}`, `{"a":1}`, false},
		"the field has the value already":              {`{}`, `{"a":1}`, `{"a":1}`, `{"a":1}`, true},
		"the field had the value already, and has not": {`{"a":1}`, `{"a":1}`, `{"a":2}`, `{"a":1}`, false},
		"1 and 1.0 are the same":                       {`{"a":1}`, `{"a":2}`, `{"a":1.0}`, `{"a":2}`, true},
		"the field is gone":                            {`{"a":1}`, `{}`, `{}`, `{}`, true},
		"what is to go has another value":              {`{"a":1}`, `{}`, `{"a":2}`, `{}`, false},
		"a map came where there was none":              {`{}`, `{"m":{"a":1}}`, `{"m":{"b":1}}`, `{"m":{"a":1,"b":1}}`, true},
		"a map that is to go has one more field":       {`{"m":{"a":1}}`, `{}`, `{"m":{"a":1,"b":1}}`, `{}`, false},
		"a map that is to go has an empty field":       {`{"m":{}}`, `{}`, `{"m":{"a":{}}}`, `{}`, false},
		"a list that is to go has got empty":           {`{"m":{"l":[1]}}`, `{"m":{}}`, `{"m":{"l":[]}}`, `{"m":{}}`, false},
		"an empty map that is to go":                   {`{"m":{}}`, `{}`, `{"m":{},"b":1}`, `{"b":1}`, true},
		"an empty map was there already, and is not":   {`{"m":{}}`, `{"m":{}}`, `{}`, `{"m":{}}`, false},
		"a text came where a map was":                  {`{"m":{"a":1}}`, `{"m":{"a":2}}`, `{"m":"x"}`, `{"m":{"a":2}}`, false},
		"another entry was added by name":              {`{"l":[]}`, `{"l":[{"type":"A"}]}`, `{"l":[{"type":"B"}]}`, `{"l":[{"type":"B"},{"type":"A"}]}`, true},
		"the entry has changed": {
			`{"l":[{"name":"a","v":1}]}`, `{"l":[{"name":"a","v":2}]}`, `{"l":[{"name":"a","v":3}]}`, `{"l":[{"name":"a","v":2}]}`, false,
		},
		"another field of the entry has changed": {
			`{"l":[{"name":"a","v":1}]}`, `{"l":[{"name":"a","v":2}]}`, `{"l":[{"name":"a","v":1,"w":1}]}`, `{"l":[{"name":"a","v":2,"w":1}]}`, true,
		},
		"somebody's entry is to go":            {`{"l":["a"]}`, `{"l":["a","b"]}`, `{"l":["a","c"]}`, `{"l":["a","b"]}`, false},
		"somebody's order is to go":            {`{"l":["a","b"]}`, `{"l":["a","b","c"]}`, `{"l":["b","a"]}`, `{"l":["a","b","c"]}`, false},
		"entries that cannot be distinguished": {`{"l":[1]}`, `{"l":[1,2]}`, `{"l":[1,3]}`, `{"l":[1,3,2]}`, false},
		"entries that are there twice":         {`{"l":["a"]}`, `{"l":["a","b"]}`, `{"l":["a","a"]}`, `{"l":["a","a","b"]}`, false},
		"one entry was taken, and another is":  {`{"l":["a","b"]}`, `{"l":["b"]}`, `{"l":["b"]}`, `{"l":[]}`, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			read := func(text string) (out map[string]any) {
				if err := utiljson.Unmarshal([]byte(text), &out); err != nil {
					t.Fatal(err)
				}
				return out
			}
			if got := (Edit{read(tt.is), read(tt.makes)}).Repeats(Edit{read(tt.was), read(tt.made)}); got != tt.want {
				t.Errorf("it repeats: %v, want %v", got, tt.want)
			}
		})
	}
}
