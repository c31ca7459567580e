// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "testing"

// New starts a sandbox for a test, and stops it at the end of the test. It fails the test if the sandbox cannot start.
func New(t testing.TB, o Options) *Sandbox {
	t.Helper()
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatalf("starting a sandbox: %v", err)
	}
	t.Cleanup(s.Stop)
	return s
}
