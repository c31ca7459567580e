// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers"
)

// withLets is an operator whose expressions use lets of all levels, and writtenOut the same without any.
const (
	withLets = `apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: lets}
let:
  owner: self.metadata.labels.owner
resources:
  - resource: foos.v1.example.com
    related:
      - {name: password, resource: secrets.v1, object: "${owner}"}
    let:
      secret: related.password.data.password
      replicas: self.spec.?replicas.orValue(1)
      up: children.web.?status.?readyReplicas.orValue(0) >= replicas
    handlers:
      - id: web
        let: {wanted: replicas > 0}
        when: wanted
        apply:
          web:
            apiVersion: apps/v1
            kind: Deployment
            metadata: {name: "${owner}-web"}
            spec: {replicas: "${replicas}", selector: {}, template: {}}
          config: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${children.web.metadata.name}"}, data: {up: "${up ? 'yes' : 'no'}"}}
      - id: secretive
        event: {reason: Told, message: "${secret}"}
      - id: status
        set:
          status: {replicas: "${replicas}"}
          conditions: [{type: Up, status: "${up}"}]
      - id: changed
        causes: [update]
        let: {before: old.spec}
        when: before != self.spec
        log: {message: "${before.x}"}
`
	writtenOut = `apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: lets}
resources:
  - resource: foos.v1.example.com
    related:
      - {name: password, resource: secrets.v1, object: "${self.metadata.labels.owner}"}
    handlers:
      - id: web
        when: self.spec.?replicas.orValue(1) > 0
        apply:
          web:
            apiVersion: apps/v1
            kind: Deployment
            metadata: {name: "${self.metadata.labels.owner}-web"}
            spec: {replicas: "${self.spec.?replicas.orValue(1)}", selector: {}, template: {}}
          config:
            apiVersion: v1
            kind: ConfigMap
            metadata: {name: "${children.web.metadata.name}"}
            data: {up: "${children.web.?status.?readyReplicas.orValue(0) >= self.spec.?replicas.orValue(1) ? 'yes' : 'no'}"}
      - id: secretive
        event: {reason: Told, message: "${related.password.data.password}"}
      - id: status
        set:
          status: {replicas: "${self.spec.?replicas.orValue(1)}"}
          conditions: [{type: Up, status: "${children.web.?status.?readyReplicas.orValue(0) >= self.spec.?replicas.orValue(1)}"}]
      - id: changed
        causes: [update]
        when: old.spec != self.spec
        log: {message: "${old.spec.x}"}
`
)

// known is what the engine knows of a handler before it runs.
type known struct {
	Reads   dsl.KnownReads
	View    dsl.View
	Needs   []dsl.Need
	Secrets dsl.Secrets
	NoOld   bool
}

// knownOf returns what is known of the handlers of an operator's first resource.
func knownOf(op *dsl.Operator) map[string]known {
	r, out := op.Resources()[0], map[string]known{}
	for _, h := range r.Handlers() {
		out[h.ID] = known{h.Known.Reads, h.View(), h.Needs, r.Secrets(h), h.NoOld}
	}
	return out
}

// TestAnOperatorWithLetsIsTheSameAsWrittenOut holds that what the engine knows of handlers before they run, their views, what
// they read, their rights and what may be a Secret's, does not depend on lets.
func TestAnOperatorWithLetsIsTheSameAsWrittenOut(t *testing.T) {
	of := func(text string) map[string]known {
		op, err := config.Parse("operator.yaml", []byte(text), handlers.Standard())
		if err != nil {
			t.Fatal(err)
		}
		return knownOf(op)
	}
	want, got := of(writtenOut), of(withLets)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(dsl.View{})); diff != "" {
		t.Errorf("handlers (-written out +with lets):\n%s", diff)
	}
	if !got["secretive"].Secrets.Read || got["status"].Secrets.Read {
		t.Errorf("what is secret: %+v", got)
	}
}
