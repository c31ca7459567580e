// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestGoto holds what becomes of the annotation by which a person asks for a transition.
func TestGoto(t *testing.T) {
	m := twoStates(dsl.State{
		Enter: succeeds, During: succeeds, Stay: &dsl.Stay{AtMost: time.Hour, Then: "Lost"},
		Transitions: []dsl.Transition{{To: "Down", Manual: true}, {To: "Done", When: holds}},
	})
	m.States = append(m.States, dsl.State{Name: "Done", Terminal: true}, dsl.State{Name: "Far", Terminal: true})
	removed := []string{"op/goto"}
	refused := func(of, can string) []string {
		return []string{`Warning GotoRefused The annotation op/goto asks for "Far", and the object is in state ` + of + `: ` + can}
	}
	attempts(t, map[string]struct {
		given
		came
	}{
		"a manual transition is taken": {
			given{machine: m, at: "Up", entered: true, goTo: "Down"},
			came{Moves: []string{"Up → Down: a person asked for it"}, State: "Down", Ready: "True Down", Removed: removed, Again: "0s"},
		},
		"a transition whose condition need not hold is taken": {
			given{machine: m, at: "Up", goTo: "Done"},
			came{Moves: []string{"Up → Done: a person asked for it"}, State: "Done", Ready: "True Done", Removed: removed, Again: "0s"},
		},
		"the way of a time limit is taken before its time": {
			given{machine: m, at: "Up", goTo: "Lost"},
			came{Moves: []string{"Up → Lost: a person asked for it"}, State: "Lost", Ready: "False Lost", Removed: removed, Again: "0s"},
		},
		"a state without a way to it is refused, and no action runs and no other transition is taken": {
			given{machine: m, at: "Up", entered: true, goTo: "Far"},
			came{State: "Up entered", Ready: "False Up", Removed: removed, Events: refused("Up", "one can go to Down, Done, Lost"), Again: "0s"},
		},
		"the time in the state is not over while the annotation is there": {
			given{machine: m, at: "Up", entered: true, since: 2 * time.Hour, goTo: "Far"},
			came{State: "Up entered", Ready: "False Up", Removed: removed, Events: refused("Up", "one can go to Down, Done, Lost"), Again: "0s"},
		},
		"a state without ways out of it": {
			given{machine: m, at: "Down", goTo: "Far"},
			came{State: "Down", Ready: "True Down", Removed: removed, Events: refused("Down", "no way leads out of it"), Again: "0s"},
		},
		"the state that the object is in": {
			given{machine: m, at: "Down", goTo: "Down"}, came{State: "Down", Ready: "True Down", Removed: removed, Again: "0s"},
		},
		"an object that is out of sight keeps the annotation": {
			given{machine: m, at: "Up", entered: true, goTo: "Down", input: Input{Gone: true}},
			came{Ran: []string{"during Up"}, Moves: []string{"Up → Done"}, State: "Done", Ready: "True Done"},
		},
	})
}

// TestAfterAGotoWasRefused holds that the machine goes on once the annotation is removed.
func TestAfterAGotoWasRefused(t *testing.T) {
	attempts(t, map[string]struct {
		given
		came
	}{
		"its transitions are asked": {
			given{machine: twoStates(dsl.State{Transitions: to(holds, "Down")}), at: "Up", cause: dsl.Again},
			came{Moves: []string{"Up → Down"}, State: "Down", Ready: "True Down"},
		},
		"its time is over": {
			given{machine: twoStates(dsl.State{Stay: &dsl.Stay{AtMost: time.Hour, Then: "Lost"}}), at: "Up", since: 2 * time.Hour, cause: dsl.Again},
			came{Moves: []string{"Up → Lost: it was in state Up for more than 1h0m0s"}, State: "Lost", Ready: "False Lost"},
		},
	})
}
