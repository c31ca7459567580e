// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAListingOfChildrenShowsWhatAnEventWould holds that nothing is lost of what others do to a child while no event of it comes: a listing
// shows several changes as one, also together with a write of the operator's own, whose event is no news by itself.
func TestAListingOfChildrenShowsWhatAnEventWould(t *testing.T) {
	const (
		app    = `{id: app, apply: {web: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {app: web}}, spec: {replicas: "${self.spec.size}"}}}}`
		report = `{id: report, set: {status: {up: "${children.web.?status.?availableReplicas.orValue(0)}"}}}`
	)
	child := func(s *scene.Stage, path string) any {
		return scene.ValueAt(s.Get(scene.Deployments, "default", "web"), path)
	}
	tests := map[string]struct {
		handlers []string
		gap      func(s *scene.Stage)
		check    func(s *scene.Stage)
	}{
		"a status before an own write, and its reader comes after the writer": {
			handlers: []string{app, report},
			gap: func(s *scene.Stage) {
				setsOf(int64(4), "status", "availableReplicas")(s)
				s.Resize(2)
			},
			check: func(s *scene.Stage) { s.WantField("status.up", int64(4)) },
		},
		"a status before an own write, and its reader comes before the writer": {
			handlers: []string{report, app},
			gap: func(s *scene.Stage) {
				setsOf(int64(4), "status", "availableReplicas")(s)
				s.Resize(2)
			},
			check: func(s *scene.Stage) { s.WantField("status.up", int64(4)) },
		},
		"a status after an own write": {
			handlers: []string{report, app},
			gap: func(s *scene.Stage) {
				s.Resize(2)
				s.Settle()
				setsOf(int64(4), "status", "availableReplicas")(s)
			},
			check: func(s *scene.Stage) { s.WantField("status.up", int64(4)) },
		},
		"a change that nobody looks at, and one that is put back": {
			handlers: []string{app},
			gap: func(s *scene.Stage) {
				setsOf("x", "metadata", "annotations", "example.com/note")(s)
				setsOf(int64(7), "spec", "replicas")(s)
				setsOf(true, "spec", "paused")(s)
			},
			check: func(s *scene.Stage) { s.Wrote("patch deployments default/web") },
		},
		"a change that is taken back": {
			handlers: []string{app, report},
			gap: func(s *scene.Stage) {
				setsOf(int64(7), "spec", "replicas")(s)
				setsOf(int64(1), "spec", "replicas")(s)
			},
			check: func(s *scene.Stage) { s.Wrote() },
		},
		"a change after an own write that undoes it": {
			handlers: []string{app},
			gap: func(s *scene.Stage) {
				s.Resize(2)
				s.Settle()
				setsOf(int64(1), "spec", "replicas")(s)
			},
			check: func(s *scene.Stage) {
				if got := child(s, "spec.replicas"); got != int64(2) {
					s.T.Errorf("the child has %v replicas", got)
				}
			},
		},
		"the tie to the owner is cut, among changes that nobody looks at": {
			handlers: []string{app},
			gap: func(s *scene.Stage) {
				s.Update(scene.Deployments, "default", "web", func(o *unstructured.Unstructured) {
					o.SetOwnerReferences(nil)
					o.SetFinalizers([]string{"example.com/x"})
				})
			},
			check: func(s *scene.Stage) {
				if refs := s.Get(scene.Deployments, "default", "web").GetOwnerReferences(); len(refs) != 1 {
					s.T.Errorf("the owners are %v", refs)
				}
			},
		},
		"a label of the template is removed together with all others": {
			handlers: []string{app},
			gap: func(s *scene.Stage) {
				s.Update(scene.Deployments, "default", "web", func(o *unstructured.Unstructured) { o.SetLabels(nil) })
			},
			check: func(s *scene.Stage) {
				if got := child(s, "metadata.labels.app"); got != "web" {
					s.T.Errorf("the label is %v", got)
				}
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayYAML(t, `{resource: foos.v1.example.com, handlers: [`+strings.Join(tt.handlers, ", ")+`]}`, func(s *scene.Stage) {
				s.Launch()
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 1}}`)
				s.Advance(time.Minute)
				s.Forget()
				s.HoldWatches(scene.Deployments)
				tt.gap(s)
				s.Advance(time.Second)
				s.ExpireWatches(scene.Deployments)
				s.ReleaseWatches(scene.Deployments)
				s.Advance(time.Minute)
				tt.check(s)
			})
		})
	}
}
