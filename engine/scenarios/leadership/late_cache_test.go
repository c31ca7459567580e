// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package leadership_test

import (
	"context"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// tick is the period of the timer in the tests of late caches. The watch of a late cache is silent for less than a minute.
const tick = 20 * time.Second

// ticking returns an operator with leader election whose timer does something.
func ticking(does dsl.Func) *dsl.Operator {
	op := dsl.New("op")
	op.Settings.LeaderElection = dsl.LeaderElection{Mode: dsl.LeaderLease, Namespace: "default"}
	op.Resource(scene.Foos, func(foo *dsl.Resource) {
		foo.Owns(scene.ConfigMaps)
		foo.Every(tick, "tick", does)
	})
	return op
}

// patches returns a handler that patches a ConfigMap under a key of its own.
func patches(name string) dsl.Func {
	return func(ctx context.Context, r *dsl.Request) error {
		fields := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"value": "x"}}
		_, err := r.Targets.Patch(ctx, fields, dsl.TargetSpec{Key: name})
		return err
	}
}

// applies returns a handler that applies a ConfigMap in another namespace, which its owner's inventory lists.
func applies(name string) dsl.Func {
	return func(ctx context.Context, r *dsl.Request) error {
		child := map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "elsewhere", "name": name}, "data": map[string]any{"value": "x"},
		}
		_, err := r.Children.Apply(ctx, child, dsl.ChildSpec{Name: name, Ownership: dsl.Labelled})
		return err
	}
}

// TestANextLeaderWithALateCacheOverwritesNoInventory holds that entries of the leader before stay in an object's inventory of children and
// patched objects, also if the next leader's cache does not show them yet.
func TestANextLeaderWithALateCacheOverwritesNoInventory(t *testing.T) {
	tests := map[string]struct {
		first, second dsl.Func
		want          func(s *scene.Stage)
	}{
		"a patched object is given back when its owner goes": {first: patches("red"), second: patches("blue"), want: func(s *scene.Stage) {
			for _, name := range []string{"red", "blue"} {
				if value := scene.ValueAt(s.Get(scene.ConfigMaps, "default", name), "data.value"); value != "x" {
					s.T.Errorf("%s has the value %v", name, value)
				}
			}
			s.Remove()
			s.Advance(3 * time.Minute)
			s.WantGone()
			for _, name := range []string{"red", "blue"} {
				if value := scene.ValueAt(s.Get(scene.ConfigMaps, "default", name), "data.value"); value != nil {
					s.T.Errorf("%s was not given back: %v", name, value)
				}
			}
		}},
		"a labelled child goes with its owner": {first: applies("one"), second: applies("two"), want: func(s *scene.Stage) {
			if got := len(s.List(scene.ConfigMaps, "elsewhere")); got != 2 {
				s.T.Errorf("there are %d children", got)
			}
			s.Remove()
			s.Advance(3 * time.Minute)
			s.WantGone()
			for _, o := range s.List(scene.ConfigMaps, "elsewhere") {
				s.T.Errorf("the child %s is left behind", o.GetName())
			}
		}},
		"a labelled child that no cache shows stays in the inventory when the owner is patched": {first: applies("one"), second: patches("blue"), want: func(s *scene.Stage) {
			s.Remove()
			s.Advance(3 * time.Minute)
			s.WantGone()
			for _, o := range s.List(scene.ConfigMaps, "elsewhere") {
				s.T.Errorf("the child %s is left behind", o.GetName())
			}
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: scene.Syncs, Play: func(s *scene.Stage) {
				s.CreateElsewhere()
				for _, name := range []string{"red", "blue"} {
					s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: ` + name + `}}`)
				}
				first := s.Start(ticking(test.first))
				s.Advance(time.Second)
				s.Process = s.Start(ticking(test.second))
				s.Advance(time.Second)
				s.Create(scene.Web)
				s.Advance(time.Second)
				s.HoldWatches(scene.Foos, scene.ConfigMaps)
				s.Advance(tick)
				first.Kill()
				s.Advance(15*time.Second + tick)
				s.ReleaseWatches(scene.Foos, scene.ConfigMaps)
				s.Advance(2 * time.Minute)
				test.want(s)
			}})
		})
	}
}
