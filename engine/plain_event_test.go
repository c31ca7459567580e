// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"os"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestOnePlainEvent holds what the update of an object costs that has one handler in Go, which sets its status: a run and a
// write. [TestAnEventsPath] traces it.
func TestOnePlainEvent(t *testing.T) {
	scenarios(t, map[string]scenario{"an update": {func(foo *dsl.Resource, j *journal) {
		foo.OnReconcile("size", j.Note("size", func(_ context.Context, r *dsl.Request) error {
			size := r.Object.Object["spec"].(map[string]any)["size"]
			r.Patch.SetStatus("size", size)
			return nil
		}))
	}, func(s *stage) {
		s.Launch()
		s.Create(web)
		s.Settle()
		s.Forget()
		markTrace(t)
		s.size(2)
		s.Called("size update")
		s.Wrote("patch foos/status default/web")
	}}})
}

// markTrace marks the place in a trace from which on it counts.
func markTrace(t *testing.T) {
	t.Helper()
	path := os.Getenv("HANDWERK_TRACE")
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("mark\n"); err != nil {
		t.Fatal(err)
	}
}
