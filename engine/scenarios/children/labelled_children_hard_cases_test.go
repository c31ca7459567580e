// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestALabelledChildGoesWithItsOwnerInHardCases holds that a labelled child goes with its owner, and no other object
// does, when several things happen at once.
func TestALabelledChildGoesWithItsOwnerInHardCases(t *testing.T) {
	// lost makes the child with a request whose answer is lost, while the watch of its kind brings nothing.
	lost := func(s *scene.Stage) {
		s.CreateElsewhere()
		s.Launch()
		s.LoseNext("patch", scene.ConfigMaps)
		s.HoldWatches(scene.ConfigMaps)
		s.Create(scene.Web)
		s.Settle()
		wantValue(s, "elsewhere", "x")
		s.Forget()
	}
	begins := func(s *scene.Stage) {
		s.CreateElsewhere()
		s.Begin()
		wantValue(s, "elsewhere", "x")
	}
	other := func(foo *dsl.Resource, j *kit.Journal) { foo.OnReconcile("other", scene.Succeeds) }
	// next ends the process and starts another operator.
	next := func(s *scene.Stage, op *dsl.Operator, declare func(foo *dsl.Resource, j *kit.Journal)) {
		s.Process.Kill()
		s.Operator = op
		op.Resource(scene.Foos, func(foo *dsl.Resource) { declare(foo, &s.Journal) })
		s.Launch()
	}
	renamed := func() *dsl.Operator {
		op := dsl.New("new")
		op.Was = []string{"op"}
		return op
	}
	edge := func(spec dsl.ChildSpec) func(foo *dsl.Resource, j *kit.Journal) {
		spec.Handler, spec.Name, spec.Ownership = "keep", "settings", dsl.Labelled
		return func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.On(scene.CreateAndUpdate(), "keep", func(ctx context.Context, r *dsl.Request) error {
				_, err := r.Children.Apply(ctx, scene.ConfigMapWithValue("elsewhere", "x"), spec)
				return err
			}, dsl.Field("spec.size"))
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"its creation got no answer, and the next version does not know its handler": {Operator: keepsOnChange, Play: func(s *scene.Stage) {
			lost(s)
			next(s, dsl.New("op"), other)
			removeWithChild(s)
		}},
		"its creation is answered after the process has ended, and the next version does not know its handler": {Operator: keepsOnChange, Play: func(s *scene.Stage) {
			s.CreateElsewhere()
			s.Launch()
			s.DelayNext("patch", scene.ConfigMaps, time.Hour)
			s.Create(scene.Web)
			s.Settle()
			next(s, dsl.New("op"), other)
			removeWithChild(s)
		}},
		"its creation got no answer, and the operator is renamed while the owner is deleted": {Operator: keepsOnChange, Play: func(s *scene.Stage) {
			lost(s)
			s.Remove()
			next(s, renamed(), keepsOnChange)
			s.Advance(5 * time.Minute)
			s.ReleaseWatches(scene.ConfigMaps)
			s.Advance(5 * time.Minute)
			wantOwnerAndChildGone(s)
		}},
		"somebody has made another object of its name that no watch has shown": {Operator: keepsOnChange, Play: func(s *scene.Stage) {
			begins(s)
			s.HoldWatches(scene.ConfigMaps)
			s.Delete(scene.ConfigMaps, "elsewhere", "web")
			s.Create(scene.ConfigMapWithValue("elsewhere", "theirs"))
			s.Remove()
			s.Advance(time.Minute)
			s.ReleaseWatches(scene.ConfigMaps)
			s.Advance(3 * time.Minute)
			s.WantGone()
			wantValue(s, "elsewhere", "theirs")
		}},
		"somebody has made another object of its name while no process ran, and the next version does not watch its kind": {Operator: keepsOnChange, Play: func(s *scene.Stage) {
			begins(s)
			s.Process.Kill()
			s.Delete(scene.ConfigMaps, "elsewhere", "web")
			s.Create(scene.ConfigMapWithValue("elsewhere", "theirs"))
			next(s, dsl.New("op"), other)
			s.Remove()
			s.Advance(3 * time.Minute)
			s.WantGone()
			wantValue(s, "elsewhere", "theirs")
		}},
		"one that is to be left behind is deleted while its watch is held": {Operator: edge(dsl.ChildSpec{OnDelete: dsl.OrphanChild}), Play: func(s *scene.Stage) {
			begins(s)
			s.HoldWatches(scene.ConfigMaps)
			s.Delete(scene.ConfigMaps, "elsewhere", "web")
			s.Remove()
			s.Advance(3 * time.Minute)
			s.ReleaseWatches(scene.ConfigMaps)
			s.Advance(3 * time.Minute)
			wantOwnerAndChildGone(s)
		}},
		"a sub-handler's, and it is being deleted when it is applied": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.On(scene.CreateAndUpdate(), "whole", func(_ context.Context, r *dsl.Request) error {
				r.Handle("part", func(ctx context.Context, r *dsl.Request) error {
					_, err := r.Children.Apply(ctx, scene.ConfigMapWithValue("elsewhere", "x"), dsl.ChildSpec{Handler: "whole", Name: "settings", Ownership: dsl.Labelled})
					return err
				})
				return nil
			}, dsl.Field("spec.size"))
		}, Play: func(s *scene.Stage) {
			begins(s)
			s.ChangeConfigMap("elsewhere", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/hold"}) })
			s.Delete(scene.ConfigMaps, "elsewhere", "web")
			s.Settle()
			s.Resize(2)
			s.Advance(10 * time.Minute)
			s.ChangeConfigMap("elsewhere", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			s.Advance(10 * time.Minute)
			wantValue(s, "elsewhere", "x")
			removeWithChild(s)
		}},
	})
}
