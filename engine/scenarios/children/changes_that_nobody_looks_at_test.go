// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// looksAtWeb is a resource whose handlers look at some fields of a Deployment.
const looksAtWeb = `{resource: foos.v1.example.com, handlers: [
	{id: app, apply: {web: {OPTIONS template: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {app: web}},
		spec: {replicas: "${self.spec.size}", template: {spec: {containers: [{name: web, image: i}]}}}}}}},
	{id: report, set: {status: {up: "${children.web.?status.?availableReplicas.orValue(0)}"}}}MORE]}`

// setsOf returns a change of a field of the Deployment web, as a controller makes it.
func setsOf(value any, path ...string) func(*scene.Stage) {
	return func(s *scene.Stage) {
		s.Update(scene.Deployments, "default", "web", func(o *unstructured.Unstructured) {
			if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
				s.T.Error(err)
			}
		})
	}
}

// TestAChangeOfAChildThatNobodyLooksAtRunsNoHandler holds which changes of a child wake its owner: those of what the template
// sets, of what expressions read, and of what ties the child to the owner. No other one renders a template.
func TestAChangeOfAChildThatNobodyLooksAtRunsNoHandler(t *testing.T) {
	byHand := func(manager string) func(*scene.Stage) {
		return func(s *scene.Stage) {
			s.Apply(manager, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default, labels: {more: x}}}`)
		}
	}
	tests := map[string]struct {
		options, more string
		change        func(*scene.Stage)
		want          string
	}{
		"a label that the template lacks":                           {change: setsOf("x", "metadata", "labels", "team")},
		"an annotation":                                             {change: setsOf("x", "metadata", "annotations", "example.com/note")},
		"a field of the spec that the template lacks":               {change: setsOf(true, "spec", "paused")},
		"a field of the status that nobody reads":                   {change: setsOf(int64(1), "status", "observedGeneration")},
		"a finalizer":                                               {change: setsOf([]any{"example.com/x"}, "metadata", "finalizers")},
		"a label by kubectl label":                                  {change: byHand("kubectl-label")},
		"a label by kubectl label where drift is strict":            {options: "drift: strict,", change: byHand("kubectl-label"), want: "app report"},
		"a label by another program where drift is strict":          {options: "drift: strict,", change: byHand("curl"), want: "app report"},
		"a label by a manager that is allowed":                      {options: "drift: strict, allow: [curl],", change: byHand("curl")},
		"a label by kubectl edit":                                   {change: byHand("kubectl-edit"), want: "app report"},
		"a label of the template":                                   {change: setsOf("x", "metadata", "labels", "app"), want: "app report"},
		"a field of the template":                                   {change: setsOf(int64(5), "spec", "replicas"), want: "app report"},
		"an entry of a list in the template":                        {change: setsOf([]any{map[string]any{"name": "more"}}, "spec", "template", "spec", "containers"), want: "app report"},
		"a field of the status that an expression reads":            {change: setsOf(int64(1), "status", "availableReplicas"), want: "app report"},
		"what the child was applied from":                           {change: setsOf("x", "metadata", "annotations", "op.handwerk.dev/applied"), want: "app report"},
		"which child it is":                                         {change: setsOf("x", "metadata", "annotations", "op.handwerk.dev/child"), want: "app report"},
		"its owner":                                                 {change: setsOf([]any{}, "metadata", "ownerReferences"), want: "app report"},
		"that it is deleted":                                        {change: func(s *scene.Stage) { s.Delete(scene.Deployments, "default", "web") }, want: "app report"},
		"anything, where a handler waits":                           {options: "readyWhen: child.spec.replicas == 7,", change: setsOf(true, "spec", "paused"), want: "app report"},
		"what readyWhen reads":                                      {options: "readyWhen: 'child.spec.?paused.orValue(false) || child.spec.replicas == 1',", change: setsOf(true, "spec", "paused"), want: "app report"},
		"what readyWhen does not read":                              {options: "readyWhen: child.spec.replicas == 1,", change: setsOf(true, "spec", "paused")},
		"a label, where ready() is asked":                           {options: "readyWhen: ready(child),", more: `, {id: ok, set: {status: {ok: "${ready(children.web)}"}}}`, change: setsOf("x", "metadata", "labels", "team"), want: "app report ok"},
		"anything, where a handler is called for children by name":  {more: `, {id: note, causes: [child], set: {status: {seen: "yes"}}}`, change: setsOf(true, "spec", "paused"), want: "app report note"},
		"anything, where a handler's code is not known":             {more: `, {id: go, call: test.Nothing}`, change: setsOf(true, "spec", "paused"), want: "app report go"},
		"anything, where an expression reads the child as a whole":  {more: `, {id: all, set: {status: {size: "${size(children.web)}"}}}`, change: setsOf(true, "spec", "paused"), want: "app report all"},
		"anything, where an expression reads children of any name":  {more: `, {id: all, set: {status: {size: "${size(children)}"}}}`, change: setsOf(true, "spec", "paused"), want: "app report all"},
		"what a filter reads":                                       {more: `, {id: no, when: "has(children.web.spec.paused)", set: {status: {x: "yes"}}}`, change: setsOf(true, "spec", "paused"), want: "app report no"},
		"anything, where the template computes the keys of its map": {more: `, {id: no, apply: {other: {apiVersion: v1, kind: ConfigMap, metadata: {name: other}, data: {"${self.metadata.name}": x}}}}`, change: setsOf("x", "metadata", "labels", "team")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayYAML(t, strings.NewReplacer("OPTIONS", tt.options, "MORE", tt.more).Replace(looksAtWeb), func(s *scene.Stage) {
				var ran []string
				for _, h := range s.Operator.Handlers() {
					of := h.Func
					h.Func = func(ctx context.Context, r *dsl.Request) error {
						ran = append(ran, h.ID)
						return of(ctx, r)
					}
				}
				s.Launch()
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 1}}`)
				s.Advance(time.Second)
				ran = nil
				tt.change(s)
				s.Settle()
				if len(ran) > len(strings.Fields(tt.want)) {
					ran = ran[:len(strings.Fields(tt.want))] // those that follow see what these have written
				}
				if diff := cmp.Diff(tt.want, strings.Join(ran, " ")); diff != "" {
					t.Errorf("handlers that run (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestWhatNobodyLookedAtIsThereForTheNextRun holds that a change which wakes nobody is not lost: a handler that runs for another
// reason sees it.
func TestWhatNobodyLookedAtIsThereForTheNextRun(t *testing.T) {
	note := `, {id: note, causes: [update], field: spec.note, set: {status: {team: "${children.web.metadata.labels.team}"}}}`
	scene.PlayYAML(t, strings.NewReplacer("OPTIONS", "", "MORE", note).Replace(looksAtWeb), func(s *scene.Stage) {
		s.Launch()
		s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 1}}`)
		s.Settle()
		setsOf("x", "metadata", "labels", "team")(s)
		s.Settle()
		s.Set("now", "spec", "note")
		s.Advance(time.Second)
		s.WantField("status.team", "x")
		setsOf(int64(5), "spec", "replicas")(s)
		s.Advance(time.Second)
		if got := scene.ValueAt(s.Get(scene.Deployments, "default", "web"), "spec.replicas"); got != int64(1) {
			t.Errorf("the child has %v replicas", got)
		}
	})
}
