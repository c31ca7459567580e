// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestTransitions holds which transitions an attempt takes, and which actions it runs.
func TestTransitions(t *testing.T) {
	three := dsl.Machine{States: []dsl.State{
		{Name: "A", Transitions: to(nil, "B")}, {Name: "B", Transitions: []dsl.Transition{{To: "C", Why: "it may"}}}, {Name: "C", Terminal: true},
	}}
	circle := dsl.Machine{AllowCycles: true, States: []dsl.State{{Name: "A", Transitions: to(nil, "B")}, {Name: "B", Transitions: to(nil, "A")}}}
	attempts(t, map[string]struct {
		given
		came
	}{
		"a new object begins in the initial state, and its Enter and During run": {
			given{machine: twoStates(dsl.State{Enter: succeeds, During: succeeds, Transitions: to(never, "Down")})},
			came{Ran: []string{"enter Up", "during Up"}, State: "Up entered", Ready: "False Up"},
		},
		"the initial state is the one that the machine names": {
			given{machine: dsl.Machine{Initial: "B", States: []dsl.State{{Name: "A"}, {Name: "B"}}}}, came{State: "B", Ready: "False B"},
		},
		"Enter does not run once more, and During does": {
			given{machine: twoStates(dsl.State{Enter: succeeds, During: succeeds}), at: "Up", entered: true},
			came{Ran: []string{"during Up"}, State: "Up entered", Ready: "False Up"},
		},
		"states without actions are gone through in one attempt": {
			given{machine: three, at: "A"}, came{Moves: []string{"A → B", "B → C: it may"}, State: "C", Ready: "True C"},
		},
		"a state with actions is written before these run": {
			given{machine: dsl.Machine{States: []dsl.State{{Name: "A", Transitions: to(nil, "B")}, {Name: "B", During: succeeds}}}},
			came{Moves: []string{"A → B"}, State: "B", Ready: "False B", Again: "0s"},
		},
		"the first transition that holds is taken": {
			given{machine: twoStates(dsl.State{Transitions: append(to(never, "Lost"), to(holds, "Down", "Lost")...)}), at: "Up"},
			came{Moves: []string{"Up → Down"}, State: "Down", Ready: "True Down"},
		},
		"a manual transition is not taken without a person": {
			given{machine: twoStates(dsl.State{Transitions: []dsl.Transition{{To: "Down", Manual: true}}}), at: "Up"}, came{State: "Up", Ready: "False Up"},
		},
		"transitions see what the actions have changed": {
			given{machine: twoStates(dsl.State{Enter: setsStatus, Transitions: to(hasSize, "Down")}), at: "Up"},
			came{Ran: []string{"enter Up"}, Moves: []string{"Up → Down"}, State: "Down", Ready: "True Down"},
		},
		"no transition is taken before Enter has succeeded": {
			given{machine: twoStates(dsl.State{Enter: failing(errNotYet), During: succeeds, Transitions: to(holds, "Down")}), at: "Up"},
			came{Ran: []string{"enter Up"}, State: "Up", Ready: "False EnterFailed enter of state Up: not yet", Err: "enter of state Up: not yet"},
		},
		"a transition is taken while During fails": {
			given{machine: twoStates(dsl.State{During: failing(errNotYet), Transitions: to(holds, "Down")}), at: "Up"},
			came{Ran: []string{"during Up"}, Moves: []string{"Up → Down"}, State: "Down", Ready: "True Down"},
		},
		"a state stays as it is, and is not ready, while During fails": {
			given{machine: twoStates(dsl.State{During: failing(errNotYet)}), at: "Up"},
			came{Ran: []string{"during Up"}, State: "Up", Ready: "False DuringFailed during of state Up: not yet", Err: "during of state Up: not yet"},
		},
		"transitions after one that cannot be asked are not asked": {
			given{machine: twoStates(dsl.State{Transitions: append(to(asking(errNotYet), "Lost"), to(holds, "Down")...)}), at: "Up"},
			came{State: "Up", Ready: "False WhenFailed asking whether to go from Up to Lost: not yet", Err: "asking whether to go from Up to Lost: not yet"},
		},
		"a condition that waits is a wait of the attempt": {
			given{machine: twoStates(dsl.State{Transitions: append(to(asking(dsl.Waiting("Godot", time.Hour)), "Lost"), to(holds, "Down")...)}), at: "Up"},
			came{State: "Up", Ready: "False Up waiting for Godot", Err: "waiting for Godot"},
		},
		"an action that waits keeps a terminal state from being ready": {
			given{machine: twoStates(dsl.State{During: failing(dsl.Waiting("Godot", time.Hour)), Terminal: true}), at: "Up"},
			came{Ran: []string{"during Up"}, State: "Up", Ready: "False Up waiting for Godot", Err: "waiting for Godot"},
		},
		"states that go round in a circle end the attempt": {
			given{machine: circle, at: "A"},
			came{
				Moves: []string{"A → B", "B → A"}, State: "A", Err: "the states go round in a circle: after 2 transitions in one go it is in A again",
				Ready: "False Looping the states go round in a circle: after 2 transitions in one go it is in A again",
			},
		},
		"an action that declares sub-handlers fails for good": {
			given{machine: twoStates(dsl.State{During: func(_ context.Context, r *dsl.Request) error {
				r.Handle("part", succeeds)
				return nil
			}}), at: "Up"},
			came{
				Ran: []string{"during Up"}, State: "Up", Err: "during of state Up: " + errParts.Error(), Ready: "False DuringFailed during of state Up: " + errParts.Error(),
				Permanent: true,
			},
		},
		"changes outside the status are written without the transition that follows": {
			given{machine: twoStates(dsl.State{During: setsLabel, Transitions: to(hasLabel, "Down")}), at: "Up"},
			came{Ran: []string{"during Up"}, State: "Up", Ready: "False Up", Alone: true, Again: "0s"},
		},
		"that Enter has succeeded is not written with its changes outside the status": {
			given{machine: twoStates(dsl.State{Enter: setsLabel, During: succeeds}), at: "Up"},
			came{Ran: []string{"enter Up", "during Up"}, State: "Up", Ready: "False Up", Alone: true, Again: "0s"},
		},
	})
}

