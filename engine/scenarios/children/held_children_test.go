// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// seesData returns a handler that notes the data of the ConfigMaps that it sees.
func seesData(j *kit.Journal) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error {
		all, err := r.Children.List(scene.ConfigMaps)
		var lines []string
		for _, o := range all {
			lines = append(lines, fmt.Sprint(o.GetName(), " ", o.Object["data"]))
		}
		slices.Sort(lines)
		for _, line := range lines {
			j.Add(line)
		}
		return err
	}
}

// appliesData returns a handler that applies a ConfigMap with the data.
func appliesData(data map[string]any) dsl.Func {
	return func(ctx context.Context, r *dsl.Request) error {
		_, err := r.Children.Apply(ctx, map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": data,
		})
		return err
	}
}

// TestAPartlyHeldChildIsStillWhatItIsWantedToBe holds that a cache that leaves out fields which code applies makes no write: a
// child is read from the API server before it is changed. What others change there is put back.
func TestAPartlyHeldChildIsStillWhatItIsWantedToBe(t *testing.T) {
	tests := map[string]struct {
		dsl.Holding
		sees string
	}{
		"all fields":             {dsl.Holding{}, "a map[a:1 b:2]"},
		"some fields":            {dsl.Holding{Keep: []dsl.Path{{"data", "a"}}}, "a map[a:1]"},
		"none of these fields":   {dsl.Holding{Keep: []dsl.Path{{"immutable"}}}, "a <nil>"},
		"metadata alone is held": {dsl.Holding{Cache: dsl.CacheMetadata}, "a <nil>"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{
				Operator: func(foo *dsl.Resource, j *kit.Journal) {
					foo.Owns(scene.ConfigMaps)
					foo.HoldOwned(scene.ConfigMaps, test.Holding)
					foo.OnResume("see", seesData(j))
					foo.OnReconcile("apply", appliesData(map[string]any{"a": "1", "b": "2"}))
				},
				Play: func(s *scene.Stage) {
					s.Launch()
					s.Create(scene.Web)
					s.Settle()
					s.Forget()
					s.Resize(3) // the handler runs again
					s.Settle()
					s.Process.Restart()
					s.Settle()
					s.Called(test.sees)
					s.Wrote()
					s.Update(scene.ConfigMaps, "default", "a", func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"a": "1", "b": "spoilt"} })
					s.Advance(time.Minute)
					if got := scene.ValueAt(s.Get(scene.ConfigMaps, "default", "a"), "data.b"); got != "2" {
						t.Errorf("what somebody else changed is %v", got)
					}
				},
			})
		})
	}
}

// TestKeepOfOwnedAndRelatedObjectsLeavesOutTheRest holds that expressions have what templates set and they read, and no more, that
// nothing is written at rest, and that a template's field is put back.
func TestKeepOfOwnedAndRelatedObjectsLeavesOutTheRest(t *testing.T) {
	const resources = `{resource: foos.v1.example.com,
		owns: [{resource: configmaps.v1, keep: [immutable]}],
		related: [{name: secret, resource: secrets.v1, object: token, keep: [type]}],
		handlers: [
			{id: app, apply: {a: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: "${related.secret.type}"}}}},
			{id: report, set: {status: {read: "${children.a.?data.?b.orValue('nothing')}"}}}]}`
	scene.PlayVersionsWithConditions(t, func(v *scene.Versions) {
		v.Create(`{apiVersion: v1, kind: Secret, metadata: {name: token, namespace: default}, type: Opaque, data: {token: c2VjcmV0}}`)
		v.NextResources(resources)
		v.WantChildren("ConfigMap a of app/a")
		v.Settle()
		v.Update(scene.ConfigMaps, "default", "a", func(o *unstructured.Unstructured) {
			o.Object["data"] = map[string]any{"a": "spoilt", "b": "more", "c": "unread"}
		})
		v.Advance(time.Minute)
		if got := scene.ValueAt(v.Get(scene.ConfigMaps, "default", "a"), "data.a"); got != "Opaque" {
			t.Errorf("data.a is %v, want what the template says", got)
		}
		v.WantField("status.read", "more")
		v.Process.Restart()
		v.Settle()
		v.Forget()
		v.Advance(time.Hour)
		v.Wrote()
	})
}

// TestFieldsOfAChildAreHeldWhateverItsPlural has a kind whose plural is not what one would guess.
func TestFieldsOfAChildAreHeldWhateverItsPlural(t *testing.T) {
	for _, held := range []string{"keep: [spec.other]", "cache: metadata"} {
		t.Run(held, func(t *testing.T) {
			scene.PlayVersionsWithConditions(t, func(v *scene.Versions) {
				v.Serve(kit.Resource{Name: "gateways.v1.example.org", Kind: "Gateway"})
				v.NextResources(`{resource: foos.v1.example.com, ready: false, owns: [{resource: gateways.v1.example.org, ` + held + `}], handlers: [
					{id: app, apply: {a: {apiVersion: example.org/v1, kind: Gateway, metadata: {name: a}, spec: {set: here}}}},
					{id: report, set: {status: {read: "${children.a.?spec.?read.orValue('nothing')}"}}}]}`)
				v.Settle()
				v.Update("gateways.v1.example.org", "default", "a", scene.SetField("more", "spec", "read"))
				v.Advance(time.Minute)
				v.WantField("status.read", "more")
			})
		})
	}
}
