// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/sandbox/cases"
)

// TestANameOfACaseStaysInItsLine holds that a name cannot look like another line of the report, or steer the terminal.
func TestANameOfACaseStaysInItsLine(t *testing.T) {
	failure := cases.Failure{File: "a_test.yaml", Line: 3, Message: "pods/\x1b]0;a\x07\nok is not there", Detail: "- a\n+ b"}
	var out strings.Builder
	err := Text(&out, []cases.Report{{Ref: cases.Ref{File: "a_test.yaml", Case: "one\nok    b_test.yaml\x1b[2J"}, Failures: []cases.Failure{failure}}})
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
