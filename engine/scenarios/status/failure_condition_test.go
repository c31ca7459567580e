// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// unless is a handler that fails until its reason is gone.
func unless(mended *atomic.Bool, err error) dsl.Func {
	return func(context.Context, *dsl.Request) error {
		if mended.Load() {
			return nil
		}
		return err
	}
}

// TestTheConditionSaysWhichHandlersFail holds what status.conditions says of handlers that fail, and what it costs.
func TestTheConditionSaysWhichHandlersFail(t *testing.T) {
	for name, pause := range map[string]struct {
		err error
		// second and third are when there were so many failures.
		second, third time.Duration
	}{
		"the usual back-off":  {scene.ErrAgain, 2 * time.Second, 5 * time.Second},
		"a short pause":       {dsl.Temporary(scene.ErrAgain, 4*time.Second), 6 * time.Second, 8 * time.Second},
		"a pause of a minute": {dsl.Temporary(scene.ErrAgain, time.Minute), 90 * time.Second, 2 * time.Minute},
	} {
		t.Run("with "+name+" it comes with the third failure, costs a request then, and goes when all is mended", func(t *testing.T) {
			var mended atomic.Bool
			scene.PlayWithConditions(t, func(foo *dsl.Resource) { foo.OnReconcile("vain", unless(&mended, pause.err)) }, func(s *scene.Stage) {
				s.Advance(pause.second)
				s.WantFailureCondition("")
				s.Wrote()
				s.Advance(pause.third - pause.second)
				s.WantFailureCondition("Operator op: vain: not yet")
				s.Wrote(scene.StatusWrite)
				s.Advance(time.Hour)
				s.Wrote()
				mended.Store(true)
				s.Advance(10 * time.Minute)
				s.WantFailureCondition("")
				s.Wrote(scene.StatusWrite)
				s.Advance(time.Hour)
				s.Wrote()
			})
		})
	}
	t.Run("who fails twice says and costs nothing", func(t *testing.T) {
		var calls atomic.Int64
		scene.PlayWithConditions(t, func(foo *dsl.Resource) {
			foo.OnReconcile("slow", func(context.Context, *dsl.Request) error {
				if calls.Add(1) > 2 {
					return nil
				}
				return scene.ErrAgain
			})
		}, func(s *scene.Stage) {
			s.Advance(time.Hour)
			s.WantFailureCondition("")
			s.Wrote()
		})
	})
	t.Run("it neither goes nor comes again while other changes are tried", func(t *testing.T) {
		scene.PlayWithConditions(t, func(foo *dsl.Resource) { foo.OnReconcile("vain", scene.Fails(scene.ErrAgain)) }, func(s *scene.Stage) {
			s.Advance(time.Minute)
			s.Forget()
			for n := range int64(10) {
				s.Resize(n + 2)
				s.WantFailureCondition("Operator op: vain: not yet")
				s.Advance(4 * time.Second)
			}
			s.WantFailureCondition("Operator op: vain: not yet")
			s.Wrote()
		})
	})
	t.Run("a timer's handler that fails is in it too", func(t *testing.T) {
		var mended atomic.Bool
		scene.PlayWithConditions(t, func(foo *dsl.Resource) {
			foo.Every(time.Minute, "beat", unless(&mended, dsl.Temporary(scene.ErrAgain, time.Second)))
		}, func(s *scene.Stage) {
			s.Advance(2 * time.Minute)
			s.WantFailureCondition("Operator op: beat: not yet")
			s.Wrote(scene.StatusWrite)
			s.Advance(10 * time.Minute)
			s.Wrote()
			mended.Store(true)
			s.Advance(2 * time.Minute)
			s.WantFailureCondition("")
			s.Wrote(scene.StatusWrite)
		})
	})
	t.Run("a process that begins again writes it neither away nor again", func(t *testing.T) {
		scene.PlayWithConditions(t, func(foo *dsl.Resource) {
			foo.OnReconcile("vain", scene.Fails(scene.ErrAgain))
			foo.OnReconcile("picky", scene.Succeeds, dsl.When(func(*dsl.Subject) (bool, error) { return false, errors.New("no such key") }))
			foo.OnCreate("lost", scene.Fails(dsl.Permanent(scene.ErrAgain)))
		}, func(s *scene.Stage) {
			s.Advance(time.Hour)
			s.Forget()
			s.Process.Restart()
			s.Advance(time.Hour)
			s.WantFailureCondition("Operator op: vain, picky, lost: not yet")
			s.Wrote()
		})
	})
	t.Run("nor does it while it is not known whether all is mended", func(t *testing.T) {
		scene.PlayWithConditions(t, func(foo *dsl.Resource) { foo.OnReconcile("vain", scene.Fails(scene.ErrAgain)) }, func(s *scene.Stage) {
			s.Advance(time.Hour)
			s.Forget()
			s.Process.Restart()
			s.Advance(time.Second)
			s.WantFailureCondition("Operator op: vain: not yet")
			s.Wrote()
		})
	})
	t.Run("errors that differ each time are one", func(t *testing.T) {
		var n atomic.Int64
		scene.PlayWithConditions(t, func(foo *dsl.Resource) {
			foo.OnReconcile("vain", func(context.Context, *dsl.Request) error {
				return errors.New(strings.Repeat("x", int(n.Add(1))))
			})
		}, func(s *scene.Stage) {
			s.Advance(time.Hour)
			s.Wrote(scene.StatusWrite)
			s.WantFailureCondition("Operator op: vain: xxx")
		})
	})
}

