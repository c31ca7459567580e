// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestWhichConditionsMayBeOnesOfBefore holds for which conditions it is asked whether they are of an earlier machine: those with a
// reason of machines, where it is known which conditions all code sets.
func TestWhichConditionsMayBeOnesOfBefore(t *testing.T) {
	condition := func(kind, reason string) any { return map[string]any{"type": kind, "status": "True", "reason": reason} }
	for name, test := range map[string]struct {
		undeclared, gone bool
		conditions       []any
		want             []string
	}{
		"one whose reason is the state":                        {conditions: []any{condition("Going", "Up")}, want: []string{"Going"}},
		"one whose reason is the state of another machine":     {conditions: []any{condition("Going", "Open")}, want: []string{"Going"}},
		"one whose reason is what a machine's that is gone is": {conditions: []any{condition("Going", "Old"), condition("PhaseReady", "Old")}, want: []string{"Going", "PhaseReady"}},
		"one whose reason is a failure":                        {conditions: []any{condition("PhaseReady", EnterFailed)}, want: []string{"PhaseReady"}},
		"none with another reason":                             {conditions: []any{condition("Synced", "Pulled"), condition("Ready", "AllReady"), "odd", map[string]any{"reason": "Up"}}},
		"none where code sets undeclared ones":                 {undeclared: true, conditions: []any{condition("Going", "Up")}},
		"none of an object that is gone":                       {gone: true, conditions: []any{condition("Going", "Up")}},
	} {
		t.Run(name, func(t *testing.T) {
			o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"uid": "u"}, "status": map[string]any{
				"state": "Up", "stateUID": "u", "door": map[string]any{"state": "Open", "stateUID": "u"}, "copy": map[string]any{"state": "Pulled", "stateUID": "x"}, "conditions": test.conditions,
			}}}
			in := Input{
				Handler: &dsl.Handler{ID: "machine", Machine: &dsl.Machine{States: []dsl.State{{Name: "Up", Terminal: true}}}},
				Others:  []*dsl.Machine{{Name: "door"}, {Name: "copy"}}, Declared: !test.undeclared, Gone: test.gone,
			}
			r := &dsl.Request{Patch: dsl.NewPatch()}
			r.Object, r.Log = o, logr.Discard()
			if _, err := Run(t.Context(), in, r); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, r.Patch.Retired, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
