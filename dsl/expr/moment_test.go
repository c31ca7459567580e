// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
)

// TestTheTimesOfExpressions evaluates expressions that give a time, none, or an error.
func TestTheTimesOfExpressions(t *testing.T) {
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	self := map[string]any{"spec": map[string]any{"ttl": "1h", "until": "2030-01-01T13:00:00+01:00", "size": int64(3), "word": "tomorrow", "nothing": nil}}
	tests := map[string]struct {
		text  string
		want  time.Time
		fails string
	}{
		"a timestamp":                     {text: `timestamp("2030-01-01T11:00:00Z") + duration(self.spec.ttl)`, want: noon},
		"one in ${…}":                     {text: `${timestamp("2030-01-01T12:00:00Z")}`, want: noon},
		"text, in UTC":                    {text: `self.spec.until`, want: noon},
		"an optional value that is there": {text: `self.spec.?until`, want: noon},
		"an optional value that is not":   {text: `self.spec.?since`},
		"an optional timestamp":           {text: `self.spec.?since.optMap(t, timestamp(t))`},
		"null":                            {text: `self.spec.nothing`},
		"null where a time may be":        {text: `self.spec.size > 3 ? dyn(timestamp("2030-01-01T12:00:00Z")) : dyn(null)`},
		"text that is no time":            {text: `self.spec.word`, fails: `evaluating at: the result is the text "tomorrow", want a time in RFC 3339, such as 2030-01-31T12:00:00Z`},
		"a number":                        {text: `self.spec.size`, fails: `evaluating at: the result is a whole number, want a time, as from timestamp(…)`},
		"something that is not there":     {text: `self.spec.since`, fails: `evaluating at: `},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			program, err := compiler(t).Moment(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			got, err := program.Moment("at", nil)(&dsl.Subject{Object: &unstructured.Unstructured{Object: self}})
			if said := errorText(err); !strings.HasPrefix(said, tt.fails) || said != "" && tt.fails == "" || !got.Equal(tt.want) || got.Location() != time.UTC {
				t.Errorf("it gives %v, %q, want %v, %q", got, said, tt.want, tt.fails)
			}
		})
	}
}

// TestNowIsInUTC holds that what an expression writes does not depend on the time zone of the process.
func TestNowIsInUTC(t *testing.T) {
	program, err := compiler(t).Alone(`string(now)`)
	if err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2030, 1, 1, 17, 45, 0, 0, time.FixedZone("Asia/Kathmandu", 20700))
	trial, err := program.Try(expr.Scope{Subject: &dsl.Subject{Object: &unstructured.Unstructured{}, Now: noon}})
	if err != nil || trial.Value != "2030-01-01T12:00:00Z" {
		t.Errorf("it is %v: %v", trial.Value, err)
	}
}

// TestExpressionsThatGiveNoTimeAreRefused holds that a kind that is known before run time counts then.
func TestExpressionsThatGiveNoTimeAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`duration("1h")`:       `the result is a duration, want a time: add it to one, as in timestamp(self.metadata.creationTimestamp) + …`,
		`1 + 2`:                `the result is a whole number, want a time, as from timestamp(…)`,
		`optional.of([1])`:     `the result is an optional value, want a time, as from timestamp(…)`,
		`2030-01-01T12:00:00Z`: `write timestamp("2030-01-01T12:00:00Z") for a time that is always the same`,
		`self.spec.`:           `unexpected end of the expression`,
	} {
		if _, err := compiler(t).Moment(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestTheDurationsOfExpressions evaluates expressions that give a duration, none, or an error.
func TestTheDurationsOfExpressions(t *testing.T) {
	self := map[string]any{"spec": map[string]any{"every": "90s", "size": int64(3), "word": "soon", "nothing": nil}}
	tests := map[string]struct{ text, want, fails string }{
		"a duration":                      {text: `duration("1h") + duration(self.spec.every)`, want: "1h1m30s"},
		"one in ${…}":                     {text: `${duration("1h")}`, want: "1h0m0s"},
		"text":                            {text: `self.spec.every`, want: "1m30s"},
		"an optional value that is there": {text: `self.spec.?every`, want: "1m30s"},
		"an optional value that is not":   {text: `self.spec.?other`, want: "none"},
		"null":                            {text: `self.spec.nothing`, want: "none"},
		"text that is no duration":        {text: `self.spec.word`, fails: `the result is the text "soon", want a duration such as 30s or 10m`},
		"a number":                        {text: `self.spec.size`, fails: `the result is a whole number, want a duration, as from duration('30s')`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			program, err := compiler(t).Span(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			d, err := program.Duration(expr.Scope{Subject: &dsl.Subject{Object: &unstructured.Unstructured{Object: self}}})
			got := "none"
			if d != nil {
				got = d.String()
			}
			if said := errorText(err); said != tt.fails || said == "" && got != tt.want {
				t.Errorf("it gives %s, %q, want %s, %q", got, said, tt.want, tt.fails)
			}
		})
	}
	for text, want := range map[string]string{
		`now`:        "the result is a time, want a duration",
		`[1]`:        "the result is a list, want a duration",
		`${1}${now}`: "want one expression",
	} {
		if _, err := compiler(t).Span(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
