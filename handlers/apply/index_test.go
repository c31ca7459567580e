// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers/apply"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestInAnEngineChildrenFollowAnIndex holds that a child whose template reads an index is waited with until there is
// something under the key, follows what comes there, and is not written again where the values are as they were.
func TestInAnEngineChildrenFollowAnIndex(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		r := actions.NewRegistry()
		r.Action(apply.Action(compiler))
		op, err := config.Parse("operator.yaml", []byte(`{apiVersion: handwerk.dev/v1alpha1, kind: Operator, metadata: {name: x},
			indexes: [{name: hosts, resource: configmaps.v1, key: self.data.for, value: self.data.host}],
			resources: [{resource: foos.v1.example.com, handlers: [{id: h, apply: {
				web: {template: {apiVersion: x.io/v1, kind: Thing, metadata: {name: web}, spec: {host: "${indexes.hosts[self.spec.ref][0]}"}}},
				each: {forEach: "${indexes.hosts['all']}", template: {apiVersion: x.io/v1, kind: Thing, metadata: {name: "each-${item}"}}}}}]}]}`), r)
		if err != nil {
			t.Fatal(err)
		}
		c.Serve(kit.Resource{Name: foos, Kind: "Foo"}, kit.Resource{Name: things, Kind: "Thing"})
		p := c.Start(op)
		c.Create("{apiVersion: example.com/v1, kind: Foo, metadata: {name: me, namespace: default}, spec: {ref: a}}")
		see(t, c, "before there is a host", "")
		if said := c.Events(); len(said) > 0 {
			t.Errorf("Events %v, though it only waits", said)
		}
		c.Create("{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: default}, data: {for: a, host: h1}}")
		see(t, c, "with a host", "ConfigMap one, Thing web")
		host := func(want string) {
			t.Helper()
			c.Settle()
			if got := c.Get(things, "default", "web").Object["spec"].(map[string]any)["host"]; got != want {
				t.Errorf("the host is %v, want %s", got, want)
			}
		}
		host("h1")
		become(c, configMaps, "one", "data.host", "h2")
		host("h2")
		c.Create("{apiVersion: v1, kind: ConfigMap, metadata: {name: two, namespace: default}, data: {for: all, host: x}}")
		see(t, c, "with one for each", "ConfigMap one, ConfigMap two, Thing each-x, Thing web")
		c.Settle()
		p.Writes()
		become(c, configMaps, "one", "data.other", "no news")
		become(c, configMaps, "two", "metadata.labels", map[string]any{"no": "news"})
		c.Advance(time.Hour)
		if writes := p.Writes(); len(writes) > 0 {
			t.Errorf("no news wrote %v", writes)
		}
		c.Delete(configMaps, "default", "two")
		see(t, c, "without one for each", "ConfigMap one, Thing web")
		p.Restart()
		c.Advance(5 * time.Minute)
		p.Writes()
		host("h2")
	})
}
