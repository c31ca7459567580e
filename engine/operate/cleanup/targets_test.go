// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cleanup_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/operate/cleanup"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestWhatHandlersHavePatchedIsGivenBack holds that a cleanup takes off what handlers have patched, before the record of it goes, and
// nothing else.
func TestWhatHandlersHavePatchedIsGivenBack(t *testing.T) {
	const record = "op.handwerk.dev/children"
	forge := func(c *kit.Cluster) {
		c.Update(foos, "default", "web", func(o *unstructured.Unstructured) {
			uid := string(o.GetUID())
			o.SetAnnotations(map[string]string{record: strings.ReplaceAll(o.GetAnnotations()[record], "op/patch/zone/"+uid, "others")})
		})
	}
	tests := map[string]struct {
		before func(c *kit.Cluster)
		// known: the configuration says which kinds handlers patch.
		known bool
		// left are the labels afterwards, and failed is in the error, after which the object keeps its marks.
		left   map[string]string
		failed string
	}{
		"the fields of the handler go":    {left: map[string]string{"theirs": "x"}},
		"an object that is gone has none": {before: func(c *kit.Cluster) { c.Delete(configMaps, "default", "red") }},
		"another object of the name is left": {left: map[string]string{"zone": "new"}, before: func(c *kit.Cluster) {
			c.Delete(configMaps, "default", "red")
			c.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: red, labels: {zone: new}}}`)
		}},
		"what cannot be given back keeps the record": {left: map[string]string{"theirs": "x", "zone": "1"}, failed: "giving back fields of ConfigMap default/red: ", before: func(c *kit.Cluster) {
			c.Refuse(configMaps, func(*unstructured.Unstructured) error { return forbidden })
		}},
		"a forged record takes nothing off":                         {left: map[string]string{"theirs": "x", "zone": "1"}, failed: "is no object that is patched for this one", before: forge},
		"nor where the kinds are known, and what it hides is found": {known: true, left: map[string]string{"theirs": "x"}, before: forge},
		"what a record does not list any more is found": {known: true, left: map[string]string{"theirs": "x"}, before: func(c *kit.Cluster) {
			c.Update(foos, "default", "web", func(o *unstructured.Unstructured) { o.SetAnnotations(nil) })
		}},
		"what an owner has left that is gone is found": {known: true, left: map[string]string{"theirs": "x"}, before: func(c *kit.Cluster) {
			c.Delete(foos, "default", "web")
			c.Update(foos, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
		}},
		"what is found and cannot be given back keeps a record that cannot be read": {known: true, left: map[string]string{"theirs": "x", "zone": "1"}, failed: "take off what field managers op/patch/…/", before: func(c *kit.Cluster) {
			forge(c)
			c.Refuse(configMaps, func(*unstructured.Unstructured) error { return forbidden })
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			kit.Run(t, func(t *testing.T, c *kit.Cluster) {
				ctx := context.WithoutCancel(t.Context())
				c.Serve(kit.Resource{Name: foos, Kind: "Foo"})
				op := dsl.New("op")
				op.Resource(foos, func(foo *dsl.Resource) {
					foo.OnReconcile("zone", func(ctx context.Context, r *dsl.Request) error {
						_, err := r.Targets.Patch(ctx, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "red", "labels": map[string]any{"zone": "1"}}}, dsl.TargetSpec{})
						return err
					})
				})
				if h := op.Resources()[0].Handlers()[0]; tt.known {
					h.Known.Patches, h.Declared = []string{"zone"}, true
					h.Needs = []dsl.Need{{Verbs: []string{"get", "patch"}, Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}}}
				}
				c.Apply("others", `{apiVersion: v1, kind: ConfigMap, metadata: {name: red, labels: {theirs: x}}}`)
				p := c.Start(op)
				c.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}}`)
				c.Advance(time.Minute)
				if err := p.Stop(); err != nil {
					t.Error(err)
				}
				if o := c.Get(foos, "default", "web"); o.GetAnnotations()[record] == "" {
					t.Fatalf("there is no record: %v", o.Object)
				}
				if tt.before != nil {
					tt.before(c)
				}
				clean, err := cleanup.New(ctx, op, cleanup.Settings{Config: c.Config(), Namespace: "default"})
				if err != nil {
					t.Fatal(err)
				}
				var said []string
				for _, err := range clean.Remove(ctx, clean.Look(ctx), nil) {
					said = append(said, err.Error())
				}
				if text := strings.Join(said, "\n"); (tt.failed == "") != (text == "") || !strings.Contains(text, tt.failed) {
					t.Errorf("it failed with %q, want %q", text, tt.failed)
				}
				var left map[string]string
				if o := c.Get(configMaps, "default", "red"); o != nil {
					left = o.GetLabels()
				}
				if diff := cmp.Diff(tt.left, left, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("labels (-want +got):\n%s", diff)
				}
				web := c.Get(foos, "default", "web")
				if web == nil {
					return
				}
				if marked := len(web.GetFinalizers())+len(web.GetAnnotations()) > 0; marked != (tt.failed != "") {
					t.Errorf("the object bears %v and %v", web.GetFinalizers(), web.GetAnnotations())
				}
			})
		})
	}
}
