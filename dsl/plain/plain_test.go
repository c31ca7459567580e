// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
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
