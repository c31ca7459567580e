// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAJobThatExpiresIsMadeOnceOrNotAtAll holds that Go code that makes missing children again may not have such a Job.
func TestAJobThatExpiresIsMadeOnceOrNotAtAll(t *testing.T) {
	desired := map[string]any{
		"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "web", "namespace": "default"},
		"spec": map[string]any{"ttlSecondsAfterFinished": 60},
	}
	child := func(ctx context.Context, r *dsl.Request) error {
		_, err := r.Children.Apply(ctx, desired)
		return err
	}
	byClient := func(ctx context.Context, r *dsl.Request) error {
		_, err := r.Client.Apply(ctx, desired)
		return err
	}
	on := func(causes []dsl.Cause, code dsl.Func, options ...dsl.Option) func(*dsl.Resource) {
		return func(foo *dsl.Resource) { foo.On(causes, "job", code, append(options, dsl.Retries(0))...) }
	}
	in := func(state dsl.State) func(*dsl.Resource) {
		state.Name, state.Terminal = "Only", true
		return func(foo *dsl.Resource) { foo.Machine(dsl.Machine{States: []dsl.State{state}}) }
	}
	changes := []dsl.Cause{dsl.Create, dsl.Update}
	for name, test := range map[string]struct {
		declare func(*dsl.Resource)
		made    int
	}{
		"a handler that makes missing children again":      {on([]dsl.Cause{dsl.Reconcile}, child), 0},
		"one that names the makers of its children":        {on([]dsl.Cause{dsl.Reconcile}, child, dsl.Makes("job")), 0},
		"a handler that runs for changes of children":      {on([]dsl.Cause{dsl.Create, dsl.Child}, child), 0},
		"a handler that runs in each new process":          {on([]dsl.Cause{dsl.Create, dsl.Resume}, child), 0},
		"a handler that runs for any change of the object": {on(changes, child), 0},
		"one that applies the Job by its client":           {on(changes, byClient), 0},
		"what a state does as long as it lasts":            {in(dsl.State{During: child}), 0},
		"a handler that runs for a change of a field":      {on(changes, child, dsl.Field("spec.size")), 1},
		"a handler that runs at the creation alone":        {on([]dsl.Cause{dsl.Create}, child), 1},
		"one that applies the Job once by its client":      {on([]dsl.Cause{dsl.Create}, byClient), 1},
		"what a state does when it is entered":             {in(dsl.State{Enter: child}), 1},
	} {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{
				Operator: func(foo *dsl.Resource, _ *kit.Journal) {
					foo.Owns("jobs.v1.batch")
					test.declare(foo)
				},
				Play: func(s *scene.Stage) {
					s.Launch()
					s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 2}}`)
					s.Settle()
					made := 0
					for _, w := range s.Writes() {
						if w.String() == "patch jobs default/web" {
							made++
						}
					}
					if made != test.made {
						t.Errorf("it made %d Jobs, want %d", made, test.made)
					}
					s.Advance(time.Minute)
				},
			})
		})
	}
}
