// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func TestValue(t *testing.T) {
	type author struct {
		At    netip.Addr `json:"at"`
		Count uint8      `json:"count,omitempty"`
	}
	tests := map[string]struct{ given, want any }{
		"nothing":                          {nil, nil},
		"a number of any size is an int64": {int32(3), int64(3)},
		"one with a fraction is a float64": {float32(0.5), 0.5},
		"maps and slices are read as deep as they go": {
			map[string]any{"a": []int{1}, "b": map[int]string{2: "x"}}, map[string]any{"a": []any{int64(1)}, "b": map[string]any{"2": "x"}}},
		"an author's struct is what encoding/json makes of it": {
			&author{At: netip.MustParseAddr("10.0.0.1")}, map[string]any{"at": "10.0.0.1"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Value(tt.given)
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("plain value of %v (-want +got):\n%s%v", tt.given, diff, err)
			}
		})
	}
	if got, err := Value(func() {}); err == nil {
		t.Errorf("plain value of a function: %v; want an error", got)
	}
	given := map[string]any{"a": map[string]any{"b": "c"}}
	got, _ := Value(given)
	got.(map[string]any)["a"].(map[string]any)["b"] = "changed"
	if diff := cmp.Diff(map[string]any{"a": map[string]any{"b": "c"}}, given); diff != "" {
		t.Errorf("what was given has changed with its copy (-want +got):\n%s", diff)
	}
}

// TestWhatIsPlainIsCopiedAsByJSON holds that the short way to a copy ends where the long one does.
func TestWhatIsPlainIsCopiedAsByJSON(t *testing.T) {
	deep := any("x")
	for range 2 * deepest {
		deep = []any{deep}
	}
	for name, given := range map[string]any{
		"plain values":                   map[string]any{"a": []any{int64(1), "x", true, nil, map[string]any{}, []any{}}},
		"a float that is a whole number": map[string]any{"a": []any{float64(3), 1.5, 1e30}},
		"numbers of other types":         map[string]any{"a": 3, "b": uint8(4)},
		"a map that is nil":              map[string]any{"a": map[string]any(nil)},
		"a list that is nil":             []any{[]any(nil)},
		"a text that is not UTF-8":       map[string]any{"a": "\xff"},
		"a key that is not UTF-8":        map[string]any{"\xff": "a"},
		"what HTML takes for its own":    map[string]any{"<a>": "&\u2028"},
		"a list that is deep":            deep,
	} {
		t.Run(name, func(t *testing.T) {
			data, err := json.Marshal(given)
			if err != nil {
				t.Fatal(err)
			}
			var want any
			if err := utiljson.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
			if got, err := Value(given); !reflect.DeepEqual(want, got) || err != nil { // cmp takes for ever for what is deep
				t.Errorf("copied: %v, %v; want %v", got, err, want)
			}
		})
	}
	endless := map[string]any{}
	endless["self"], endless["again"] = endless, endless
	if got, err := Value(endless); err == nil {
		t.Errorf("of what contains itself: %v; want an error", got)
	}
}

func TestRemoves(t *testing.T) {
	tests := map[string]struct {
		patch map[string]any
		want  bool
	}{
		"an empty patch":                 {map[string]any{}, false},
		"one that sets":                  {map[string]any{"a": "b"}, false},
		"one that removes":               {map[string]any{"a": nil}, true},
		"one that removes further below": {map[string]any{"a": map[string]any{"b": nil}, "c": nil}, true},
		"one that does both":             {map[string]any{"a": map[string]any{"b": nil}, "c": "d"}, false},
		"one that sets an empty map":     {map[string]any{"a": map[string]any{}}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Removes(tt.patch); got != tt.want {
				t.Errorf("%v only removes: %t, want %t", tt.patch, got, tt.want)
			}
		})
	}
}
