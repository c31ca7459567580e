// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/form"
)

// TestEveryFieldOfAHandlerIsInTheTableOfOptions compares the form of a handler with the table.
func TestEveryFieldOfAHandlerIsInTheTableOfOptions(t *testing.T) {
	fields := slices.DeleteFunc(form.Fields(reflect.TypeFor[handler]()), func(name string) bool { return name == "id" })
	if diff := cmp.Diff(slices.Sorted(slices.Values(fields)), slices.Sorted(slices.Values(dsl.Options()))); diff != "" {
		t.Errorf("options (-form +table):\n%s", diff)
	}
}

// TestOptionsWhereTheyHaveNoMeaning writes one option at a time into a handler that cannot have it, and compares
// the fault with its place.
func TestOptionsWhereTheyHaveNoMeaning(t *testing.T) {
	value := map[string]string{
		"was": "x", "causes": "[create]", "when": `"true"`, "includeWhen": `"true"`, "field": "spec.a", "labels": "{a: b}", "annotations": "{a: b}",
		"retries": "3", "errors": "fail", "backoff": "{initial: 1s}", "deadline": "1m", "after": "[x]", "finalizer": "false", "onFailure": "hold",
		"deleted": "true", "old": "false", "reads": "[spec.a]", "forEach": "[a]", "key": `"${item}"`, "steps": "[{x: y}]", "every": "1m", "pause": "1m", "cron": `"@daily"`,
		"timeZone": "UTC", "idle": "1m", "jitter": "1s", "initialDelay": "1s", "at": "self.spec.a", "runAgainAfter": "1s",
	}
	const (
		notScheduled = "is not for a schedule, which has no one object"
		notActive    = "is not for startup, cleanup and probes, which have no object"
		notProbing   = "is not for probes, which are asked once each time, and have no object"
	)
	kinds := map[string]struct {
		kind   dsl.HandlerKind
		prefix string
		at     string
		why    string
		least  []string // options that the kind must refuse, so that an empty table does not pass
	}{
		"a schedule": {dsl.ScheduleHandler, "resources: [{resource: foos, schedule: [{id: one, ", "resources[0].schedule[0].", notScheduled,
			[]string{"causes", "when", "was", "old", "finalizer", "onFailure", "deleted", "idle", "forEach"}},
		"a startup": {dsl.ActivityHandler, "startup: [{id: one, ", "startup[0].", notActive, []string{"causes", "every", "steps", "initialDelay"}},
		"a probe":   {dsl.ProbeHandler, "ready: [{id: one, ", "ready[0].", notProbing, []string{"retries", "errors", "backoff", "deadline", "every"}},
	}
	r := actions.NewRegistry()
	r.Action(actions.Action{Name: "x", Config: func() any { return new(string) }, Build: func(actions.Build, any) (actions.Built, error) { return actions.Built{}, nil }})
	for kind, tt := range kinds {
		refused := dsl.OptionsNotFor(tt.kind)
		for _, name := range tt.least {
			if !slices.Contains(refused, name) {
				t.Errorf("%s may have %s", kind, name)
			}
		}
		for _, name := range refused {
			t.Run(kind+" with "+name, func(t *testing.T) {
				text := fmt.Sprintf("apiVersion: handwerk.dev/v1alpha1\nkind: Operator\nmetadata: {name: a}\n%s\n%s: %s", tt.prefix, name, value[name])
				text += strings.Repeat("}]", strings.Count(tt.prefix, "["))
				_, err := Parse("a.yaml", []byte(text), r)
				want := fmt.Sprintf("a.yaml:5:1: %s%s: %s", tt.at, name, tt.why)
				if err == nil || !slices.Contains(strings.Split(err.Error(), "\n"), want) {
					t.Errorf("faults:\n%v\nwant among them:\n%s", err, want)
				}
			})
		}
	}
}
