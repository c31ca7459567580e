// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

// statusWrite is the request that writes the condition of failures.
const statusWrite = "patch foos/status default/web"

// conditioned plays with a resource that has conditions, on a stage that is made ready before the
// operator starts.
func conditioned(t *testing.T, define func(*dsl.Resource), act func(*stage), ready ...func(*stage)) {
	t.Helper()
	enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
		c.Serve(enginetest.Resource{Name: foos, Kind: "Foo"})
		c.Update(crdsOf, "", "foos.example.com", addConditions)
		s := newStage(t, c)
		s.Operator.Resource(foos, define)
		for _, prepare := range ready {
			prepare(s)
		}
		s.Launch()
		s.Create(web)
		act(s)
	})
}

// laments fails the test when the condition of failures says something else.
func (s *stage) laments(want string) {
	s.t.Helper()
	s.Settle()
	if got := message(s.web(), "HandlersFailing"); got != want {
		s.t.Errorf("the condition says %q, want %q", got, want)
	}
}

// unless is a handler that fails until it is told that its reason is gone.
func unless(mended *atomic.Bool, err error) dsl.Func {
	return func(ctx, *dsl.Request) error {
		if mended.Load() {
			return nil
		}
		return err
	}
}

// TestTheConditionOfFailures holds what status.conditions says of handlers that fail, and what it costs.
func TestTheConditionOfFailures(t *testing.T) {
	for name, pause := range map[string]struct {
		err error
		// second and third are when there were so many failures.
		second, third time.Duration
	}{
		"the usual back-off":  {errAgain, 2 * time.Second, 5 * time.Second},
		"a short pause":       {dsl.Temporary(errAgain, 4*time.Second), 6 * time.Second, 8 * time.Second},
		"a pause of a minute": {dsl.Temporary(errAgain, time.Minute), 90 * time.Second, 2 * time.Minute},
	} {
		t.Run("with "+name+" it comes with the third failure, costs a request then, and goes when all is mended", func(t *testing.T) {
			var mended atomic.Bool
			conditioned(t, func(foo *dsl.Resource) { foo.OnReconcile("vain", unless(&mended, pause.err)) }, func(s *stage) {
				s.Advance(pause.second)
				s.laments("")
				s.Wrote()
				s.Advance(pause.third - pause.second)
				s.laments("Operator op: vain: not yet")
				s.Wrote(statusWrite)
				s.Advance(time.Hour)
				s.Wrote()
				mended.Store(true)
				s.Advance(10 * time.Minute)
				s.laments("")
				s.Wrote(statusWrite)
				s.Advance(time.Hour)
				s.Wrote()
			})
		})
	}
	t.Run("who fails twice says and costs nothing", func(t *testing.T) {
		var calls atomic.Int64
		conditioned(t, func(foo *dsl.Resource) {
			foo.OnReconcile("slow", func(ctx, *dsl.Request) error {
				if calls.Add(1) > 2 {
					return nil
				}
				return errAgain
			})
		}, func(s *stage) {
			s.Advance(time.Hour)
			s.laments("")
			s.Wrote()
		})
	})
	t.Run("it neither goes nor comes again while other changes are tried", func(t *testing.T) {
		conditioned(t, func(foo *dsl.Resource) { foo.OnReconcile("vain", fails(errAgain)) }, func(s *stage) {
			s.Advance(time.Minute)
			s.Forget()
			for n := range int64(10) {
				s.size(n + 2)
				s.laments("Operator op: vain: not yet")
				s.Advance(4 * time.Second)
			}
			s.laments("Operator op: vain: not yet")
			s.Wrote()
		})
	})
	t.Run("a timer's handler that fails is in it too", func(t *testing.T) {
		var mended atomic.Bool
		conditioned(t, func(foo *dsl.Resource) {
			foo.Every(time.Minute, "beat", unless(&mended, dsl.Temporary(errAgain, time.Second)))
		}, func(s *stage) {
			s.Advance(2 * time.Minute)
			s.laments("Operator op: beat: not yet")
			s.Wrote(statusWrite)
			s.Advance(10 * time.Minute)
			s.Wrote()
			mended.Store(true)
			s.Advance(2 * time.Minute)
			s.laments("")
			s.Wrote(statusWrite)
		})
	})
	t.Run("a process that begins anew writes it neither away nor again", func(t *testing.T) {
		conditioned(t, func(foo *dsl.Resource) {
			foo.OnReconcile("vain", fails(errAgain))
			foo.OnReconcile("picky", succeeds, dsl.When(func(*dsl.Subject) (bool, error) { return false, errors.New("no such key") }))
			foo.OnCreate("lost", fails(dsl.Permanent(errAgain)))
		}, func(s *stage) {
			s.Advance(time.Hour)
			s.Forget()
			s.Process.Restart()
			s.Advance(time.Hour)
			s.laments("Operator op: vain, picky, lost: not yet")
			s.Wrote()
		})
	})
	t.Run("nor does it while it is not known whether all is mended", func(t *testing.T) {
		conditioned(t, func(foo *dsl.Resource) { foo.OnReconcile("vain", fails(errAgain)) }, func(s *stage) {
			s.Advance(time.Hour)
			s.Forget()
			s.Process.Restart()
			s.Advance(time.Second)
			s.laments("Operator op: vain: not yet")
			s.Wrote()
		})
	})
	t.Run("errors that differ each time are one", func(t *testing.T) {
		var n atomic.Int64
		conditioned(t, func(foo *dsl.Resource) {
			foo.OnReconcile("vain", func(ctx, *dsl.Request) error {
				return errors.New(strings.Repeat("x", int(n.Add(1))))
			})
		}, func(s *stage) {
			s.Advance(time.Hour)
			s.Wrote(statusWrite)
			s.laments("Operator op: vain: xxx")
		})
	})
	t.Run("that of another operator is left alone", func(t *testing.T) {
		conditioned(t, func(foo *dsl.Resource) { foo.OnReconcile("fine", succeeds) }, func(s *stage) {
			s.set([]any{map[string]any{"type": "HandlersFailing", "status": "True", "message": "Operator other: a: b"}}, "status", "conditions")
			s.laments("Operator other: a: b")
			s.Wrote()
		})
	})
	t.Run("a failure for good says so", func(t *testing.T) {
		conditioned(t, func(foo *dsl.Resource) { foo.OnReconcile("vain", fails(dsl.Permanent(errAgain))) }, func(s *stage) {
			s.laments("Operator op: vain: not yet")
			s.Wrote(statusWrite)
		})
	})
	t.Run("so does a deletion that is held", func(t *testing.T) {
		conditioned(t, func(foo *dsl.Resource) { foo.OnDelete("farewell", fails(dsl.Permanent(errAgain))) }, func(s *stage) {
			s.Settle()
			s.remove()
			s.laments("Operator op: farewell: not yet")
		})
	})
	t.Run("a handler with a condition of its own is not in it", func(t *testing.T) {
		conditioned(t, func(foo *dsl.Resource) {
			foo.OnReconcile("vain", func(_ ctx, r *dsl.Request) error {
				r.Patch.OfferCondition("Fine", "False", "NotYet", "not yet")
				return errAgain
			})
			foo.OnUpdate("other", succeeds)
		}, func(s *stage) {
			s.Advance(time.Hour)
			s.laments("")
			s.Wrote("patch foos/status default/web", "patch foos default/web") // its own
			s.size(2)                                                          // a pass in which it is not due
			s.laments("")
			if got := message(s.web(), "Fine"); got != "not yet" {
				t.Errorf("its own says %q", got)
			}
		})
	})
	t.Run("who is mended is not in it any more, while others are", func(t *testing.T) {
		var mended atomic.Bool
		conditioned(t, func(foo *dsl.Resource) {
			foo.OnReconcile("one", unless(&mended, errAgain))
			foo.OnReconcile("other", fails(errAgain))
		}, func(s *stage) {
			s.Advance(10 * time.Minute)
			s.laments("Operator op: one, other: not yet")
			mended.Store(true)
			s.Advance(10 * time.Minute)
			s.laments("Operator op: other: not yet")
		})
	})
}

