// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestAnEntryTakesThePlaceOfAnother holds that progress has the entry that was put into it last, and that other progress keep theirs.
func TestAnEntryTakesThePlaceOfAnother(t *testing.T) {
	entries := []Entry{
		{}, {Handled: "a"}, {Handled: "b"}, {ViewName: "spec", Handled: "a"}, {Handled: "a", AsFound: true}, {Handled: "a", FailedFor: dsl.Update},
		{Try: Record{Cause: dsl.Update}}, {Handled: "a", Old: map[string]any{}}, {NewHandler: true},
	}
	for _, before := range entries {
		for _, after := range entries {
			first := Progress{}.With("other", Entry{Handled: "x"}).With("h", before)
			second := first.With("h", after)
			for of, held := range map[string]struct {
				book Progress
				want Entry
			}{"the book": {second, after}, "the one before": {first, before}} {
				if got, _ := held.book.Entry("h"); !cmp.Equal(held.want, got) {
					t.Errorf("%+v in the place of %+v: %s has %+v", after, before, of, got)
				}
			}
		}
	}
}
