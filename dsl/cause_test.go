// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCauses holds what follows from the table of causes: its rows are read by everybody, so a slip in one of them
// is one everywhere.
func TestCauses(t *testing.T) {
	ask := func(holds func(Cause) bool) (out []Cause) {
		for _, c := range Causes() {
			if holds(c) {
				out = append(out, c)
			}
		}
		return out
	}
	tests := map[string]struct{ got, want []Cause }{
		"they take precedence in this order": {Causes(), []Cause{Delete, Create, Update, Resume, Child, RelatedChange, IndexChange, Timer, Resync, Event}},
		"reconcile stands for these":         {expandCauses([]Cause{Reconcile}), []Cause{Create, Update, Resume, Child, RelatedChange, IndexChange, Resync}},
		"one more beside reconcile has its place, and one that is part of it comes once": {
			expandCauses([]Cause{Timer, Reconcile, Child, "none"}), []Cause{Create, Update, Resume, Child, RelatedChange, IndexChange, Timer, Resync}},
		"the next process finds these again":                 {ask(Cause.Lasting), []Cause{Delete, Create, Update}},
		"of these nothing is left where they are not heeded": {ask(Cause.Transient), []Cause{Child, RelatedChange, IndexChange, Timer, Resync, Event}},
		"these are changes of other objects":                 {ask(Cause.FromOthers), []Cause{Child, RelatedChange, IndexChange}},
		"of these the time has come":                         {ask(Cause.FromClock), []Cause{Timer, Resync}},
		"these cannot come about of themselves": {
			ask(func(c Cause) bool { return c.unmet(&Resource{}, &Handler{}) != nil }), []Cause{Child, RelatedChange, IndexChange, Timer, Resync}},
		"nor these in YAML, where a field of the resource is not there": {
			ask(func(c Cause) bool {
				lack := c.unmet(&Resource{}, &Handler{})
				return lack != nil && lack.field != "" && lack.fault != ""
			}), []Cause{Child, RelatedChange, IndexChange, Resync}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.got); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
		})
	}
	for _, c := range Causes() {
		if c.row().origin == 0 || c.Doc() == "" || strings.HasSuffix(c.Doc(), ".") {
			t.Errorf("cause %s: origin %d, doc %q; want an origin, and the end of a sentence", c, c.row().origin, c.Doc())
		}
	}
	if c := Cause("none"); c.Lasting() || c.Transient() || c.unmet(&Resource{}, &Handler{}) != nil {
		t.Error("an unknown cause has what known ones have")
	}
}

func TestWoken(t *testing.T) {
	tests := map[string]struct {
		causes []Cause
		reads  KnownReads
		want   bool
	}{
		"one that reads its object alone":              {[]Cause{Create}, KnownReads{}, true},
		"one that reads children, and runs for them":   {[]Cause{Child}, KnownReads{Children: true}, true},
		"one that reads children, and does not":        {[]Cause{Update, RelatedChange}, KnownReads{Children: true}, false},
		"one that reads both, and runs for one":        {[]Cause{Child}, KnownReads{Children: true, Related: true}, false},
		"one that reads related objects, by reconcile": {[]Cause{Reconcile}, KnownReads{Related: true}, true},
		"one that reads an index, by reconcile":        {[]Cause{Reconcile}, KnownReads{Indexes: []string{"x"}}, true},
		"one that reads an index, and does not":        {[]Cause{Create, Child}, KnownReads{Indexes: []string{"x"}}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := &Handler{Causes: expandCauses(tt.causes), Known: Known{Reads: tt.reads}}
			if got := h.Woken(); got != tt.want {
				t.Errorf("woken = %v, want %v", got, tt.want)
			}
		})
	}
}
