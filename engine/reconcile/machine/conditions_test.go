// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestConditions holds which conditions a machine sets, alone and with others.
func TestConditions(t *testing.T) {
	m := &dsl.Machine{Name: "door", States: []dsl.State{
		{Name: "Open", Condition: "Passable", Doc: "People pass."}, {Name: "Ajar", Condition: "Passable"}, {Name: "Locked", Condition: "Safe", Terminal: true},
	}}
	light := &dsl.Machine{Name: "light"}
	alarm := &dsl.Machine{Name: "alarm"}
	for name, test := range map[string]struct {
		state  string
		others []*dsl.Machine
		// reported are the conditions of the object.
		reported []any
		problem  problem
		want     []string
	}{
		"a state has its condition, and others have not": {
			state: "Open", want: []string{"Passable True Open People pass.", "Safe False Open People pass.", "Ready False Open People pass."},
		},
		"two states have one condition": {state: "Ajar", want: []string{"Passable True Ajar", "Safe False Ajar", "Ready False Ajar"}},
		"a terminal state is ready":     {state: "Locked", want: []string{"Passable False Locked", "Safe True Locked", "Ready True Locked"}},
		"a failure is the reason why it is not ready": {
			state: "Locked", problem: problem{err: errNotYet, reason: DuringFailed},
			want: []string{"Passable False Locked", "Safe True Locked", "Ready False DuringFailed not yet"},
		},
		"a wait of a condition leaves it ready": {
			state: "Locked", problem: problem{waits: errNotYet}, want: []string{"Passable False Locked", "Safe True Locked", "Ready True Locked not yet"},
		},
		"a wait of an action does not": {
			state: "Locked", problem: problem{waits: errNotYet, idle: true},
			want: []string{"Passable False Locked", "Safe True Locked", "Ready False Locked not yet"},
		},
		"an unknown state has no condition": {
			state: "Odd", problem: problem{err: errNotYet, reason: StateUnknown},
			want: []string{"Passable False StateUnknown not yet", "Safe False StateUnknown not yet", "Ready False StateUnknown not yet"},
		},
		"other machines that have not reported do not count": {
			state: "Locked", others: []*dsl.Machine{light},
			want: []string{"Passable False Locked", "Safe True Locked", "DoorReady True Locked", "Ready True AllReady"},
		},
		"another machine that is not ready gives the reason": {
			state: "Locked", others: []*dsl.Machine{light, alarm},
			reported: []any{
				map[string]any{"type": "LightReady", "status": "False", "reason": "Dim", "message": "It glows."},
				map[string]any{"type": "AlarmReady", "status": "True", "reason": "Quiet"},
			},
			want: []string{"Passable False Locked", "Safe True Locked", "DoorReady True Locked", "Ready False Dim LightReady is not: It glows."},
		},
		"of several that are not ready the first by name gives the reason": {
			state: "Open", others: []*dsl.Machine{light, alarm},
			reported: []any{
				map[string]any{"type": "LightReady", "status": "False", "reason": "Dim"},
				map[string]any{"type": "AlarmReady", "status": "False", "reason": "Loud"},
			},
			want: []string{"Passable True Open People pass.", "Safe False Open People pass.", "DoorReady False Open People pass.", "Ready False Loud AlarmReady is not"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := run{Input: Input{Others: test.others}, machine: m, request: &dsl.Request{}}
			x.request.Object = &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": test.reported}}}
			s := state{problem: test.problem}
			s.place, _ = place{Book: Book{State: test.state}}.find(m)
			var got []string
			for _, c := range x.conditions(s) {
				got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", c.Type, c.Status, c.Reason, c.Message)))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLongMessages holds that the message of a condition is short, however long an error is.
func TestLongMessages(t *testing.T) {
	x := run{machine: &dsl.Machine{States: []dsl.State{{Name: "Up"}}}, request: &dsl.Request{}}
	s := state{problem: problem{err: fmt.Errorf("%s", strings.Repeat("no ", 10_000)), reason: EnterFailed}}
	s.place, _ = place{Book: Book{State: "Up"}}.find(x.machine)
	for _, c := range x.conditions(s) {
		if len(c.Message) > messageMost+3 || c.Status != metav1.ConditionFalse {
			t.Errorf("condition %s has %d bytes", c.Type, len(c.Message))
		}
	}
}
