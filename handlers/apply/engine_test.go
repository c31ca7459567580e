// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers/apply"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

const foos, things, configMaps = "foos.v1.example.com", "things.v1.x.io", "configmaps.v1"

// operate starts an operator that keeps children of Foos, with one Foo called me.
func operate(t *testing.T, c *kit.Cluster, children, spec string) *kit.Process {
	t.Helper()
	r := actions.NewRegistry()
	r.Action(apply.Action(compiler))
	op, err := config.Parse("operator.yaml", fmt.Appendf(nil, `{apiVersion: handwerk.dev/v1alpha1, kind: Operator, metadata: {name: x},
		resources: [{resource: foos.v1.example.com, handlers: [{id: h, apply: %s}]}]}`, strings.ReplaceAll(children, "\t", " ")), r)
	if err != nil {
		t.Fatal(err)
	}
	c.Serve(kit.Resource{Name: foos, Kind: "Foo"}, kit.Resource{Name: things, Kind: "Thing"})
	p := c.Start(op)
	c.Create("{apiVersion: example.com/v1, kind: Foo, metadata: {name: me, namespace: default}, spec: " + spec + "}")
	c.Settle()
	return p
}

func there(c *kit.Cluster) string {
	var out []string
	for _, resource := range []string{things, configMaps} {
		for _, o := range c.List(resource, "") {
			out = append(out, o.GetKind()+" "+o.GetName())
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func see(t *testing.T, c *kit.Cluster, when, want string) {
	t.Helper()
	c.Settle()
	if got := there(c); got != want {
		t.Errorf("%s there is %q, want %q", when, got, want)
	}
}

func become(c *kit.Cluster, resource, name, field string, value any) {
	c.Update(resource, "default", name, func(o *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(o.Object, value, strings.Split(field, ".")...); err != nil {
			panic(err)
		}
	})
}

// TestInAnEngine holds that the action and the engine are made for each other.
func TestInAnEngine(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		p := operate(t, c, `{
			db: {readyWhen: child.status.ready, template: {apiVersion: x.io/v1, kind: Thing, metadata: {name: db}}},
			web: {forEach: "${self.spec.users}", template: {apiVersion: v1, kind: ConfigMap,
				metadata: {name: "web-${item}"}, data: {host: "${children.db.status.host}"}}}}`, "{users: [a, b]}")
		see(t, c, "before db is ready", "Thing db")
		become(c, things, "db", "status", map[string]any{"ready": true, "host": "h"})
		see(t, c, "when db is ready", "ConfigMap web-a, ConfigMap web-b, Thing db")
		p.Writes()
		p.Restart()
		c.Advance(5 * time.Minute)
		if writes := p.Writes(); len(writes) > 0 {
			t.Errorf("a restart wrote %v", writes)
		}
		become(c, foos, "me", "spec.users", []any{"b", "c"})
		see(t, c, "when a user goes and one comes", "ConfigMap web-b, ConfigMap web-c, Thing db")
		c.Delete(configMaps, "default", "web-b")
		see(t, c, "when somebody deletes one", "ConfigMap web-b, ConfigMap web-c, Thing db")
		become(c, configMaps, "web-b", "data.host", "theirs")
		c.Settle()
		if host, _, _ := unstructured.NestedString(c.Get(configMaps, "default", "web-b").Object, "data", "host"); host != "h" {
			t.Errorf("what somebody changed is %q", host)
		}
	})
}

func TestInAnEngineWavesGoOneAfterTheOther(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		one := func(name, needs string) string {
			return name + `: {ownership: labelled, includeWhen: self.spec.wanted, template: {apiVersion: x.io/v1, kind: Thing,
				metadata: {name: ` + name + `, finalizers: [x.io/hold]}, spec: {needs: "` + needs + `"}}}`
		}
		operate(t, c, "{"+one("a", "")+", "+one("b", "${children.a.metadata.name}")+"}", "{wanted: true}")
		see(t, c, "at first", "Thing a, Thing b")
		release := func(name string) {
			c.Update(things, "default", name, func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			c.Advance(time.Minute)
		}
		c.Delete(foos, "default", "me")
		c.Settle()
		if a, b := c.Get(things, "default", "a"), c.Get(things, "default", "b"); a.GetDeletionTimestamp() != nil || b.GetDeletionTimestamp() == nil {
			t.Errorf("deleted: a %v, b %v; want b alone", a.GetDeletionTimestamp(), b.GetDeletionTimestamp())
		}
		release("b")
		see(t, c, "after b", "Thing a")
		if c.Get(foos, "default", "me") == nil {
			t.Fatal("the object is gone before its children")
		}
		release("a")
		see(t, c, "after a", "")
		if c.Get(foos, "default", "me") != nil {
			t.Error("the object is still there")
		}
	})
}

func TestInAnEngineARefusedChildIsTriedAgain(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.FailNext("patch", things, apierrors.NewForbidden(schema.GroupResource{}, "a", errors.New("exceeded quota: q, requested: n=1")))
		operate(t, c, `{a: {apiVersion: x.io/v1, kind: Thing, metadata: {name: a}}, b: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}}`, "{}")
		see(t, c, "at first", "ConfigMap b")
		c.Advance(10 * time.Second)
		see(t, c, "after a while", "ConfigMap b, Thing a")
		var found []string
		for _, e := range c.Events() {
			found = append(found, fmt.Sprint(e))
		}
		if !strings.Contains(strings.Join(found, "\n"), "QuotaExceeded") {
			t.Errorf("events %v", found)
		}
	})
}
