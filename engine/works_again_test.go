// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestAHandlerWorksAgainWhenItsWriteWasTaken holds that the log does not say so before.
func TestAHandlerWorksAgainWhenItsWriteWasTaken(t *testing.T) {
	tests := map[string]func(foo *dsl.Resource, j *journal, once dsl.Func){
		"a handler": func(foo *dsl.Resource, j *journal, once dsl.Func) { foo.OnUpdate("status", once) },
		"a sub-handler": func(foo *dsl.Resource, j *journal, once dsl.Func) {
			foo.OnUpdate("all", func(_ ctx, r *dsl.Request) error {
				r.Handle("status", once)
				return nil
			})
		},
	}
	for name, operator := range tests {
		t.Run(name, func(t *testing.T) {
			perform(t, scenario{
				func(foo *dsl.Resource, j *journal) {
					operator(foo, j, j.Note("status", fails(errAgain), func(_ ctx, r *dsl.Request) error {
						r.Patch.SetStatus("seen", "yes")
						return nil
					}))
				},
				func(s *stage) {
					log := overheard(s, "handler works again")
					s.Create(web)
					s.Settle()
					end := s.FailWhile("patch", foos+"/status", errors.New("connection reset by peer"))
					s.size(2)
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
