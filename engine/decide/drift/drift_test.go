// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
)

func TestDriftReadsAsASentence(t *testing.T) {
	tests := map[string]struct {
		drift Drift
		want  string
	}{
		"nothing is known":          {Drift{}, ""},
		"no author is known":        {Drift{Fields: []string{"spec.ports"}}, "spec.ports changed"},
		"somebody is":               {Drift{Fields: []string{"spec.ports"}, Managers: []string{"kubectl-patch"}}, "spec.ports changed by kubectl-patch"},
		"there are more than three": {Drift{Fields: []string{"a", "b", "c", "d"}, Managers: []string{"x", "y"}}, "a, b, c and more changed by x, y"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.drift.String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestDifferingFields(t *testing.T) {
	want := map[string]any{"spec": map[string]any{
		"same": int64(1), "size": int64(2), "list": []any{"a"}, "inner": map[string]any{"a.b": "x", "c": "y"},
	}}
	has := map[string]any{"spec": map[string]any{
		"same": int64(1), "size": int64(3), "list": []any{"b"}, "inner": map[string]any{"a.b": "z", "c": "y"}, "theirs": true,
	}}
	var got []string
	for _, path := range (knowledge{}).differing(nil, "", want, has, false) {
		got = append(got, path.String())
	}
	if diff := cmp.Diff([]string{`spec.inner["a.b"]`, "spec.list", "spec.size"}, got); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestWhoManagesAField(t *testing.T) {
	var fields map[string]any
	if err := json.Unmarshal([]byte(`{"f:spec":{"f:selector":{},"f:ports":{"k:{\"port\":80}":{}}}}`), &fields); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		path dsl.Path
		want bool
	}{
		"a field of it":                      {dsl.Path{"spec", "selector"}, true},
		"something in what is managed whole": {dsl.Path{"spec", "selector", "app"}, true},
		"a list with some of its entries":    {dsl.Path{"spec", "ports"}, true},
		"another one":                        {dsl.Path{"spec", "type"}, false},
		"another one, elsewhere":             {dsl.Path{"metadata", "labels"}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := manages(fields, tt.path); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}
