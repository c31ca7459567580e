// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/samples/functions"
)

// TestValidateNamesEveryGate holds that it names handlers, steps, machines and parts of their states whose children stay while
// their when is false, and no others.
func TestValidateNamesEveryGate(t *testing.T) {
	const (
		head   = "apiVersion: handwerk.dev/v1alpha1\nkind: Operator\nmetadata: {name: sites}\nresources:\n  - resource: sites.v1.example.com\n    schema: {kind: Site, spec: {size: integer | default=1}}\n"
		apply  = "apply: {a: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}"
		small  = "when: self.spec.size < 2, "
		state  = "    machine: {WHEN states: [{name: One, terminal: true, during: [{log: {message: hello}}, {name: make, STEP" + apply + "}]}]}\n"
		stays  = " keeps its children as they are while its when is false (includeWhen would delete them)"
		before = "sites.v1.example.com: "
	)
	machine := func(when, step string) string {
		return strings.NewReplacer("WHEN ", when, "STEP", step).Replace(state)
	}
	for name, test := range map[string]struct {
		of   string
		want []string
	}{
		"a handler":                        {"    handlers: [{id: app, " + small + apply + "}]\n", []string{"handler app"}},
		"a handler without children":       {"    handlers: [{id: app, " + small + "log: {message: hello}}]\n", nil},
		"a step":                           {"    handlers: [{id: app, steps: [{" + small + apply + "}, {name: other, log: {message: hello}}]}]\n", []string{"step app.1"}},
		"a step without children":          {"    handlers: [{id: app, steps: [{" + small + "log: {message: hello}}]}]\n", nil},
		"a step of a handler with forEach": {"    handlers: [{id: app, forEach: \"${[1]}\", key: \"${string(item)}\", steps: [{" + small + strings.Replace(apply, "name: a", "name: \"${string(item)}\"", 1) + "}]}]\n", []string{"step app.1"}},
		"a machine":                        {machine(small, ""), []string{"handler machine"}},
		"a part of a state":                {machine("", small), []string{"step machine.One.make"}},
		"neither":                          {machine("", ""), nil},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "sites.yaml")
			if err := os.WriteFile(file, []byte(head+test.of), 0o600); err != nil {
				t.Fatal(err)
			}
			b := newBench(t)
			b.load, b.registry = config.Load, functions.Registry()
			if code := b.execute(t.Context(), []string{"validate", "--verbose", "--config", file}); code != exitOK {
				t.Fatalf("exit code %d: %s", code, b.err.String())
			}
			var got []string
			for line := range strings.Lines(b.out.String()) {
				if who, is := strings.CutSuffix(strings.TrimSpace(line), stays); is {
					got = append(got, strings.TrimPrefix(who, before))
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
