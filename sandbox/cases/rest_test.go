// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/handlers"
)

// restless is an operator with handlers to fill in, and a case without an expectation.
const (
	restless = `apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: restless}
resources:
  - resource: things.v1.example.com
    schema: {kind: Thing, spec: {size: integer, note: string}, status: {seen: string, count: integer}}
`
	oneThing = `given: {apiVersion: example.com/v1, kind: Thing, metadata: {name: one}, spec: {size: 1}}
cases:
- name: a
`
)

// TestRestIsHeldWithoutAWord holds what every case checks although its author does not ask for it.
func TestRestIsHeldWithoutAWord(t *testing.T) {
	tests := map[string]struct {
		handlers, more string
		want           []string // parts of each failure, with … for what is between them
	}{
		"a handler that writes something else each time does not come to rest": {
			handlers: `
    handlers:
      - {id: count, causes: [event], set: {status: {count: "${self.?status.?count.orValue(0) + 1}"}}}`,
			want: []string{"a_test.yaml:3: the operator does not come to rest within 10m0s\n    writes of the last 2m0s:\n      patch things/status default/one (… times)\n    handlers that ran:\n      count, for event ("},
		},
		"a handler that undoes what it did last time does not come to rest": {
			handlers: `
    handlers:
      - {id: flip, causes: [event], set: {labels: {color: "${self.metadata.?labels['color'].orValue('') == 'red' ? 'blue' : 'red'}"}}}`,
			want: []string{"a_test.yaml:3: the operator does not come to rest within 10m0s\n    writes of the last 2m0s:\n      patch things default/one"},
		},
		"a handler that the resync makes write writes at rest": {
			handlers: `
    resync: 5m
    handlers:
      - {id: look, causes: [reconcile], set: {status: {seen: "${string(now)}"}}}`,
			want: []string{"a_test.yaml:3: the operator writes at rest\n    writes within 10m0s in which nothing else happened:\n      patch things/status default/one…\n    handlers that ran:\n      look, for resync"},
		},
		"a handler that writes each time does not hide behind a timer": {
			handlers: `
    handlers:
      - {id: tick, every: 1s, log: {message: tick}}
      - {id: count, causes: [event], set: {status: {count: "${self.?status.?count.orValue(0) + 1}"}}}`,
			want: []string{"a_test.yaml:3: the operator does not come to rest…object loops"},
		},
		"a timer may write each second": {
			handlers: `
    handlers:
      - {id: look, every: 1s, set: {status: {seen: "${string(now)}"}}}`,
		},
		"a timer may write each time": {
			handlers: `
    handlers:
      - {id: look, every: 10s, set: {status: {seen: "${string(now)}"}}}`,
		},
		"a handler that fails for good fails at the end": {
			handlers: `
    handlers:
      - {id: mail, causes: [create], call: shop.Mail}`,
			more: "  functions: {shop.Mail: {fails: no such address, permanent: true}}\n",
			want: []string{"a_test.yaml:3: a handler fails at the end, for things.v1.example.com/default/one\n    handler mail"},
		},
		"a handler that is expected to fail may": {
			handlers: `
    handlers:
      - {id: mail, causes: [create], call: shop.Mail}`,
			more: "  functions: {shop.Mail: {fails: no such address, permanent: true}}\n  expect: {failing: {mail: no such address}}\n",
		},
		"a handler that was expected to fail earlier may not fail at the end": {
			handlers: `
    handlers:
      - {id: mail, causes: [create], call: shop.Mail}`,
			more: "  functions: {shop.Mail: {fails: no such address, permanent: true}}\n  steps: [{expect: {failing: {mail: no such address}}}]\n",
			want: []string{"a_test.yaml:3: a handler fails at the end"},
		},
		"an expression of a schedule that fails is a failure": {
			handlers: `
    schedule:
      - {id: nightly, every: 1m, log: {message: "${objects[0].spec.note}"}}`,
			more: "  steps: [{advance: 5m}]\n",
			want: []string{"a_test.yaml:3: a handler fails at the end, for things.v1.example.com\n    handler nightly is tried again: writing log line: evaluating log.message: no such key: note"},
		},
		"a schedule that is expected to fail may": {
			handlers: `
    schedule:
      - {id: nightly, every: 1m, log: {message: "${objects[0].spec.note}"}}`,
			more: "  steps: [{advance: 5m}]\n  expect: {failing: {nightly: 'no such key: note'}}\n",
		},
		"an index whose key fails for an object is a failure": {
			handlers: `
    handlers:
      - {id: look, set: {status: {count: "${indexes.sizes.size()}"}}}
indexes:
  - {name: sizes, resource: things.v1.example.com, key: self.spec.note, value: self.metadata.name}`,
			want: []string{"a_test.yaml:3: index sizes fails at the end\n    objects are left out: default/one: evaluating key: self.spec.note is not set"},
		},
		"an index that is expected to leave objects out may": {
			handlers: `
    handlers:
      - {id: look, set: {status: {count: "${indexes.sizes.size()}"}}}
indexes:
  - {name: sizes, resource: things.v1.example.com, key: self.spec.note, value: self.metadata.name}`,
			more: "  expect: {failing: {sizes: self.spec.note is not set}}\n",
		},
		"an operator whose startup fails is not ready": {
			handlers: `
    handlers:
      - {id: look, set: {status: {seen: "yes"}}}
startup:
  - {id: open, call: shop.Open}`,
			more: "  functions: {shop.Open: {fails: no key}}\n",
			want: []string{"a_test.yaml:3: the operator is not ready: started", "a_test.yaml:3: the operator is not ready: startup\n    open: no key"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			config := filepath.Join(t.TempDir(), "operator.yaml")
			if err := os.WriteFile(config, []byte(restless+strings.TrimPrefix(tt.handlers, "\n")), 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := parse("a_test.yaml", []byte(oneThing+tt.more+"config: "+config+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			got := NewSuite(handlers.Standard()).Test(t, f.Cases[0])
			for i, failure := range got {
				if i >= len(tt.want) || !hasInOrder(failure.String(), strings.Split(tt.want[i], "…")) {
					t.Errorf("failure:\n%s", failure)
				}
			}
			if len(got) != len(tt.want) {
				t.Errorf("there are %d failures, want %d: %q", len(got), len(tt.want), tt.want)
			}
		})
	}
}

// hasInOrder reports whether a text has parts, one after the other.
func hasInOrder(text string, parts []string) bool {
	for _, part := range parts {
		_, after, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = after
	}
	return true
}

// TestACaseWhoseOperatorDoesNotStartSaysWhy holds that what ends a case early is reported as its failure.
func TestACaseWhoseOperatorDoesNotStartSaysWhy(t *testing.T) {
	config := filepath.Join(t.TempDir(), "operator.yaml")
	if err := os.WriteFile(config, []byte(branching), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := parse("a_test.yaml", []byte(oneThing+"config: "+config+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	suite := NewSuite(handlers.Standard())
	p, err := suite.load(f.config())
	if err != nil {
		t.Fatal(err)
	}
	p.op.Name = "No name" // which only the engine finds now
	failures := suite.Test(t, f.Cases[0])
	if len(failures) != 1 || failures[0].Line != 3 || !strings.Contains(failures[0].Message, "checking operator: ") {
		t.Errorf("the failures are %v", failures)
	}
}

// TestARuleThatChangesItsOwnResultIsToldOf holds that a case fails if a rule gives something else when it runs on its result, as the
// API server may have it do. A rule whose condition is false then may give anything, and a webhook is asked once: calls of functions
// are counted.
func TestARuleThatChangesItsOwnResultIsToldOf(t *testing.T) {
	config := filepath.Join(t.TempDir(), "operator.yaml")
	var rules strings.Builder
	for _, enforce := range []string{"policy", "webhook"} {
		fmt.Fprintf(&rules, `
      - {id: grows-%[1]s, enforce: %[1]s, set: {annotations: {%[1]s: "${self.metadata.?annotations.%[1]s.orValue('')}x"}}}
      - {id: once-%[1]s, enforce: %[1]s, when: "!has(self.spec.note)", set: {spec: {note: "${string(self.spec.size)}"}}}
      - {id: same-%[1]s, enforce: %[1]s, set: {labels: {size: "${self.spec.size}"}}}`, enforce)
	}
	if err := os.WriteFile(config, []byte(restless+"    handlers: [{id: look, log: {message: hi}}]\n    mutate:"+rules.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := parse("a_test.yaml", []byte(oneThing+"  steps: [{patch: {things/one: {spec: {size: 3}}}}]\nconfig: "+config+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, failure := range NewSuite(handlers.Standard()).Test(t, f.Cases[0]) {
		got = append(got, failure.Message)
	}
	slices.Sort(got)
	const says = " changes its own result: it must give the same if it runs again"
	if diff := cmp.Diff([]string{"rule things/grows-policy" + says}, got); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}
