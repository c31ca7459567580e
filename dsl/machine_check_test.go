// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
)

// states makes a machine of states alone.
func states(all ...dsl.State) dsl.Machine { return dsl.Machine{States: all} }

// to is a transition whose condition may hold.
func to(name string) dsl.Transition {
	return dsl.Transition{To: name, When: func(*dsl.Subject) (bool, error) { return true, nil }}
}

// always is a transition without a condition, and manual one that a person takes.
func always(name string) dsl.Transition { return dsl.Transition{To: name} }
func manual(name string) dsl.Transition { return dsl.Transition{To: name, Manual: true} }

// state is one with ways out, and end a terminal one.
func state(name string, ways ...dsl.Transition) dsl.State {
	return dsl.State{Name: name, Transitions: ways}
}
func end(name string) dsl.State { return dsl.State{Name: name, Terminal: true} }

// faultsOf are the places and texts of what is wrong with an operator.
func faultsOf(t *testing.T, err error) (out []string) {
	t.Helper()
	if err == nil {
		return nil
	}
	joined, is := err.(interface{ Unwrap() []error })
	if !is {
		t.Fatalf("the error is %v", err)
	}
	for _, one := range joined.Unwrap() {
		var f *dsl.Fault
		if !errors.As(one, &f) {
			t.Fatalf("%v has no place", one)
		}
		text := f.Field + ": " + f.Err.Error()
		if f.First != nil {
			text += " [" + f.First.Field + "]"
		}
		out = append(out, text)
	}
	return out
}