// hasSize holds when an action has set the size in the status.
func hasSize(about *dsl.Subject) (bool, error) {
	status, _ := about.Object.Object["status"].(map[string]any)
	return fmt.Sprint(status["size"]) == "2", nil
}

// TestChangesWrittenAlone holds how an attempt goes on after one whose changes outside the status were written alone.
func TestChangesWrittenAlone(t *testing.T) {
	for name, test := range map[string]struct {
		state dsl.State
		cause dsl.Cause
		came
	}{
		"the transition is taken before actions run once more": {
			dsl.State{During: setsLabel, Transitions: to(holds, "Down")}, dsl.Again, came{Moves: []string{"Up → Down"}, State: "Down", Ready: "True Down"},
		},
		"nothing happens where no transition holds": {
			dsl.State{During: setsLabel, Transitions: to(never, "Down")}, dsl.Again, came{State: "Up", Ready: "False Up"},
		},
		"the actions run where something has happened meanwhile": {
			dsl.State{During: setsLabel, Transitions: to(never, "Down")}, dsl.Update,
			came{Ran: []string{"during Up"}, State: "Up", Ready: "False Up", Alone: true, Again: "0s"},
		},
		"the attempt that During has asked for comes when it was asked for": {
			dsl.State{During: func(ctx context.Context, r *dsl.Request) error { r.RunAgain(time.Hour); return setsLabel(ctx, r) }, Transitions: to(never, "Down")},
			dsl.Again, came{State: "Up", Ready: "False Up", Again: "59m0s"},
		},
		"During runs once more where it has failed": {
			dsl.State{Enter: setsLabel, During: failing(errNotYet), Transitions: to(never, "Down")}, dsl.Again,
			came{
				Ran: []string{"during Up"}, State: "Up entered", Ready: "False DuringFailed during of state Up: not yet", Err: "during of state Up: not yet",
			},
		},
		"Enter does not run once more": {
			dsl.State{Enter: setsLabel, During: succeeds, Transitions: to(never, "Down")}, dsl.Update,
			came{Ran: []string{"during Up"}, State: "Up entered", Ready: "False Up"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := given{machine: twoStates(test.state), at: "Up", cause: dsl.Update}
				first, got := g.attempt(t)
				if !got.Alone || len(got.Moves) > 0 {
					t.Fatalf("the first attempt comes to %+v", got)
				}
				time.Sleep(time.Minute)
				g.cause, g.since, g.input.Known = test.cause, time.Minute, first.Sent
				if _, got = g.attempt(t); !cmp.Equal(test.came, got) {
					t.Errorf("(-want +got):\n%s", cmp.Diff(test.came, got))
				}
			})
		})
	}
}

// TestBeginThatWasNotWritten holds that an object without progress is in its first state since when an earlier attempt has begun there.
func TestBeginThatWasNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := given{machine: twoStates(dsl.State{Enter: succeeds, Stay: &dsl.Stay{AtMost: time.Hour, Then: "Lost"}})}
		first, _ := g.attempt(t)
		time.Sleep(10 * time.Minute)
		g.input.Known = first.Done
		_, got := g.attempt(t)
		want := came{State: "Up entered", Ready: "False Up", Again: "50m1s"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestEnterThatWasNotWritten holds that an Enter without changes does not run once more where the write that said so has failed.
func TestEnterThatWasNotWritten(t *testing.T) {
	for name, test := range map[string]struct {
		enter dsl.Func
		since time.Duration
		want  []string
	}{
		"it has succeeded in this stay in the state":                  {succeeds, 0, nil},
		"it has succeeded in an earlier stay in the state":            {succeeds, time.Hour, []string{"enter Up"}},
		"its changes were not written either, and are computed again": {setsStatus, 0, []string{"enter Up"}},
		"it has failed": {failing(errNotYet), 0, []string{"enter Up"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := given{machine: twoStates(dsl.State{Enter: test.enter}), at: "Up"}
				first, _ := g.attempt(t)
				g.input.Known, g.since = first.Done, test.since
				if _, got := g.attempt(t); !cmp.Equal(test.want, got.Ran) {
					t.Errorf("the next attempt runs %v, want %v", got.Ran, test.want)
				}
			})
		})
	}
}
