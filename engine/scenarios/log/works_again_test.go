// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package log_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAHandlerWorksAgainOnceItsWriteSucceeded holds that the log does not say so before.
func TestAHandlerWorksAgainOnceItsWriteSucceeded(t *testing.T) {
	tests := map[string]func(foo *dsl.Resource, j *kit.Journal, once dsl.Func){
		"a handler": func(foo *dsl.Resource, j *kit.Journal, once dsl.Func) { foo.OnUpdate("status", once) },
		"a sub-handler": func(foo *dsl.Resource, j *kit.Journal, once dsl.Func) {
			foo.OnUpdate("all", func(_ context.Context, r *dsl.Request) error {
				r.Handle("status", once)
				return nil
			})
		},
	}
	for name, operator := range tests {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{
				Operator: func(foo *dsl.Resource, j *kit.Journal) {
					operator(foo, j, j.Note("status", scene.Fails(scene.ErrAgain), func(_ context.Context, r *dsl.Request) error {
						r.Patch.SetStatus("seen", "yes")
						return nil
					}))
				},
				Play: func(s *scene.Stage) {
					log := scene.LaunchWithLog(s, "handler works again")
					s.Create(scene.Web)
					s.Settle()
					end := s.FailWhile("patch", scene.Foos+"/status", errors.New("connection reset by peer"))
					s.Resize(2)
					s.Advance(5 * time.Second)
					if got := log(); len(s.Of("status", "web")) < 2 || len(got) > 0 {
						t.Errorf("after %d calls, and no write, the log says %q", len(s.Of("status", "web")), got)
					}
					end()
					s.Advance(time.Minute)
					if got := log(); len(got) != 1 {
						t.Errorf("when it was written the log says %q", got)
					}
				},
			})
		})
	}
}
