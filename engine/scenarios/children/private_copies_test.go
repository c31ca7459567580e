// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAHandlerMayChangeTheChildrenThatItGets holds that each child is a private copy, however a handler gets it: what it makes of it is
// seen by no later reader of the reconcile, and is not written.
func TestAHandlerMayChangeTheChildrenThatItGets(t *testing.T) {
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.OnReconcile("spoils", func(ctx context.Context, r *dsl.Request) error {
				desired := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "web"}, "data": map[string]any{"a": "1"}}
				applied, err := r.Children.Apply(ctx, desired, dsl.ChildSpec{Name: "web"})
				if err != nil {
					return err
				}
				again, err := r.Children.Apply(ctx, desired, dsl.ChildSpec{Name: "web"})
				if err != nil {
					return err
				}
				got, err := r.Children.Get(scene.ConfigMaps, "web")
				if err != nil {
					return err
				}
				list, err := r.Children.List(scene.ConfigMaps)
				if err != nil {
					return err
				}
				all, err := r.Children.All()
				if err != nil {
					return err
				}
				for _, o := range []map[string]any{applied.Object, again.Object, got.Object, list[0].Object, all[0].Object.Object} {
					data := o["data"].(map[string]any)
					j.Add(fmt.Sprint(data))
					data["a"] = "spoilt"
				}
				return nil
			})
		},
		Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Called("map[a:1]", "map[a:1]", "map[a:1]", "map[a:1]", "map[a:1]")
			if diff := cmp.Diff("1", scene.ValueAt(s.Get(scene.ConfigMaps, "default", "web"), "data.a")); diff != "" {
				t.Errorf("the child (-want +got):\n%s", diff)
			}
		},
	})
}
