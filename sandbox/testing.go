// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"testing"
)

// New starts a sandbox for a test, and stops it at the end of the test. Functions of [testing.TB.Cleanup] that are registered
// after it may still use it. It fails the test if the sandbox cannot start.
func New(t testing.TB, o Options) *Sandbox {
	t.Helper()
	s, err := Start(context.WithoutCancel(t.Context()), o)
	if err != nil {
		t.Fatalf("starting a sandbox: %v", err)
	}
	t.Cleanup(s.Stop)
	return s
}
