// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package deletion_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// ordered is a resource with owned children of which b needs a.
const ordered = `{resource: foos.v1.example.com, handlers: [{id: app, when: self.spec.size < 2, apply: {
	a: {deleteOrder: reverse, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}},
	b: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {of: "${children.a.metadata.uid}"}}},
	c: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}}}]}`

// TestOwnedChildrenAreDeletedInOrder holds that a handler deletes owned children before their owner, the last one first, whatever
// happens in between.
func TestOwnedChildrenAreDeletedInOrder(t *testing.T) {
	hold := func(names ...string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) { o.SetFinalizers(names) }
	}
	going := func(s *scene.Stage, name string) bool {
		o := s.Get(scene.ConfigMaps, "default", name)
		return o == nil || o.GetDeletionTimestamp() != nil
	}
	tests := map[string]func(s *scene.Stage){
		"the last one first, and the rest is left to Kubernetes": func(s *scene.Stage) {
			s.Remove()
			s.WantGone()
			s.Wrote("delete configmaps default/b", "delete configmaps default/a", owner)
		},
		"each is waited for, also by the next process": func(s *scene.Stage) {
			s.Update(scene.ConfigMaps, "default", "b", hold("example.com/held"))
			s.Remove()
			s.Advance(time.Hour)
			s.Process.Restart()
			s.Advance(time.Hour)
			if s.Web() == nil || going(s, "a") || !going(s, "b") {
				s.T.Error("the order is another one")
			}
			s.Update(scene.ConfigMaps, "default", "b", hold())
			s.Settle()
			s.WantGone()
		},
		"none is deleted for an object that leaves the selector and lives": func(s *scene.Stage) {
			s.Set("lead", "metadata", "labels", "tier")
			s.Advance(time.Hour)
			s.WantFinalizers()
			if going(s, "a") || going(s, "b") || going(s, "c") {
				s.T.Error("a child is deleted")
			}
		},
		"also where the handler's when is false": func(s *scene.Stage) {
			s.Resize(2)
			s.Advance(time.Minute)
			s.Forget()
			s.Remove()
			s.WantGone()
			s.Wrote("delete configmaps default/b", "delete configmaps default/a", owner)
		},
		"one that somebody else took from its owner stays": func(s *scene.Stage) {
			s.HoldWatches(scene.ConfigMaps)
			s.Update(scene.ConfigMaps, "default", "b", func(o *unstructured.Unstructured) { o.SetOwnerReferences(nil) })
			s.Remove()
			s.Settle()
			s.ReleaseWatches(scene.ConfigMaps)
			s.Advance(time.Hour)
			s.WantGone()
			if going(s, "b") || !going(s, "a") {
				s.T.Error("another one stays than was taken")
			}
		},
	}
	for name, play := range tests {
		t.Run(name, func(t *testing.T) {
			gold := strings.Replace(ordered, "handlers:", "selector: {matchLabels: {tier: gold}}, handlers:", 1)
			scene.PlayYAML(t, gold, func(s *scene.Stage) {
				s.Launch()
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, labels: {tier: gold}}, spec: {size: 1}}`)
				s.Advance(time.Second)
				s.WantFinalizers(scene.Finalizer)
				s.Forget()
				play(s)
			})
		})
	}
}
