// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// TestMerged holds what becomes of a value when somebody read a part of it and changed that.
func TestMerged(t *testing.T) {
	tests := map[string]struct{ was, before, after, want string }{
		"nothing is changed":                       {`{"a":1,"x":9}`, `{"a":1,"b":0}`, `{"a":1,"b":0}`, `{"a":1,"x":9}`},
		"a field is changed":                       {`{"a":1,"x":9}`, `{"a":1,"b":0}`, `{"a":2,"b":0}`, `{"a":2,"x":9}`},
		"a zero field beside it is not written":    {`{}`, `{"s":{"a":0,"b":0}}`, `{"s":{"a":1,"b":0}}`, `{"s":{"a":1}}`},
		"a field is removed":                       {`{"a":1,"x":9}`, `{"a":1}`, `{}`, `{"x":9}`},
		"a field becomes null":                     {`{"a":1,"x":9}`, `{"a":1}`, `{"a":null}`, `{"x":9}`},
		"a map goes with what is in it":            {`{"m":{"a":1,"x":9}}`, `{"m":{"a":1}}`, `{}`, `{}`},
		"a map comes":                              {`{}`, `{}`, `{"m":{"a":0}}`, `{"m":{"a":0}}`},
		"an empty map comes":                       {`{}`, `{}`, `{"m":{}}`, `{"m":{}}`},
		"a map also has its unread fields":         {`{"m":{"x":9}}`, `{}`, `{"m":{"a":1}}`, `{"m":{"a":1,"x":9}}`},
		"a map takes the place of something":       {`{"m":3}`, `{"m":3}`, `{"m":{"a":1}}`, `{"m":{"a":1}}`},
		"a big number beside it stays":             {`{"a":1,"n":9007199254740993}`, `{"a":1}`, `{"a":2}`, `{"a":2,"n":9007199254740993}`},
		"what was read otherwise stays":            {`{"a":1,"f":0.1}`, `{"a":1,"f":0.10000000149011612}`, `{"a":2,"f":0.10000000149011612}`, `{"a":2,"f":0.1}`},
		"an entry of a list is changed, by name":   {`{"l":[{"name":"a","v":1,"x":8},{"name":"b","v":1,"x":9}]}`, `{"l":[{"name":"a","v":1},{"name":"b","v":1}]}`, `{"l":[{"name":"b","v":2}]}`, `{"l":[{"name":"b","v":2,"x":9}]}`},
		"entries of a list are moved":              {`{"l":[{"v":1,"x":8},{"v":2,"x":9}]}`, `{"l":[{"v":1},{"v":2}]}`, `{"l":[{"v":2},{"v":3},{"v":1}]}`, `{"l":[{"v":2,"x":9},{"v":3},{"v":1,"x":8}]}`},
		"an entry without a name is changed":       {`{"l":[{"v":1,"x":8},{"v":2,"x":9}]}`, `{"l":[{"v":1},{"v":2}]}`, `{"l":[{"v":1},{"v":3}]}`, `{"l":[{"v":1,"x":8},{"v":3,"x":9}]}`},
		"one is changed and one added":             {`{"l":[{"v":1,"x":8}]}`, `{"l":[{"v":1}]}`, `{"l":[{"v":3},{"v":4}]}`, `{"l":[{"v":3,"x":8},{"v":4}]}`},
		"one is removed and one changed":           {`{"l":[{"v":1,"x":8},{"v":2,"x":9}]}`, `{"l":[{"v":1},{"v":2}]}`, `{"l":[{"v":3}]}`, `{"l":[{"v":3}]}`},
		"one is renamed":                           {`{"l":[{"name":"a","x":8}]}`, `{"l":[{"name":"a"}]}`, `{"l":[{"name":"b"}]}`, `{"l":[{"name":"b"}]}`},
		"of several of one name one is changed":    {`{"l":[{"name":"a","v":1,"x":8},{"name":"a","v":2,"x":9}]}`, `{"l":[{"name":"a","v":1},{"name":"a","v":2}]}`, `{"l":[{"name":"a","v":1},{"name":"a","v":3}]}`, `{"l":[{"name":"a","v":1,"x":8},{"name":"a","v":3,"x":9}]}`},
		"equal entries are each their own":         {`{"l":[{"v":1,"x":8},{"v":1,"x":9}]}`, `{"l":[{"v":1},{"v":1}]}`, `{"l":[{"v":1},{"v":1},{"v":1}]}`, `{"l":[{"v":1,"x":8},{"v":1,"x":9},{"v":1}]}`},
		"a list that was read otherwise":           {`{"l":["a,b"]}`, `{"l":["a","b"]}`, `{"l":["a"]}`, `{"l":["a"]}`},
		"a list in a list":                         {`{"l":[[{"v":1,"x":8}]]}`, `{"l":[[{"v":1}]]}`, `{"l":[[{"v":2}]]}`, `{"l":[[{"v":2,"x":8}]]}`},
		"a list becomes null":                      {`{"l":[1]}`, `{"l":[1]}`, `{"l":null}`, `{}`},
		"a list becomes empty":                     {`{"l":[1]}`, `{"l":[1]}`, `{"l":[]}`, `{"l":[]}`},
		"what null was in the object stays so":     {`{"a":1,"n":null}`, `{"a":1}`, `{"a":2}`, `{"a":2,"n":null}`},
		"a field that was null comes to something": {`{"n":null}`, `{}`, `{"n":{"a":1}}`, `{"n":{"a":1}}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			was := read(t, tt.was)
			got := Merged(was, read(t, tt.before), read(t, tt.after))
			if diff := cmp.Diff(read(t, tt.want), got); diff != "" {
				t.Errorf("merged (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(read(t, tt.was), was); diff != "" {
				t.Errorf("what was given was changed:\n%s", diff)
			}
		})
	}
}

// TestDifference holds that a merge patch says what differs and no more.
func TestDifference(t *testing.T) {
	tests := map[string]struct{ from, to, want string }{
		"nothing":              {`{"a":{"b":[1]}}`, `{"a":{"b":[1]}}`, `{}`},
		"a field comes":        {`{"a":{"b":1}}`, `{"a":{"b":1,"c":2}}`, `{"a":{"c":2}}`},
		"a field goes":         {`{"a":{"b":1,"c":2}}`, `{"a":{"b":1}}`, `{"a":{"c":null}}`},
		"a map becomes empty":  {`{"a":{"b":1}}`, `{"a":{}}`, `{"a":{"b":null}}`},
		"an empty map comes":   {`{}`, `{"a":{}}`, `{"a":{}}`},
		"a list changes":       {`{"a":[1,2]}`, `{"a":[1]}`, `{"a":[1]}`},
		"a map becomes text":   {`{"a":{"b":1}}`, `{"a":"b"}`, `{"a":"b"}`},
		"null stays":           {`{"a":null}`, `{"a":null}`, `{}`},
		"null becomes a value": {`{"a":null}`, `{"a":1}`, `{"a":1}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := Difference(read(t, tt.from).(map[string]any), read(t, tt.to).(map[string]any))
			if diff := cmp.Diff(read(t, tt.want), any(got)); diff != "" {
				t.Errorf("difference (-want +got):\n%s", diff)
			}
		})
	}
}

