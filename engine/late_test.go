// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// sets is a handler that sets a field of the object.
func sets(path string) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error {
		r.Patch.Set(path, "yes")
		return nil
	}
}

// TestAFieldThatIsWrittenWhileTheObjectIsMade holds that a handler of create is told, once, of a field that an earlier
// one writes when it comes to that, however long it takes and whatever process it is.
func TestAFieldThatIsWrittenWhileTheObjectIsMade(t *testing.T) {
	waits := fails(dsl.Waiting("rain", 10*time.Minute))
	second := func(foo *dsl.Resource, j *journal, options ...dsl.Option) {
		foo.OnCreate("second", j.Note("second"), append(options, dsl.Field("spec.extra"))...)
	}
	tests := map[string]func(foo *dsl.Resource, j *journal){
		"one that waits": func(foo *dsl.Resource, j *journal) {
			foo.OnCreate("other", j.Note("other"))
			foo.OnCreate("first", j.Note("first", waits, waits, sets("spec.extra")))
			second(foo, j)
		},
		"a level-triggered one that waits": func(foo *dsl.Resource, j *journal) {
			foo.OnCreate("other", j.Note("other"))
			foo.OnReconcile("first", j.Note("first", waits, waits, sets("spec.extra")), dsl.Field("spec.size"))
			second(foo, j)
		},
		"one that fails": func(foo *dsl.Resource, j *journal) {
			foo.OnCreate("other", j.Note("other"))
			foo.OnCreate("first", j.Note("first", temporary(time.Minute), sets("spec.extra")))
			second(foo, j)
		},
		"one that runs over its time": func(foo *dsl.Resource, j *journal) {
			foo.OnCreate("first", j.Note("first", func(c context.Context, _ *dsl.Request) error {
				<-c.Done()
				return c.Err()
			}, sets("spec.extra")), dsl.Timeout(time.Second))
			second(foo, j)
		},
		"one that comes after one that waits": func(foo *dsl.Resource, j *journal) {
			foo.OnCreate("other", j.Note("other"))
			foo.OnCreate("zero", j.Note("zero", waits, waits, succeeds))
			foo.OnCreate("first", j.Note("first", sets("spec.extra")), dsl.After("zero"))
			second(foo, j, dsl.After("first"))
		},
		"one that comes after one that failed for good, until somebody mends that": func(foo *dsl.Resource, j *journal) {
			foo.OnCreate("other", j.Note("other"))
			foo.OnCreate("zero", j.Note("zero", fails(dsl.Permanent(errAgain)), succeeds), dsl.Field("spec.size"))
			foo.OnCreate("first", j.Note("first", sets("spec.extra")), dsl.After("zero"))
			second(foo, j, dsl.After("first"))
		},
		"one that comes after a level-triggered one that waits": func(foo *dsl.Resource, j *journal) {
			foo.OnCreate("other", j.Note("other"))
			foo.OnReconcile("zero", j.Note("zero", waits, waits, succeeds))
			foo.OnCreate("first", j.Note("first", sets("spec.extra")), dsl.After("zero"))
			second(foo, j, dsl.After("first"))
		},
	}
	for name, operator := range tests {
		for process, restart := range map[string]func(s *stage){
			"":                           func(*stage) {},
			", and a restart in between": func(s *stage) { s.Process.Restart() },
		} {
			t.Run(name+process, func(t *testing.T) {
				perform(t, scenario{operator, func(s *stage) {
					s.Launch()
					s.Create(web)
					s.Advance(20 * time.Second)
					restart(s)
					s.Advance(time.Hour)
					s.size(2)
					s.Advance(time.Hour)
					if calls := s.Of("second", "web"); len(calls) != 1 || calls[0].Cause != dsl.Create {
						t.Errorf("second was called %v, want once, to create", calls)
					}
				}})
			})
		}
	}
}
