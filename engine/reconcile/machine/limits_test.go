// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestStay holds when the time in a state is over.
func TestStay(t *testing.T) {
	up := func(change func(*dsl.State)) dsl.Machine {
		s := dsl.State{Stay: &dsl.Stay{AtMost: time.Hour, Then: "Lost"}, Transitions: to(never, "Down")}
		if change != nil {
			change(&s)
		}
		return twoStates(s)
	}
	expired := came{Moves: []string{"Up → Lost: it was in state Up for more than 1h0m0s"}, State: "Lost", Ready: "False Lost"}
	after := func(ran string) came { out := expired; out.Ran = []string{ran}; return out }
	attempts(t, map[string]struct {
		given
		came
	}{
		"a new object has all of the time": {given{machine: up(nil)}, came{State: "Up", Ready: "False Up", Again: "1h0m1s"}},
		"the next attempt comes when the time is over": {
			given{machine: up(nil), at: "Up", since: 40 * time.Minute}, came{State: "Up", Ready: "False Up", Again: "20m1s"},
		},
		"a time in whole seconds may be a second short": {
			given{machine: up(nil), at: "Up", since: time.Hour}, came{State: "Up", Ready: "False Up", Again: "1s"},
		},
		"the time is over":                          {given{machine: up(nil), at: "Up", since: time.Hour + time.Second}, expired},
		"it is long over, since no process has run": {given{machine: up(nil), at: "Up", since: 100 * time.Hour}, expired},
		"it is over while Enter fails": {
			given{machine: up(func(s *dsl.State) { s.Enter = failing(errNotYet) }), at: "Up", since: 2 * time.Hour}, after("enter Up"),
		},
		"it is over while During waits": {
			given{machine: up(func(s *dsl.State) { s.During = failing(dsl.Waiting("Godot", 0)) }), at: "Up", since: 2 * time.Hour}, after("during Up"),
		},
		"a transition that holds comes first": {
			given{machine: up(func(s *dsl.State) { s.Transitions = to(holds, "Down") }), at: "Up", since: 2 * time.Hour},
			came{Moves: []string{"Up → Down"}, State: "Down", Ready: "True Down"},
		},
		"the next attempt comes when the time is over also while During fails": {
			given{machine: up(func(s *dsl.State) { s.During = failing(errNotYet) }), at: "Up", since: 30 * time.Minute},
			came{
				Ran: []string{"during Up"}, State: "Up", Again: "30m1s",
				Ready: "False DuringFailed during of state Up: not yet", Err: "during of state Up: not yet",
			},
		},
		"a time that cannot be read counts from now": {
			given{machine: up(nil), at: "Up", since: 100 * time.Hour, status: map[string]any{dsl.BookSince: "yesterday"}},
			came{State: "Up", Ready: "False Up", Again: "1h0m1s"},
		},
		"a time in the future counts from now": {
			given{machine: up(nil), at: "Up", since: -100 * time.Hour}, came{State: "Up", Ready: "False Up", Again: "1h0m1s"},
		},
		"changes outside the status are written first": {
			given{machine: up(func(s *dsl.State) { s.During = setsLabel }), at: "Up", since: 2 * time.Hour},
			came{Ran: []string{"during Up"}, State: "Up", Ready: "False Up", Alone: true, Again: "0s"},
		},
	})
}

// TestBudget holds how failures of actions are counted, and when the state is left for them.
func TestBudget(t *testing.T) {
	up := func(err error) dsl.Machine {
		return twoStates(dsl.State{During: failing(err), Retries: &dsl.Budget{AtMost: 2, Then: "Lost"}})
	}
	failed := func(state, err string) came {
		return came{Ran: []string{"during Up"}, State: state, Ready: "False DuringFailed during of state Up: " + err, Err: "during of state Up: " + err}
	}
	lost := func(why string) came {
		return came{Ran: []string{"during Up"}, Moves: []string{"Up → Lost: during failed " + why}, State: "Lost", Ready: "False Lost"}
	}
	attempts(t, map[string]struct {
		given
		came
	}{
		"the first failure is counted":        {given{machine: up(errNotYet), at: "Up"}, failed("Up failed 1", "not yet")},
		"the last failure that is allowed":    {given{machine: up(errNotYet), at: "Up", failures: 1}, failed("Up failed 2", "not yet")},
		"one failure too many":                {given{machine: up(errNotYet), at: "Up", failures: 2}, lost("3 times: not yet")},
		"a permanent failure uses up all":     {given{machine: up(dsl.Permanent(errNotYet)), at: "Up"}, lost("once: not yet")},
		"a failure before its time":           {given{machine: up(errNotYet), at: "Up", failures: 2, input: Input{Early: true}}, failed("Up failed 2", "not yet")},
		"a permanent failure before its time": {given{machine: up(dsl.Permanent(errNotYet)), at: "Up", input: Input{Early: true}}, lost("once: not yet")},
		"a wait is no failure": {
			given{machine: up(dsl.Waiting("Godot", 0)), at: "Up", failures: 2},
			came{Ran: []string{"during Up"}, State: "Up failed 2", Ready: "False Up waiting for Godot", Err: "waiting for Godot"},
		},
		"failures are not counted in a state without a budget": {
			given{machine: twoStates(dsl.State{During: failing(errNotYet)}), at: "Up"}, failed("Up", "not yet"),
		},
		"Enter and During have one budget": {
			given{machine: twoStates(dsl.State{Enter: failing(errNotYet), During: succeeds, Retries: &dsl.Budget{AtMost: 2, Then: "Lost"}}), at: "Up", failures: 2},
			came{Ran: []string{"enter Up"}, Moves: []string{"Up → Lost: enter failed 3 times: not yet"}, State: "Lost", Ready: "False Lost"},
		},
		"a budget that was used up, though the transition was not written": {
			given{machine: up(nil), at: "Up", failures: 3},
			came{Moves: []string{"Up → Lost: during failed 3 times"}, State: "Lost", Ready: "False Lost"},
		},
		"Enter's changes outside the status are written first": {
			given{machine: twoStates(dsl.State{Enter: setsLabel, During: failing(errNotYet), Retries: &dsl.Budget{Then: "Lost"}}), at: "Up"},
			came{
				Ran: []string{"enter Up", "during Up"}, State: "Up failed 1", Alone: true, Again: "0s",
				Ready: "False DuringFailed during of state Up: not yet", Err: "during of state Up: not yet",
			},
		},
	})
}

