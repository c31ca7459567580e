// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cause

import (
	"context"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
)

// handler declares one handler and returns it.
func handler(causes []dsl.Cause, options ...dsl.Option) *dsl.Handler {
	op := dsl.New("test")
	r := op.Resource("foos.v1.example.com", nil)
	r.On(causes, "h", func(context.Context, *dsl.Request) error { return nil }, options...)
	return r.Handlers()[0]
}

func TestLasting(t *testing.T) {
	create, update := handler([]dsl.Cause{dsl.Create}), handler([]dsl.Cause{dsl.Update})
	field := handler([]dsl.Cause{dsl.Create, dsl.Update}, dsl.Field("spec.x"))
	level, remove := handler([]dsl.Cause{dsl.Reconcile}), handler([]dsl.Cause{dsl.Delete})
	tests := map[string]struct {
		h     *dsl.Handler
		facts Facts
		seen  string
		want  dsl.Cause
	}{
		"an object without base is a create":                             {create, Facts{Now: Views{"": "1"}}, "", dsl.Create},
		"a create handler that is done with this essence is done":        {create, Facts{Now: Views{"": "1"}}, "1", ""},
		"one that is done with another essence runs again":               {create, Facts{Now: Views{"": "2"}}, "1", dsl.Create},
		"an update handler has nothing to do before there is a base":     {update, Facts{Now: Views{"": "1"}}, "", ""},
		"an essence that differs from the base is an update":             {update, Facts{Handled: true, Base: Views{"": "1"}, Now: Views{"": "2"}}, "", dsl.Update},
		"one that equals the base is not":                                {update, Facts{Handled: true, Base: Views{"": "1"}, Now: Views{"": "1"}}, "", ""},
		"an update handler that is done with the change is done":         {update, Facts{Handled: true, Base: Views{"": "1"}, Now: Views{"": "2"}}, "2", ""},
		"a change back to the base is news for who saw the other":        {update, Facts{Handled: true, Base: Views{"": "1"}, Now: Views{"": "1"}}, "2", dsl.Update},
		"a handler that is new to a handled object has no create":        {create, Facts{Handled: true, Base: Views{}, Now: Views{"": "1"}}, "", ""},
		"nor an update before it has a base":                             {update, Facts{Handled: true, Base: Views{}, Now: Views{"": "1"}}, "", ""},
		"a field handler does not see other fields change":               {field, Facts{Handled: true, Base: Views{"": "1", "spec.x": "a"}, Now: Views{"": "2", "spec.x": "a"}}, "", ""},
		"a field handler sees its field change":                          {field, Facts{Handled: true, Base: Views{"spec.x": "a"}, Now: Views{"spec.x": "b"}}, "", dsl.Update},
		"a field that goes away has changed":                             {field, Facts{Handled: true, Base: Views{"spec.x": "a"}, Now: Views{"spec.x": "-"}}, "", dsl.Update},
		"a field that is not there is no create":                         {field, Facts{Now: Views{"spec.x": "-"}}, "", ""},
		"a level-triggered handler stores nothing":                       {level, Facts{Handled: true, Base: Views{"": "1"}, Now: Views{"": "2"}}, "", ""},
		"deletion is for delete handlers":                                {remove, Facts{Deleting: true, Now: Views{"": "1"}}, "", dsl.Delete},
		"deletion is not for others, whatever changed":                   {update, Facts{Deleting: true, Handled: true, Base: Views{"": "1"}, Now: Views{"": "2"}}, "", ""},
		"a delete handler has nothing to do while the object lives":      {remove, Facts{Now: Views{"": "1"}}, "", ""},
		"create for a handler of create and update comes first":          {handler([]dsl.Cause{dsl.Create, dsl.Update}), Facts{Now: Views{"": "1"}}, "", dsl.Create},
		"a handler that finished create sees the next change as update":  {handler([]dsl.Cause{dsl.Create, dsl.Update}), Facts{Handled: true, Base: Views{"": "1"}, Now: Views{"": "2"}}, "", dsl.Update},
		"what failed for good with this essence is not tried again":      {update, Facts{Handled: true, Base: Views{"": "2"}, Now: Views{"": "2"}}, "2", ""},
		"what failed for good is tried again when the essence is mended": {update, Facts{Handled: true, Base: Views{"": "2"}, Now: Views{"": "3"}}, "2", dsl.Update},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.facts.Lasting(tt.h, tt.seen); got != tt.want {
				t.Errorf("Lasting() = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestArising(t *testing.T) {
	level, resume := handler([]dsl.Cause{dsl.Reconcile}), handler([]dsl.Cause{dsl.Resume})
	edge := handler([]dsl.Cause{dsl.Create, dsl.Update})
	field := handler([]dsl.Cause{dsl.Reconcile}, dsl.Field("spec.x"))
	one := Views{"": "1", "spec.x": "-"}
	tests := map[string]struct {
		h     *dsl.Handler
		facts Facts
		seen  string
		want  dsl.Cause
	}{
		"an object of the first listing is resumed":                  {level, Facts{First: true, Now: one}, "", dsl.Resume},
		"one that came later is created":                             {level, Facts{First: true, Fresh: true, Now: one}, "", dsl.Create},
		"where a base is kept, its absence makes a create":           {level, Facts{First: true, Stores: true, Now: one}, "", dsl.Create},
		"where a base is kept, its presence makes a resume":          {level, Facts{First: true, Stores: true, Handled: true, Fresh: true, Now: one}, "", dsl.Resume},
		"a resume handler runs for what was handled before":          {resume, Facts{First: true, Stores: true, Handled: true, Now: one}, "", dsl.Resume},
		"a resume handler does not run for what is new":              {resume, Facts{First: true, Stores: true, Now: one}, "", ""},
		"resume is once for a process":                               {resume, Facts{Stores: true, Handled: true, Now: one}, "", ""},
		"a level-triggered handler sees changes":                     {level, Facts{Now: Views{"": "2"}}, "1", dsl.Update},
		"it sees no change where there is none":                      {level, Facts{Now: one}, "1", ""},
		"handlers of stored causes have none here":                   {edge, Facts{First: true, Now: one}, "", ""},
		"a field that is not there is not resumed":                   {field, Facts{First: true, Now: one}, "", ""},
		"an object that is being deleted is neither new nor resumed": {level, Facts{First: true, Fresh: true, Deleting: true, Now: one}, "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.facts.Arising(tt.h, tt.seen); got != tt.want {
				t.Errorf("Arising() = %q, want %q", got, tt.want)
			}
		})
	}
}
