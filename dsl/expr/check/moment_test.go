// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"testing"

	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/expr/check"
)

// TestTimesAndDurationsAreHeldAgainstTheSchema holds that a field whose type can be neither is found before run time.
func TestTimesAndDurationsAreHeldAgainstTheSchema(t *testing.T) {
	c, err := expr.New()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		compile func(text string) (*expr.Program, error)
		text    string
		want    string
	}{
		{c.Moment, "self.spec.since", ""},
		{c.Moment, "self.spec.?since", ""},
		{c.Moment, "self.spec.name", ""},
		{c.Moment, "self.spec.any", ""},
		{c.Moment, "timestamp(self.spec.since) + duration(self.spec.name)", ""},
		{c.Moment, "self.spec.replicas", "1:1: the result is a whole number, want a time, as from timestamp(…)"},
		{c.Moment, "self.spec.?replicas", "1:1: the result is an optional value, want a time, as from timestamp(…)"},
		{c.Moment, "self.spec.sinec", `1:11: unknown field "sinec" in self.spec (did you mean "since"?)`},
		{c.Span, "self.spec.name", ""},
		{c.Span, "timestamp(self.spec.since) - now", ""},
		{c.Span, "self.spec.paused", "1:1: the result is true or false, want a duration, as from duration('30s')"},
	} {
		program, err := tt.compile(tt.text)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		got := ""
		if err := check.Program(program, schemas(t)); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.text, got, tt.want)
		}
	}
}
