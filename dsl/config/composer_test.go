// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/handlers"
)

// TestARegistryWithoutAComposer loads handlers that are made of several pieces with a registry that has actions alone.
func TestARegistryWithoutAComposer(t *testing.T) {
	log, found := handlers.Standard().LookupAction("log")
	if !found {
		t.Fatal("the standard registry has no action log")
	}
	r := actions.NewRegistry()
	r.Action(log)
	const why = ": this program cannot run it: its registry has no composer (want one from handlers.Standard)"
	tests := map[string]struct{ handler, want string }{
		"one action needs none":        {"{id: h, log: {message: a}}", ""},
		"a filter needs none":          {`{id: h, when: "has(self.spec)", log: {message: a}}`, ""},
		"forEach needs one":            {"{id: h, forEach: [a], log: {message: a}}", "handlers[0].forEach" + why},
		"steps need one":               {"{id: h, steps: [{log: {message: a}}]}", "handlers[0].steps[0]" + why},
		"a filter with old needs one":  {`{id: h, causes: [update], when: "has(old.spec)", log: {message: a}}`, "handlers[0].when" + why},
		"a machine's actions need one": {`{id: h, log: {message: a}}], machine: {states: [{name: A, during: [{log: {message: a}}, {log: {message: b}}], terminal: true}]}, related: [`, "during" + why},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text := "apiVersion: handwerk.dev/v1alpha1\nkind: Operator\nmetadata: {name: a}\nresources: [{resource: foos.v1.example.com, handlers: [" + tt.handler + "]}]\n"
			_, err := Parse("a.yaml", []byte(text), r)
			if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}
