// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why_test

import (
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestWhyOfAnOperatorInYAML holds what is said of handlers whose code is known.
func TestWhyOfAnOperatorInYAML(t *testing.T) {
	const (
		sets     = `set: {status: {size: "${self.spec.size}"}}`
		machine  = `machine: {states: [{name: Pending, transitions: [{to: Done, when: "self.spec.size > 3"}, {to: Gone, manual: true}]}, {name: Done, terminal: true}, {name: Gone, terminal: true}]}`
		patches  = `handlers: [{id: zone, forEach: "${[self.spec.color]}", patch: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${item}", labels: {a: b}}}}]`
		deployed = `handlers: [{id: app, apply: {web: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1}}}}]`
	)
	for name, tt := range map[string]struct {
		// does is what the resource has beside its name.
		does string
		then func(s *scene.Stage)
		want string
	}{
		"a child is there and is not the object's": {
			`handlers: [{id: app, apply: {web: {apiVersion: apps/v1, kind: Deployment, metadata: {name: "${self.spec.color}"}, spec: {replicas: 1}}}}]`, func(s *scene.Stage) {
				s.Create(scene.DeploymentNamed("blue", int64(1)))
				s.Set("blue", "spec", "color")
			}, "handler app failed, and is tried again: Deployment default/blue: it is there and was not made for this object: delete it, give the child another name, or take it over with adopt: ifUnowned (1 attempt, next try in 1s)",
		},
		"an object that a handler patches is named": {
			patches, func(s *scene.Stage) {
				s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: red}}`)
				s.Advance(time.Minute)
			},
			"patches ConfigMap default/red by handler zone, entry red",
		},
		"fields that cannot be given back hold a deletion": {
			patches, func(s *scene.Stage) {
				s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: red}}`)
				s.Advance(time.Minute)
				s.Forbid("patch", scene.ConfigMaps)
				s.Remove()
				s.Advance(time.Minute)
			}, "held by fields of ConfigMap default/red, which are not given back yet",
		},
		"a machine has a history": {
			machine, func(s *scene.Stage) { s.Resize(5) }, "2000-01-01T00:00:00Z: Pending to Done: self.spec.size > 3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			playYAML(t, tt.does, func(s *scene.Stage) {
				tt.then(s)
				s.Settle()
				wantLine(s, answer(s), tt.want)
			})
		})
	}
}

// playYAML creates web while an operator runs whose resource has this beside its name.
func playYAML(t *testing.T, does string, play func(s *scene.Stage)) {
	t.Helper()
	text := `{apiVersion: handwerk.dev/v1alpha1, kind: Operator, metadata: {name: op}, resources: [{resource: foos.v1.example.com, ` + does + `}]}`
	scene.PlayConfiguration(t, text, func(s *scene.Stage) {
		s.Update(scene.CRDs, "", "foos.example.com", scene.AddConditions)
		s.Launch()
		s.Create(scene.Web)
		s.Settle()
		play(s)
	})
}