func TestFaultsOfMachines(t *testing.T) {
	nothing := func(context.Context, *dsl.Request) error { return nil }
	hour := &dsl.Stay{AtMost: time.Hour, Then: "B"}
	tests := map[string]struct {
		machine dsl.Machine
		options []dsl.Option
		want    []string
	}{
		"a machine with every feature is taken": {machine: dsl.Machine{
			Name: "rollout", Initial: "A", AllowCycles: true, Migrate: map[string]string{"Old": "A", "Gone": "Y"},
			States: []dsl.State{
				{Name: "C", Terminal: true, Failed: true, During: nothing, Transitions: []dsl.Transition{manual("A")}},
				{
					Name: "A", Enter: nothing, Stay: &dsl.Stay{AtMost: time.Hour, Then: "C"}, Retries: &dsl.Budget{AtMost: 0, Then: "C"}, Condition: "Scheduled",
					Transitions: []dsl.Transition{to("B"), manual("C"), always("B")},
				},
				end("B"),
			},
			Deletion: []dsl.State{end("Y"), state("X", always("Y"))}, InitialDeletion: "X",
		}, options: []dsl.Option{dsl.Timeout(time.Minute), dsl.WithBackoff(time.Second, time.Minute), dsl.Release(), dsl.Label("a", "b")}},
		"one without states": {machine: dsl.Machine{}, want: []string{"machine.states: want at least one state"}},
		"states that are not there, with the near name": {
			machine: dsl.Machine{Initial: "Running1", States: []dsl.State{
				{Name: "Running", Transitions: []dsl.Transition{to("Done"), to("")}, Stay: &dsl.Stay{AtMost: time.Hour, Then: "Faild"}, Enter: nothing, Retries: &dsl.Budget{Then: "Nowhere"}},
				end("Failed"),
			}},
			want: []string{
				"machine.states[0].transitions[1].to: want the state to go to",
				`machine.states[0].transitions[0].to: unknown state "Done" (want one of Running, Failed)`,
				`machine.states[0].stay.then: unknown state "Faild" (did you mean "Failed"?)`,
				`machine.states[0].retries.then: unknown state "Nowhere" (want one of Running, Failed)`,
				`machine.initial: unknown state "Running1" (did you mean "Running"?)`,
			},
		},
		"states that no way leads to, and one that no way leads out of": {
			machine: states(state("A", to("B")), state("B"), state("C", to("B"))),
			want: []string{
				"machine.states[2]: no way leads to state C",
				"machine.states[1]: no way leads out of state B, and it is not terminal",
			},
		},
		"invalid names, or names used twice": {
			machine: states(state("a b", to("B")), end("B"), end("B")),
			want: []string{
				`machine.states[0].name: want a word such as Pending, found "a b"`,
				"machine.states[2].name: there are two states B [machine.states[1].name]",
			},
		},
		"transitions that are never taken": {
			machine: states(state("A", always("B"), to("B"), manual("B"), always("B")), end("B")),
			want: []string{
				"machine.states[0].transitions[1]: is never taken: the transition to B before it has no when [machine.states[0].transitions[0]]",
				"machine.states[0].transitions[3]: is never taken: the transition to B before it has no when [machine.states[0].transitions[0]]",
			},
		},
		"a way back": {
			machine: states(state("A", to("B")), state("B", to("C"), to("A")), dsl.State{Name: "C", Terminal: true, Transitions: []dsl.Transition{manual("B"), manual("C")}}),
			want: []string{
				"machine.states[2].transitions[1].to: a person cannot have an object go where it is (want another state, with a way back)",
				"machine.states[2].transitions[0].to: a way leads back: B → C → B (if that is meant, set allowCycles)",
				"machine.states[2].transitions[1].to: a way leads back: C → C (if that is meant, set allowCycles)",
				"machine.states[1].transitions[1].to: a way leads back: A → B → A (if that is meant, set allowCycles)",
			},
		},
		"what a terminal state cannot have": {
			machine: states(dsl.State{Name: "A", Terminal: true, During: nothing, Transitions: []dsl.Transition{to("B"), always("B")}, Stay: hour, Retries: &dsl.Budget{Then: "B"}}, end("B")),
			want: []string{
				"machine.states[0].stay: is not for a terminal state, which nothing leaves by itself",
				"machine.states[0].retries: is not for a terminal state, which nothing leaves by itself",
				"machine.states[0].transitions[0]: state A is terminal, so only a person leaves it (want manual)",
				"machine.states[0].transitions[1]: state A is terminal, so only a person leaves it (want manual)",
			},
		},
		"a limit of less than a second": {
			machine: states(dsl.State{Name: "A", Stay: &dsl.Stay{AtMost: time.Millisecond, Then: "B"}}, end("B")),
			want:    []string{"machine.states[0].stay.atMost: must be at least 1s, found 1ms"},
		},
		"times and budgets that say nothing": {
			machine: states(dsl.State{Name: "A", Failed: true, Stay: &dsl.Stay{Then: "B"}, Retries: &dsl.Budget{AtMost: -1, Then: "B"}}, end("B")),
			want: []string{
				"machine.states[0].failed: is only for terminal states",
				"machine.states[0].stay.atMost: want how long an object may be in the state",
				"machine.states[0].retries.atMost: must not be negative",
				"machine.states[0].retries: the state has neither enter nor during, so nothing fails in it",
			},
		},
		"a manual transition with a condition": {
			machine: states(state("A", dsl.Transition{To: "B", Manual: true, When: to("B").When}), end("B")),
			want:    []string{"machine.states[0].transitions[0].when: is not for a manual transition, which a person takes"},
		},
		"conditions that the engine sets, or that cannot be set": {
			machine: dsl.Machine{Name: "app", States: []dsl.State{
				{Name: "A", Condition: "Ready", Transitions: []dsl.Transition{to("B")}}, {Name: "B", Condition: "AppReady", Transitions: []dsl.Transition{to("C")}},
				{Name: "C", Condition: "so so", Terminal: true},
			}},
			want: []string{
				"machine.states[0].condition: Ready says whether the state is ready (want ready)",
				"machine.states[1].condition: AppReady says whether the state is ready (want ready)",
				`machine.states[2].condition: want the type of a condition, such as Scheduled, found "so so": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
			},
		},
		"ways between life and deletion": {
			machine: dsl.Machine{States: []dsl.State{state("A", to("X")), end("B")}, Deletion: []dsl.State{state("X", to("B"))}},
			want: []string{
				"machine.states[0].transitions[0].to: state X is one of deletion: objects go there when they are deleted",
				"machine.deletion[0].transitions[0].to: state B is not one of deletion, and a deletion is not taken back",
				"machine.deletion[0]: no way leads from state X to a terminal one, so objects in it are held for good",
			},
		},
		"a deletion without an end, or without states": {
			machine: dsl.Machine{States: []dsl.State{end("A")}, InitialDeletion: "X", AllowCycles: true, Deletion: []dsl.State{state("X", to("Y")), state("Y", to("X"))}},
			want: []string{
				"machine.deletion[0]: no way leads from state X to a terminal one, so objects in it are held for good",
				"machine.deletion[1]: no way leads from state Y to a terminal one, so objects in it are held for good",
			},
		},
		"an initial state of deletions that there are not": {
			machine: dsl.Machine{States: []dsl.State{end("A")}, InitialDeletion: "X"},
			want:    []string{"machine.initialDeletion: there are no states of deletion"},
		},
		"migrations from what is there, and to what is not": {
			machine: dsl.Machine{States: []dsl.State{end("A")}, Migrate: map[string]string{"A": "A", "Old": "B"}},
			want: []string{
				`machine.migrate.A: there is a state A, from which objects go by its transitions`,
				`machine.migrate.Old: unknown state "B" (want A)`,
			},
		},
		"names of machines that the status has for something else": {
			machine: dsl.Machine{Name: "conditions", States: []dsl.State{end("A")}},
			want:    []string{"machine.name: conditions is taken: the status, or an annotation of the operator, has it for something else"},
		},
		"a name that is no field": {
			machine: dsl.Machine{Name: "Roll-out", States: []dsl.State{end("A")}},
			want:    []string{`machine.name: want a field of the status, such as rollout, found "Roll-out"`},
		},
		"a name that an annotation of children has": {
			machine: dsl.Machine{Name: "child", States: []dsl.State{end("A")}},
			want:    []string{"machine.name: child is taken: the status, or an annotation of the operator, has it for something else"},
		},
		"options that are not for machines": {
			machine: states(end("A")),
			options: []dsl.Option{dsl.Retries(3), dsl.Errors(dsl.ErrorsFail), dsl.Deadline(time.Hour), dsl.Field("spec"), dsl.NoOld(), dsl.Release()},
			want: []string{
				"onFailure: is only for handlers with cause delete",
				"retries: is not for machines: want retries of a state",
				"errors: is not for machines: an action that fails is tried again, as often as the retries of its state say",
				"deadline: is not for machines: want stay of a state",
				"field: is not for machines: it looks at what its states read",
				"old: is not for machines: nothing but its book is kept",
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			op := dsl.New("op")
			op.Resource("foos.v1.example.com", func(foo *dsl.Resource) { foo.Machine(tt.machine, tt.options...) })
			if diff := cmp.Diff(tt.want, faultsOf(t, op.Validate())); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMachinesOfOneResource(t *testing.T) {
	op := dsl.New("op")
	foo := op.Resource("foos.v1.example.com", func(foo *dsl.Resource) {
		foo.Keep = []dsl.Path{{"spec"}, {"status", "rollout"}}
		foo.Machine(dsl.Machine{Name: "rollout", States: []dsl.State{end("A")}})
		foo.Machine(dsl.Machine{Name: "rollout", States: []dsl.State{end("A")}})
		foo.Machine(dsl.Machine{States: []dsl.State{end("A")}})
	})
	if got := foo.Machines(); len(got) != 3 || got[2].ID != "machine" || !got[2].On(dsl.Resume) || got[2].On(dsl.Delete) {
		t.Errorf("machines %+v", got)
	}
	want := []string{
		"machine.name: another machine has its book in status.rollout, too (give each a name) [machine.name]",
		"machine: keep leaves status.state out of the cache, which is part of its book",
	}
	if diff := cmp.Diff(want, faultsOf(t, op.Validate())); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func TestWaysOfAState(t *testing.T) {
	s := dsl.State{
		Name: "A", Transitions: []dsl.Transition{to("B"), manual("C")}, Stay: &dsl.Stay{AtMost: time.Hour, Then: "D"}, Retries: &dsl.Budget{Then: "E"},
	}
	var got []string
	for _, w := range s.Ways() {
		got = append(got, string(w.Kind)+" "+w.To+" "+w.Field)
	}
	want := []string{"when B transitions[0].to", "manual C transitions[1].to", "stay D stay.then", "retries E retries.then"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ways (-want +got):\n%s", diff)
	}
}

// TestConditionsOfMachines holds which conditions the handlers of machines are known to set: one of its own each where there are
// several, and for all of them Ready.
func TestConditionsOfMachines(t *testing.T) {
	named := func(name string) dsl.Machine {
		return dsl.Machine{Name: name, States: []dsl.State{{Name: "Up", Condition: "Of" + name, Terminal: true}}}
	}
	for name, test := range map[string]struct {
		machines []string
		want     [][]string
	}{
		"one":   {[]string{"a"}, [][]string{{"Ofa", "Ready"}}},
		"two":   {[]string{"a", "b"}, [][]string{{"Ofa", "Ready", "AReady"}, {"Ofb", "Ready", "BReady"}}},
		"three": {[]string{"a", "b", ""}, [][]string{{"Ofa", "Ready", "AReady"}, {"Ofb", "Ready", "BReady"}, {"Of", "Ready", "MachineReady"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := dsl.New("op").Resource("foos.v1.example.com", nil)
			for _, machine := range test.machines {
				r.Machine(named(machine))
			}
			var got [][]string
			for _, h := range r.Machines() {
				got = append(got, h.Known.Conditions)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