// TestTheFailureConditionNamesEachHandlerThatFails holds which handlers are in the condition, and which are not.
func TestTheFailureConditionNamesEachHandlerThatFails(t *testing.T) {
	t.Run("that of another operator is left alone", func(t *testing.T) {
		scene.PlayWithConditions(t, func(foo *dsl.Resource) { foo.OnReconcile("fine", scene.Succeeds) }, func(s *scene.Stage) {
			s.Set([]any{map[string]any{"type": "HandlersFailing", "status": "True", "message": "Operator other: a: b"}}, "status", "conditions")
			s.WantFailureCondition("Operator other: a: b")
			s.Wrote()
		})
	})
	t.Run("a failure for good says so", func(t *testing.T) {
		scene.PlayWithConditions(t, func(foo *dsl.Resource) { foo.OnReconcile("vain", scene.Fails(dsl.Permanent(scene.ErrAgain))) }, func(s *scene.Stage) {
			s.WantFailureCondition("Operator op: vain: not yet")
			s.Wrote(scene.StatusWrite)
		})
	})
	t.Run("so does a deletion that is held", func(t *testing.T) {
		scene.PlayWithConditions(t, func(foo *dsl.Resource) { foo.OnDelete("farewell", scene.Fails(dsl.Permanent(scene.ErrAgain))) }, func(s *scene.Stage) {
			s.Settle()
			s.Remove()
			s.WantFailureCondition("Operator op: farewell: not yet")
		})
	})
	t.Run("a handler with a condition of its own is not in it", func(t *testing.T) {
		scene.PlayWithConditions(t, func(foo *dsl.Resource) {
			foo.OnReconcile("vain", func(_ context.Context, r *dsl.Request) error {
				r.Patch.OfferCondition("Fine", "False", "NotYet", "not yet")
				return scene.ErrAgain
			})
			foo.OnUpdate("other", scene.Succeeds)
		}, func(s *scene.Stage) {
			s.Advance(time.Hour)
			s.WantFailureCondition("")
			s.Wrote("patch foos/status default/web", "patch foos default/web") // its own
			s.Resize(2)                                                        // a reconcile in which it is not due
			s.WantFailureCondition("")
			if got := scene.ConditionMessage(s.Web(), "Fine"); got != "not yet" {
				t.Errorf("its own says %q", got)
			}
		})
	})
	t.Run("who is mended is not in it any more, while others are", func(t *testing.T) {
		var mended atomic.Bool
		scene.PlayWithConditions(t, func(foo *dsl.Resource) {
			foo.OnReconcile("one", unless(&mended, scene.ErrAgain))
			foo.OnReconcile("other", scene.Fails(scene.ErrAgain))
		}, func(s *scene.Stage) {
			s.Advance(10 * time.Minute)
			s.WantFailureCondition("Operator op: one, other: not yet")
			mended.Store(true)
			s.Advance(10 * time.Minute)
			s.WantFailureCondition("Operator op: other: not yet")
		})
	})
}

// TestAFilterThatFailsIsInTheCondition holds that it is said while it is so, also by a process that has
// not asked the filter for another reason.
func TestAFilterThatFailsIsInTheCondition(t *testing.T) {
	var mended atomic.Bool
	scene.PlayWithConditions(t, func(foo *dsl.Resource) {
		foo.On([]dsl.Cause{dsl.Create, dsl.Update}, "other", scene.Succeeds)
		foo.OnUpdate("picky", scene.Succeeds, dsl.When(func(r *dsl.Subject) (bool, error) {
			if size, _, _ := unstructured.NestedInt64(r.Object.Object, "spec", "size"); size != 2 || mended.Load() {
				return true, nil
			}
			return false, errors.New("no such key")
		}))
	}, func(s *scene.Stage) {
		s.WantFailureCondition("")
		s.Resize(2)
		s.WantFailureCondition("Operator op: picky: no such key")
		s.Forget()
		s.Process.Restart()
		s.WantFailureCondition("Operator op: picky: no such key")
		s.Wrote()
		mended.Store(true)
		s.Process.Restart()
		s.WantFailureCondition("")
		s.Set("blue", "spec", "color")
		s.WantFailureCondition("")
	})
}

// TestARefusedFailureConditionHoldsNothingUp holds that a server which does not take the condition is asked seldom, and
// all else goes on; and that it is said when the server takes it.
func TestARefusedFailureConditionHoldsNothingUp(t *testing.T) {
	scene.PlayWithConditions(t, func(foo *dsl.Resource) {
		foo.OnCreate("lost", scene.Fails(dsl.Permanent(scene.ErrAgain)))
		foo.OnCreate("fine", scene.Succeeds)
		foo.OnUpdate("works", func(_ context.Context, r *dsl.Request) error {
			r.Patch.Set("spec.light", "on")
			return nil
		})
	}, func(s *scene.Stage) {
		s.Settle()
		s.Resize(2)
		s.WantFailureCondition("")
		if got, _, _ := unstructured.NestedString(s.Web().Object, "spec", "light"); got != "on" {
			t.Errorf("the light is %q", got)
		}
		s.Allow("patch", "foos.example.com/status")
		s.Advance(2 * time.Minute)
		s.Resize(3)
		s.WantFailureCondition("Operator op: lost: not yet")
	}, func(s *scene.Stage) { s.Forbid("patch", "foos.example.com/status") })
}
