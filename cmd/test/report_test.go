// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/sandbox/cases"
)

// TestANameOfACaseStaysInItsLine holds that a name cannot look like another line of the report, or steer the terminal.
func TestANameOfACaseStaysInItsLine(t *testing.T) {
	failure := cases.Failure{File: "a_test.yaml", Line: 3, Message: "pods/\x1b]0;a\x07\nok is not there", Detail: "- a\n+ b"}
	var out strings.Builder
	err := Text(&out, []cases.Report{{Ref: cases.Ref{File: "a_test.yaml", Case: "one\nok    b_test.yaml\x1b[2J"}, Failures: []cases.Failure{failure}}}, false)
	if err != nil {
		t.Fatal(err)
	}
	const want = `--- one\nok    b_test.yaml\u001b[2J
a_test.yaml:3: pods/\u001b]0;a\u0007\nok is not there
    - a
    + b
FAIL  a_test.yaml  1 case  0.00s
1 of 1 case failed
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestVerdictsHaveColorsOnATerminal(t *testing.T) {
	failed := cases.Report{Ref: cases.Ref{File: "b_test.yaml", Case: "two"}, Failures: []cases.Failure{{File: "b_test.yaml", Line: 3, Message: "no"}}}
	skipped := cases.Report{Ref: cases.Ref{File: "c_test.yaml", Case: "three"}, Skipped: "not now"}
	all := []cases.Report{{Ref: cases.Ref{File: "a_test.yaml", Case: "one"}}, failed, skipped}
	for colors, want := range map[bool][]string{
		true:  {green + "ok  " + reset, red + "FAIL" + reset, yellow + "skip" + reset, red + "1 of 3 cases failed" + reset},
		false: {"ok  ", "FAIL", "skip", "1 of 3 cases failed"},
	} {
		var out strings.Builder
		if err := Text(&out, all, colors); err != nil {
			t.Fatal(err)
		}
		for _, one := range want {
			if !strings.Contains(out.String(), one) {
				t.Errorf("there is no %q in\n%s", one, out.String())
			}
		}
		if strings.Contains(out.String(), "\x1b") != colors {
			t.Errorf("whether there are colors is %v:\n%s", !colors, out.String())
		}
	}
}

// TestProgressShowsWhenItTakesLong holds when the line about progress comes and goes.
func TestProgressShowsWhenItTakesLong(t *testing.T) {
	tests := map[string]struct {
		takes time.Duration
		want  string
	}{
		"a moment":     {1900 * time.Millisecond, ""},
		"some seconds": {2100 * time.Millisecond, clearLine + "2 cases, 1 failed  b_test.yaml" + clearLine},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out strings.Builder
				p := newProgress(&out)
				p.saw(cases.Report{Ref: cases.Ref{File: "dir/b_test.yaml"}, Begins: true})
				p.saw(cases.Report{})
				p.saw(cases.Report{Failures: []cases.Failure{{}}})
				p.saw(cases.Report{Done: true})
				<-time.After(tt.takes)
				p.end()
				if diff := cmp.Diff(tt.want, out.String()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
	newProgress(nil).end() // nothing is shown, and nothing is left
}
