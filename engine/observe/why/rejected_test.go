// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"strings"
	"testing"
)

func TestRejectionsNameWhoRejects(t *testing.T) {
	long := strings.Repeat("x", 52)
	for _, tc := range []struct{ name, text, want string }{
		{"a rule that is a policy", `foos "a" is forbidden: ValidatingAdmissionPolicy 'no-size.foos.example.com.guard.ops.handwerk.dev' with binding 'no-size.foos.example.com.guard.ops.handwerk.dev' denied request: no`,
			`foos "a" is rejected by rule no-size of operator guard: no`},
		{"a rule that changes objects", `Denied: policy 'a.pods.core.guard.ops.handwerk.dev' with binding 'b' denied request: expression 'x' resulted in error: y`,
			`Denied: rejected by rule a of operator guard: expression 'x' resulted in error: y`},
		{"a rule that is a webhook", `admission webhook "a.pods.core.guard.ops.handwerk.dev" denied the request without explanation`, `rejected by rule a of operator guard without explanation`},
		{"a policy of somebody else", `foos "a" is forbidden: ValidatingAdmissionPolicy 'p.example.com' with binding 'b' denied request: no`, `foos "a" is rejected by policy p.example.com: no`},
		{"a webhook of somebody else", `x: admission webhook "w.example.com" denied the request: no`, `x: rejected by webhook w.example.com: no`},
		{"a name with a digest is not taken apart", `admission webhook "a.pods.core.` + long + `-0123456789.handwerk.dev" denied the request: no`, `rejected by webhook a.pods.core.` + long + `-0123456789.handwerk.dev: no`},
		{"a missing right", `foos "a" is forbidden: User "u" cannot patch resource "foos"`, `foos "a" is forbidden: User "u" cannot patch resource "foos"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Plainly(tc.text); got != tc.want {
				t.Errorf("the text is %q, want %q", got, tc.want)
			}
		})
	}
}
