// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
)

// TestWhatAStepDoes runs a step with each result of its filter, for causes that matter to it.
func TestWhatAStepDoes(t *testing.T) {
	when := func(holds bool, err error) dsl.Predicate {
		return func(*dsl.Subject) (bool, error) { return holds, err }
	}
	unknown := errors.New("evaluating when: no such key")
	tests := map[string]struct {
		step  actions.Step
		cause dsl.Cause
		did   string
		err   error
	}{
		"without a filter it runs":                          {actions.Step{}, dsl.Update, "ran", nil},
		"it runs when the filter holds":                     {actions.Step{When: when(true, nil)}, dsl.Update, "ran", nil},
		"a filter that does not hold is reported":           {actions.Step{When: when(false, nil)}, dsl.Update, "reported", nil},
		"in a deletion it is not reported":                  {actions.Step{When: when(false, nil)}, dsl.Delete, "", nil},
		"an error of the filter is the step's":              {actions.Step{When: when(false, unknown)}, dsl.Update, "", unknown},
		"another step's deletion is not for it":             {actions.Step{NotOnDelete: true}, dsl.Delete, "", nil},
		"an entry that leaves does not ask the filter":      {actions.Step{When: when(false, unknown), Entries: &actions.Entries{}}, dsl.Delete, "ran", nil},
		"an entry with a handler for deletions does ask it": {actions.Step{When: when(false, nil), Entries: &actions.Entries{Deletes: true}}, dsl.Delete, "", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			did := ""
			tt.step.Func = func(context.Context, *dsl.Request) error { did = "ran"; return nil }
			tt.step.Filtered = func(*dsl.Subject, *dsl.Patch) { did = "reported" }
			r := &dsl.Request{Patch: dsl.NewPatch()}
			r.Cause = tt.cause
			if err := (composer{}).Step(tt.step)(t.Context(), r); !errors.Is(err, tt.err) || did != tt.did {
				t.Errorf("it %q with error %v, want %q with %v", did, err, tt.did, tt.err)
			}
		})
	}
}
