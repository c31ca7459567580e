// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestWhatAWhenDidNotHoldForIsKept holds what the next process reads of a handler whose when did not hold last: whether it is due,
// and what it gets as old.
func TestWhatAWhenDidNotHoldForIsKept(t *testing.T) {
	red, blue, big := object(1, "red"), object(1, "blue"), object(2, "red")
	color := reading(updates, dsl.Field("spec.color"))
	whole := reading(updates)
	was := func(h Handler, old string) Handler {
		renamed := *h.Handler
		renamed.ID, renamed.Was = "other", []string{old}
		h.Handler = &renamed
		return h
	}
	spec := func(o map[string]any) map[string]any { return map[string]any{"spec": o["spec"]} }
	tests := map[string]struct {
		writes, reads        Handler
		handled, unmet, next map[string]any
		want                 dsl.Cause
		old                  map[string]any
	}{
		"as it was handled, and not as in between":                 {color, color, red, blue, red, dsl.Update, map[string]any{"spec": map[string]any{"color": "blue"}}},
		"the same for one that was renamed":                        {color, was(color, "h"), red, blue, red, dsl.Update, map[string]any{"spec": map[string]any{"color": "blue"}}},
		"the same for the whole object":                            {whole, whole, red, blue, red, dsl.Update, spec(blue)},
		"still as in between":                                      {color, color, red, blue, blue, dsl.Update, map[string]any{"spec": map[string]any{"color": "red"}}},
		"other than both":                                          {whole, whole, red, blue, big, dsl.Update, spec(red)},
		"as it was handled all the time":                           {color, color, red, red, red, "", map[string]any{"spec": map[string]any{"color": "red"}}},
		"a version that looks at something else has to look again": {color, reading(updates, dsl.Field("spec.size")), red, blue, red, dsl.Update, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := Progress{UID: "one"}.handled(tt.writes, tt.handled)
			e, _ := b.Entry("h")
			unmet := NewSnapshot(tt.unmet)
			b = b.With("h", e.NotMet(tt.writes, unmet))
			text, degraded, err := b.Encode([]Handler{tt.writes}, unmet, maxSize)
			if err != nil || degraded {
				t.Fatal(degraded, err)
			}
			read, err := Load(text, "one")
			if err != nil {
				t.Fatal(err)
			}
			next := NewSnapshot(tt.next)
			if read, err = read.Adapt([]Handler{tt.reads}, Moment{Look: next}); err != nil {
				t.Fatal(err)
			}
			read = read.Stored(text)
			entry, _ := read.of(tt.reads)
			got := entry.Due(tt.reads.Handler, Facts{Now: next.Digest(tt.reads.View), Present: true})
			if got != tt.want {
				t.Errorf("it is due for %q, want %q", got, tt.want)
			}
			old, err := read.Old(tt.reads, next)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.old, old); diff != "" {
				t.Errorf("old (-want +got):\n%s", diff)
			}
		})
	}
}
