// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
)

// ends returns a machine whose deletion goes from Draining to Drained, or to Stuck.
func ends(draining dsl.State) dsl.Machine {
	m := twoStates(dsl.State{During: succeeds})
	draining.Name = "Draining"
	m.Deletion = []dsl.State{draining, {Name: "Drained", Terminal: true}, {Name: "Stuck", Terminal: true, Failed: true}}
	return m
}

// TestDeletion holds how an object that is being deleted goes through its states, and when the deletion is done.
func TestDeletion(t *testing.T) {
	withActions := ends(dsl.State{Transitions: to(holds, "Drained")})
	withActions.Deletion[1].During = succeeds
	waits := func(state string) string { return "waiting for a terminal state: it is in " + state }
	attempts(t, map[string]struct {
		given
		came
	}{
		"an object goes from any state to the first one of deletion, which is written before its actions run": {
			given{machine: ends(dsl.State{Enter: succeeds}), at: "Lost", cause: dsl.Delete},
			came{Moves: []string{"Lost → Draining: the object is being deleted"}, State: "Draining", Ready: "False Draining", Again: "0s", Err: waits("Draining")},
		},
		"an object without a book begins there": {
			given{machine: ends(dsl.State{Enter: failing(errNotYet)}), cause: dsl.Delete},
			came{Ran: []string{"enter Draining"}, State: "Draining", Ready: "False EnterFailed enter of state Draining: not yet", Err: "enter of state Draining: not yet"},
		},
		"an object in a state that the machine does not have any more goes there": {
			given{machine: ends(dsl.State{Transitions: to(never, "Drained")}), at: "Old", cause: dsl.Delete},
			came{Moves: []string{"Old → Draining: the object is being deleted"}, State: "Draining", Ready: "False Draining", Err: waits("Draining")},
		},
		"the deletion waits for a terminal state": {
			given{machine: ends(dsl.State{Transitions: to(never, "Drained")}), at: "Draining", cause: dsl.Delete},
			came{State: "Draining", Ready: "False Draining", Err: waits("Draining")},
		},
		"the deletion is done in a terminal state": {
			given{machine: ends(dsl.State{Transitions: to(holds, "Drained")}), at: "Draining", cause: dsl.Delete},
			came{Moves: []string{"Draining → Drained"}, State: "Drained", Ready: "True Drained"},
		},
		"a terminal state that is Failed is a permanent failure": {
			given{machine: ends(dsl.State{Transitions: to(holds, "Stuck")}), at: "Draining", cause: dsl.Delete},
			came{Moves: []string{"Draining → Stuck"}, State: "Stuck", Ready: "False Stuck", Err: "ending in state Stuck", Permanent: true},
		},
		"a transition to a terminal state with actions holds the deletion until these have run": {
			given{machine: withActions, at: "Draining", cause: dsl.Delete},
			came{Moves: []string{"Draining → Drained"}, State: "Drained", Ready: "True Drained", Again: "0s", Err: waits("Drained")},
		},
		"an action that waits holds the deletion": {
			given{machine: ends(dsl.State{Enter: failing(dsl.Waiting("Godot", 0)), Terminal: true}), at: "Draining", cause: dsl.Delete},
			came{Ran: []string{"enter Draining"}, State: "Draining", Ready: "False Draining waiting for Godot", Err: "waiting for Godot"},
		},
		"changes outside the status hold the deletion until they are written": {
			given{machine: ends(dsl.State{Enter: setsLabel, Terminal: true}), at: "Draining", cause: dsl.Delete},
			came{Ran: []string{"enter Draining"}, State: "Draining", Ready: "False Draining", Alone: true, Again: "0s", Err: waits("Draining")},
		},
	})
}

// TestPermanentFailuresOfADeletion holds that a permanent failure ends the deletion in a terminal state alone.
func TestPermanentFailuresOfADeletion(t *testing.T) {
	for name, test := range map[string]struct {
		state dsl.State
		want  bool
	}{
		"in a state on the way": {dsl.State{Enter: failing(dsl.Permanent(errNotYet))}, false},
		"in a terminal state":   {dsl.State{Enter: failing(dsl.Permanent(errNotYet)), Terminal: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if _, got := (given{machine: ends(test.state), at: "Draining", cause: dsl.Delete}).attempt(t); got.Permanent != test.want {
					t.Errorf("the error %q is permanent: %v, want %v", got.Err, got.Permanent, test.want)
				}
			})
		})
	}
}

// TestDeletionOutOfSight holds how a deletion goes on that cannot be written, because its object is out of sight, and what
// becomes of an object that comes back.
func TestDeletionOutOfSight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := ends(dsl.State{Enter: succeeds, Transitions: to(holds, "Drained")})
		g := given{machine: m, at: "Down", cause: dsl.Delete, input: Input{Gone: true}}
		var states []string
		for range 4 {
			result, _ := g.attempt(t)
			for _, v := range result.Moves {
				states = append(states, v.To)
			}
			g.input.Known = result.Sent
		}
		if diff := cmp.Diff([]string{"Draining", "Drained"}, states); diff != "" {
			t.Errorf("states (-want +got):\n%s", diff)
		}
		g.cause, g.input.Gone = dsl.Update, false
		_, got := g.attempt(t)
		want := came{Ran: []string{"during Up"}, State: "Up", Ready: "False Up"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("an object that is back (-want +got):\n%s", diff)
		}
	})
}

// TestUnknownState holds what becomes of an object in a state that the machine does not have.
func TestUnknownState(t *testing.T) {
	migrating := ends(dsl.State{})
	migrating.Migrate = map[string]string{"Old": "Down", "Draining2": "Draining"}
	held := func(state, names string) came {
		text := `the machine has no state "` + state + `" for this object: set status.state to one of ` + names + `, or say in migrate where such objects go`
		return came{Ready: "False StateUnknown " + text, Events: []string{"Warning StateUnknown Nothing is done: " + text}}
	}
	attempts(t, map[string]struct {
		given
		came
	}{
		"it is held, and nothing is written to its book": {given{machine: migrating, at: "Odd"}, held("Odd", "Up, Down, Lost")},
		"it is held whatever a person asks for":          {given{machine: migrating, at: "Odd", goTo: "Down"}, held("Odd", "Up, Down, Lost")},
		"it goes where the machine says": {
			given{machine: migrating, at: "Old"},
			came{Moves: []string{"Old → Down: the machine has no state Old any more"}, State: "Down", Ready: "True Down"},
		},
		"it goes to a state of deletion when it is being deleted": {
			given{machine: migrating, at: "Draining2", cause: dsl.Delete},
			came{
				Moves: []string{"Draining2 → Draining: the machine has no state Draining2 any more"}, State: "Draining", Ready: "False Draining",
				Err: "waiting for a terminal state: it is in Draining",
			},
		},
		"it does not go to a state of deletion while it lives": {given{machine: migrating, at: "Draining2"}, held("Draining2", "Up, Down, Lost")},
		"it is held in a state of deletion while it lives":     {given{machine: migrating, at: "Draining"}, held("Draining", "Up, Down, Lost")},
		"a book of another object does not count": {
			given{machine: migrating, at: "Odd", status: map[string]any{dsl.BookUID: "other"}}, came{Ran: []string{"during Up"}, State: "Up", Ready: "False Up"},
		},
	})
}
