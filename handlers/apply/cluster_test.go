// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"testing"

	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers/apply"
	"github.com/handwerk-dev/handwerk/sandbox/kit"

	"github.com/handwerk-dev/handwerk/dsl/actions"
)

// TestAChildWithoutANamespaceIsNotTakenForAnotherOne holds that a namespace which is written where
// the kind has none does not make the child look unwanted.
func TestAChildWithoutANamespaceIsNotTakenForAnotherOne(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		r := actions.NewRegistry()
		r.Action(apply.Action(compiler))
		op, err := config.Parse("operator.yaml", []byte(`{apiVersion: handwerk.dev/v1alpha1, kind: Operator, metadata: {name: x},
  resources: [{resource: foos.v1.example.com, handlers: [{id: h, apply: {
    node: {ownership: labelled, template: {apiVersion: v1, kind: Node, metadata: {name: mine, namespace: elsewhere}}}}}]}]}`), r)
		if err != nil {
			t.Fatal(err)
		}
		c.Serve(kit.Resource{Name: foos, Kind: "Foo"})
		p := c.Start(op)
		c.Create("{apiVersion: example.com/v1, kind: Foo, metadata: {name: me, namespace: default}, spec: {size: 1}}")
		c.Settle()
		before := c.Get("nodes.v1", "", "mine")
		if before == nil {
			t.Fatal("it was not made")
		}
		p.Writes()
		become(c, foos, "me", "spec.size", int64(2))
		c.Settle()
		for _, w := range p.Writes() {
			t.Errorf("a write: %v", w)
		}
		if after := c.Get("nodes.v1", "", "mine"); after == nil || after.GetUID() != before.GetUID() {
			t.Error("it was taken away")
		}
	})
}
