// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

const sameMachine = `
      states:
        - name: Pending
          doc: It waits for its child.
          condition: Waits
          enter:
            - name: config
              apply: {config: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}"}, data: {colour: "${self.spec.colour}"}}}
            - name: note
              set: {status: {colour: "${self.spec.colour}"}}
          transitions: [{to: Running, when: has(children.config.data.begun) && self.spec.colour != 'red', why: The child says so.}]
          stay: {atMost: 10m, then: Late}
        - name: Running
          ready: true
          during: {set: {status: {seen: "${self.spec.colour}"}}}
          transitions: [{to: Pending, when: self.spec.colour == 'red', why: It is red.}]
        - {name: Late, terminal: true, failed: true, transitions: [{to: Running, manual: true}]}
      deletion:
        - {name: Leaving, transitions: [{to: Left, when: self.spec.colour == 'none', why: It is let go.}]}
        - {name: Left, terminal: true}
`

// sameMachineInGo is what sameMachine is.
func sameMachineInGo() *dsl.Operator {
	colour := func(s *dsl.Subject) string { return text(s.Object, "spec.colour") }
	coloured := func(want string) dsl.Predicate {
		return func(s *dsl.Subject) (bool, error) { return colour(s) == want, nil }
	}
	begun := func(s *dsl.Subject) (bool, error) {
		config, err := s.Children.Get("configmaps.v1", s.Object.GetName())
		return text(config, "data.begun") != "" && colour(s) != "red", err
	}
	enter := func(ctx context.Context, r *dsl.Request) error {
		_, err := r.Children.Apply(ctx, map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": r.Object.GetName()},
			"data": map[string]any{"colour": text(r.Object, "spec.colour")},
		}, dsl.ChildSpec{Handler: "machine.Pending.config", Name: "config"})
		if err == nil {
			r.Patch.OfferCondition("Applied", metav1.ConditionTrue, "AllApplied", "")
			r.Patch.SetStatus("colour", text(r.Object, "spec.colour"))
		}
		return err
	}
	see := func(_ context.Context, r *dsl.Request) error {
		r.Patch.SetStatus("seen", text(r.Object, "spec.colour"))
		return nil
	}
	op := dsl.New("demo")
	op.Resource(machineFoos, func(foo *dsl.Resource) {
		foo.Owns("configmaps.v1")
		foo.Machine(dsl.Machine{
			AllowCycles: true,
			States: []dsl.State{
				{
					Name: "Pending", Doc: "It waits for its child.", Condition: "Waits", Enter: enter,
					Transitions: []dsl.Transition{{To: "Running", When: begun, Why: "The child says so."}},
					Stay:        &dsl.Stay{AtMost: 10 * time.Minute, Then: "Late"},
				},
				{
					Name: "Running", Ready: new(true), During: see,
					Transitions: []dsl.Transition{{To: "Pending", When: coloured("red"), Why: "It is red."}},
				},
				{Name: "Late", Terminal: true, Failed: true, Transitions: []dsl.Transition{{To: "Running", Manual: true}}},
			},
			Deletion: []dsl.State{
				{Name: "Leaving", Transitions: []dsl.Transition{{To: "Left", When: coloured("none"), Why: "It is let go."}}},
				{Name: "Left", Terminal: true},
			},
		})
	})
	return op
}

// TestMachinesInGoAndInYAMLMakeTheSameRequests holds that it is the same machine, whichever way it is written: in a life with
// children, times, a person's hand, a restart and an end each write is the same, to the letter.
func TestMachinesInGoAndInYAMLMakeTheSameRequests(t *testing.T) {
	live := func(op *dsl.Operator) (writes []kit.Write) {
		kit.Run(t, func(t *testing.T, c *kit.Cluster) {
			p := startMachine(c, op)
			begin := func() { spec(c, "configmaps.v1", "me", "now", "data", "begun") }
			begin()
			spec(c, machineFoos, "me", "blue", "spec", "colour")
			spec(c, machineFoos, "me", "red", "spec", "colour")
			c.Delete("configmaps.v1", "default", "me")
			c.Settle()
			spec(c, machineFoos, "me", "green", "spec", "colour")
			c.Advance(11 * time.Minute)
			if got := text(c.Get(machineFoos, "default", "me"), "status.state"); got != "Late" {
				t.Errorf("after its time it is in state %q", got)
			}
			p.Restart()
			c.Settle()
			wish(c, machineFoos, "me", "demo.handwerk.dev/goto", "Pending") // which is refused
			wish(c, machineFoos, "me", "demo.handwerk.dev/goto", "Running")
			c.Delete(machineFoos, "default", "me")
			c.Settle()
			spec(c, machineFoos, "me", "none", "spec", "colour")
			if c.Get(machineFoos, "default", "me") != nil {
				t.Error("it is still there")
			}
			writes = p.Writes()
		})
		return writes
	}
	inGo, inYAML := live(sameMachineInGo()), live(machineIn(t, sameMachine))
	if diff := cmp.Diff(inGo, inYAML); diff != "" {
		t.Errorf("writes (-Go +YAML):\n%s", diff)
	}
	if len(inGo) < 12 {
		t.Errorf("there were only these writes: %v", inGo)
	}
}
