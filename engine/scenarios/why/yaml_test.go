// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why_test

import (
	"testing"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestWhyOfAnOperatorInYAML holds what is said of handlers whose code is known.
func TestWhyOfAnOperatorInYAML(t *testing.T) {
	const (
		sets     = `set: {status: {size: "${self.spec.size}"}}`
		machine  = `machine: {states: [{name: Pending, transitions: [{to: Done, when: "self.spec.size > 3"}, {to: Gone, manual: true}]}, {name: Done, terminal: true}, {name: Gone, terminal: true}]}`
		deployed = `handlers: [{id: app, apply: {web: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1}}}}]`
	)
	for name, tt := range map[string]struct {
		// does is what the resource has beside its name.
		does string
		then func(s *scene.Stage)
		want string
	}{
		"a when is false, with its place and the values that decided": {
			`handlers: [{id: app, causes: [reconcile], when: "self.spec.size > 3", ` + sets + `}]`, nil,
			"handler app does not run: its when is false: self.spec.size > 3 (op.yaml:1), where self.spec.size is 1",
		},
		"a label does not match, with its value": {
			`handlers: [{id: app, causes: [reconcile], labels: {tier: gold}, ` + sets + `}]`, func(s *scene.Stage) { s.LabelTier("silver") },
			`handler app does not see the object: label tier is "silver", want "gold"`,
		},
		"a child is not ready": {
			deployed, nil,
			"child Deployment default/web of handler app, by reference: not ready: Deployment default/web: 0 of 1 created",
		},
		"a child is there and is not the object's": {
			`handlers: [{id: app, apply: {web: {apiVersion: apps/v1, kind: Deployment, metadata: {name: "${self.spec.color}"}, spec: {replicas: 1}}}}]`, func(s *scene.Stage) {
				s.Create(scene.DeploymentNamed("blue", int64(1)))
				s.Set("blue", "spec", "color")
			}, "handler app failed, and is tried again: Deployment default/blue: it is there and was not made for this object: delete it, give the child another name, or take it over with adopt: ifUnowned (1 attempt, next try in 1s)",
		},
		"a handler waits for a related object": {
			`related: [{name: registry, resource: secrets.v1, object: registry}], handlers: [{id: app, apply: {web: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {user: "${related.registry.data.user}"}}}}]`, nil,
			"handler app waits for Secret default/registry (child web takes from it) (next try in 1m)",
		},
		"a machine waits for a condition": {
			machine, nil, "to Done: when: self.spec.size > 3 (op.yaml:1): no",
		},
		"a machine waits for a person": {
			machine, nil, "to Gone: a person takes it, by the annotation op.handwerk.dev/goto",
		},
		"a machine has a history": {
			machine, func(s *scene.Stage) { s.Resize(5) }, "2000-01-01T00:00:00Z: Pending to Done: self.spec.size > 3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := `{apiVersion: handwerk.dev/v1alpha1, kind: Operator, metadata: {name: op}, resources: [{resource: foos.v1.example.com, ` + tt.does + `}]}`
			scene.PlayConfiguration(t, text, func(s *scene.Stage) {
				s.Update(scene.CRDs, "", "foos.example.com", scene.AddConditions)
				s.Launch()
				s.Create(scene.Web)
				s.Settle()
				if tt.then != nil {
					tt.then(s)
					s.Settle()
				}
				wantLine(s, answer(s), tt.want)
			})
		})
	}
}