func read(t *testing.T, text string) any {
	t.Helper()
	var out any
	if err := utiljson.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestLean holds what of a typed value is left out.
func TestLean(t *testing.T) {
	type inner struct {
		A int `json:"a"`
	}
	type Embedded struct {
		In inner `json:"in,omitempty"` //nolint:modernize // as in types of Kubernetes
	}
	type own struct{ Numbered }
	zero := inner{}
	tests := map[string]struct {
		value any
		want  string
	}{
		"a zero struct with omitempty": {Embedded{}, `{}`},
		"one that is not zero":         {Embedded{In: inner{1}}, `{"in":{"a":1}}`},
		"one behind a pointer is meant": {struct {
			P *inner `json:"p,omitempty"`
		}{&zero}, `{"p":{"a":0}}`},
		"one without omitempty is meant": {struct {
			P inner `json:"p"`
		}{}, `{"p":{"a":0}}`},
		"one in what is embedded": {struct{ Embedded }{}, `{}`},
		"one in what is embedded by pointer": {struct {
			*Embedded `json:",inline"`
		}{&Embedded{}}, `{}`},
		"one in a list and a map": {map[string][]Embedded{"l": {{}, {In: inner{2}}}}, `{"l":[{},{"in":{"a":2}}]}`},
		"null":                    {struct{ P *inner }{}, `{}`},
		"null in a list":          {[]*inner{nil}, `[null]`},
		"a field without a tag":   {struct{ In Embedded }{}, `{"In":{}}`},
		"a type that encodes itself": {struct {
			N Numbered `json:"n,omitempty"` //nolint:modernize // as in types of Kubernetes
		}{}, `{}`},
		"one that is not zero, by itself": {struct {
			N Numbered `json:"n,omitempty"` //nolint:modernize // as in types of Kubernetes
		}{Numbered{3}}, `{"n":3}`},
		"one that embeds such": {own{Numbered{3}}, `3`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Lean(tt.value)
			if diff := cmp.Diff(read(t, tt.want), got); diff != "" || err != nil {
				t.Errorf("%v; lean (-want +got):\n%s", err, diff)
			}
		})
	}
}

// Numbered encodes itself, as quantities do.
type Numbered struct{ N int64 }

func (n Numbered) MarshalJSON() ([]byte, error) { return AppendJSON(nil, n.N) }