// TestAFilterThatFailsIsInTheCondition holds that it is said while it is so, also by a process that has
// not asked the filter for another reason.
func TestAFilterThatFailsIsInTheCondition(t *testing.T) {
	var mended atomic.Bool
	conditioned(t, func(foo *dsl.Resource) {
		foo.On([]dsl.Cause{dsl.Create, dsl.Update}, "other", succeeds)
		foo.OnUpdate("picky", succeeds, dsl.When(func(r *dsl.Subject) (bool, error) {
			if size, _, _ := unstructured.NestedInt64(r.Object.Object, "spec", "size"); size != 2 || mended.Load() {
				return true, nil
			}
			return false, errors.New("no such key")
		}))
	}, func(s *stage) {
		s.laments("")
		s.size(2)
		s.laments("Operator op: picky: no such key")
		s.Forget()
		s.Process.Restart()
		s.laments("Operator op: picky: no such key")
		s.Wrote()
		mended.Store(true)
		s.Process.Restart()
		s.laments("")
		s.set("blue", "spec", "color")
		s.laments("")
	})
}

// TestTheConditionHindersNothing holds that a server which does not take the condition is asked seldom, and
// all else goes on; and that it is said when the server takes it.
func TestTheConditionHindersNothing(t *testing.T) {
	conditioned(t, func(foo *dsl.Resource) {
		foo.OnCreate("lost", fails(dsl.Permanent(errAgain)))
		foo.OnCreate("fine", succeeds)
		foo.OnUpdate("works", func(_ ctx, r *dsl.Request) error {
			r.Patch.Set("spec.light", "on")
			return nil
		})
	}, func(s *stage) {
		s.Settle()
		s.size(2)
		s.laments("")
		if got, _, _ := unstructured.NestedString(s.web().Object, "spec", "light"); got != "on" {
			t.Errorf("the light is %q", got)
		}
		s.Allow("patch", "foos.example.com/status")
		s.Advance(2 * time.Minute)
		s.size(3)
		s.laments("Operator op: lost: not yet")
	}, func(s *stage) { s.Forbid("patch", "foos.example.com/status") })
}
