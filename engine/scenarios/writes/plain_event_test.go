// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package writes_test

import (
	"context"
	"os"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAPlainEventCostsARunAndAWrite holds what the update of an object costs that has one handler in Go, which sets its
// status: a run and a write. [TestAnEventsPath] traces it.
func TestAPlainEventCostsARunAndAWrite(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{"an update": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
		foo.OnReconcile("size", j.Note("size", func(_ context.Context, r *dsl.Request) error {
			size := r.Object.Object["spec"].(map[string]any)["size"]
			r.Patch.SetStatus("size", size)
			return nil
		}))
	}, Play: func(s *scene.Stage) {
		s.Launch()
		s.Create(scene.Web)
		s.Settle()
		s.Forget()
		markTrace(t)
		s.Resize(2)
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
