// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers"
)

const unknownKinds = `apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: foo}
resources:
  - resource: foos.v1.example.com
    owns: [jobs.v7.batch]
    handlers:
      - id: web
        apply:
          web:
            apiVersion: apps/v1
            kind: Deploymnt
            metadata: {name: "${self.metadata.name}"}
`

// TestUnknownKindsAreReportedAndDoNotKeepAnOperatorFromRunning holds that a cluster that is newer than the program
// has the last word: validate reports them, and run leaves them to it.
func TestUnknownKindsAreReportedAndDoNotKeepAnOperatorFromRunning(t *testing.T) {
	bench := func() *bench {
		b := newBench(t)
		b.load = func(_ []string, registry *actions.Registry, _ ...func(*dsl.Operator)) (*dsl.Operator, error) {
			return config.Parse("foo.yaml", []byte(unknownKinds), registry)
		}
		b.registry = handlers.Standard()
		return b
	}
	for name, args := range map[string]string{"validate-unknown-kinds": "validate", "validate-json-unknown-kinds": "validate -o json"} {
		t.Run(name, func(t *testing.T) {
			golden(t, name+".golden", said(t, bench(), args+" --config foo.yaml"))
		})
	}
	t.Run("run", func(t *testing.T) {
		b, ran := bench(), false
		b.run = func(context.Context) error { ran = true; return nil }
		if code := b.execute(t.Context(), quiet()); code != exitOK || !ran {
			t.Errorf("exit code %d: %s", code, b.err.String())
		}
	})
}

const doubtful = `apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: foo}
resources:
  - resource: foos.v1.example.com
    schema:
      kind: Foo
      spec: {image: string | required=true, note: string}
      status: {ping: string, pong: string}
    handlers:
      - {id: ping, set: {status: {ping: "${self.status.?pong.orValue('x')}"}}}
      - {id: pong, set: {status: {pong: "${self.status.?ping.orValue('y')}"}}}
      - id: web
        apply:
          web:
            apiVersion: v1
            kind: ConfigMap
            metadata: {name: "${self.metadata.name}"}
            data:
              note: "${self.spec.note}"
              image: self.spec.image
    schedule:
      - {id: census, every: 1h, log: {message: "there are ${size(objects)}"}}
`

// TestWarningsHaveTheirPlacesAndAreFaultsWhereThatIsAskedFor holds that a warning of any kind is a fault with --strict.
func TestWarningsHaveTheirPlacesAndAreFaultsWhereThatIsAskedFor(t *testing.T) {
	for name, args := range map[string]string{
		"validate-warnings": "validate", "validate-warnings-strict": "validate --strict",
		"validate-warnings-json": "validate -o json", "validate-warnings-json-strict": "validate -o json --strict",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.load = func(_ []string, registry *actions.Registry, _ ...func(*dsl.Operator)) (*dsl.Operator, error) {
				return config.Parse("foo.yaml", []byte(doubtful), registry)
			}
			b.registry = handlers.Standard()
			golden(t, name+".golden", said(t, b, args+" --config foo.yaml"))
		})
	}
}