// TestBudgetAfterChanges holds that a state whose budget was used up is left after the changes of Enter are written.
func TestBudgetAfterChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := given{machine: twoStates(dsl.State{Enter: setsLabel, During: failing(errNotYet), Retries: &dsl.Budget{Then: "Lost"}}), at: "Up"}
		first, _ := g.attempt(t)
		g.failures, g.input.Known = 1, first.Sent
		second, got := g.attempt(t)
		want := came{Moves: []string{"Up → Lost: during failed once: not yet"}, State: "Lost", Ready: "False Lost"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if !second.Done.Put { // the next attempt leaves the state without a look at the actions, if this write fails
			t.Error("that the changes were sent is forgotten before the transition is written")
		}
	})
}

// TestBlame holds which action has failed when the server refuses the changes of an attempt, and what the next attempt makes of it.
func TestBlame(t *testing.T) {
	both := twoStates(dsl.State{Enter: setsLabel, During: setsStatus, Retries: &dsl.Budget{AtMost: 2, Then: "Lost"}})
	during := twoStates(dsl.State{During: setsStatus, Retries: &dsl.Budget{AtMost: 2, Then: "Lost"}})
	for name, test := range map[string]struct {
		machine  dsl.Machine
		failures int64
		// blamed is how often an action is blamed.
		blamed int
		came
	}{
		"the only action with changes": {during, 0, 1, came{
			State: "Up failed 1", Ready: "False DuringFailed during of state Up: changing the object: no", Err: "during of state Up: changing the object: no",
		}},
		"a failure too many": {during, 2, 1, came{
			Moves: []string{"Up → Lost: during failed 3 times: changing the object: no"}, State: "Lost", Ready: "False Lost",
		}},
		"the last of two actions": {both, 0, 1, came{
			State: "Up failed 1", Ready: "False DuringFailed during of state Up: changing the object: no", Err: "during of state Up: changing the object: no",
			Alone: true, Again: "0s",
		}},
		"the first of two actions": {both, 0, 2, came{
			State: "Up failed 1", Ready: "False EnterFailed enter of state Up: changing the object: no", Err: "enter of state Up: changing the object: no",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := given{machine: test.machine, at: "Up", failures: test.failures}
				result, got := g.attempt(t)
				for range test.blamed {
					if !result.Blame(errors.New("no")) {
						t.Fatal("no action is left to blame")
					}
					g.input.Before = &result
					result, got = g.attempt(t)
				}
				if diff := cmp.Diff(test.came, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestBlameAfterTheLast holds that an attempt whose actions were all blamed is refused for what the machine writes itself.
func TestBlameAfterTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		result, _ := given{machine: twoStates(dsl.State{Enter: succeeds, During: setsStatus}), at: "Up"}.attempt(t)
		all := dsl.NewPatch()
		if got := result.Wishes(all); got == all || len(got.Status) != 1 {
			t.Errorf("the actions want %v", got)
		}
		if !result.Blame(errNotYet) || result.Blame(errNotYet) {
			t.Error("one action has changes, and is to be blamed once")
		}
		if result.Wishes(all) != all {
			t.Error("without changes of actions all changes are refused")
		}
		if none := (*Result)(nil); none.Blame(errNotYet) || none.Wishes(all) != all {
			t.Error("without an attempt there is nothing to blame")
		}
	})
}
