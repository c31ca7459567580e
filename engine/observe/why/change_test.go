// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/engine/observe/why"
)

// TestAChangeShowsWhatDiffers holds that long values are cut around their difference.
func TestAChangeShowsWhatDiffers(t *testing.T) {
	long := strings.Repeat("a", 100)
	tests := map[string]struct{ before, after, from, to string }{
		"short values are whole":              {"one", "two", `"one"`, `"two"`},
		"a difference at the beginning":       {"x" + long, "y" + long, `"x` + strings.Repeat("a", 55) + "…", `"y` + strings.Repeat("a", 55) + "…"},
		"a difference at the end":             {long + "x", long + "y", "…" + strings.Repeat("a", 20) + `x"`, "…" + strings.Repeat("a", 20) + `y"`},
		"a difference in the middle":          {long + "x" + long, long + "y" + long, "…" + strings.Repeat("a", 20) + "x" + strings.Repeat("a", 33) + "…", "…" + strings.Repeat("a", 20) + "y" + strings.Repeat("a", 33) + "…"},
		"a value that goes on":                {long, long + "b", "…" + strings.Repeat("a", 20) + `"`, "…" + strings.Repeat("a", 20) + `b"`},
		"a difference within a long letter":   {strings.Repeat("a", 80) + "ä", strings.Repeat("a", 80) + "ö", "…" + strings.Repeat("a", 19) + `ä"`, "…" + strings.Repeat("a", 19) + `ö"`},
		"a value that the beginning suffices": {strings.Repeat("a", 10) + "x" + long, strings.Repeat("a", 10) + "y" + long, `"` + strings.Repeat("a", 10) + "x" + strings.Repeat("a", 45) + "…", `"` + strings.Repeat("a", 10) + "y" + strings.Repeat("a", 45) + "…"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			spec := func(line string) map[string]any { return map[string]any{"spec": map[string]any{"line": line}} }
			want := []why.Change{{Path: "spec.line", From: tt.from, To: tt.to}}
			if diff := cmp.Diff(want, why.Changes(spec(tt.before), spec(tt.after), false, nil)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}
