// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAJobThatExpiresIsMadeOnceOrNotAtAll holds that Go code that makes missing children again may not have such a Job.
func TestAJobThatExpiresIsMadeOnceOrNotAtAll(t *testing.T) {
	job := func(ctx context.Context, r *dsl.Request) error {
		_, err := r.Children.Apply(ctx, map[string]any{
			"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "web"},
			"spec": map[string]any{"ttlSecondsAfterFinished": 60},
		})
		return err
	}
	const made = "patch jobs default/web"
	for name, test := range map[string]struct {
		causes []dsl.Cause
		wrote  []string
	}{
		"a handler that makes missing children again": {[]dsl.Cause{dsl.Reconcile}, nil},
		"a handler that runs for changes of children": {[]dsl.Cause{dsl.Create, dsl.Child}, nil},
		"a handler that runs in each new process":     {[]dsl.Cause{dsl.Create, dsl.Resume}, nil},
		"a handler that runs at the creation alone":   {[]dsl.Cause{dsl.Create}, []string{made}},
	} {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{
				Operator: func(foo *dsl.Resource, j *enginetest.Journal) {
					foo.Owns("jobs.v1.batch")
					foo.On(test.causes, "job", j.Note("job", job), dsl.Retries(0))
				},
				Play: func(s *scene.Stage) {
					s.Launch()
					s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 2}}`)
					s.Settle()
					var jobs []string
					for _, w := range s.Writes() {
						if w.Resource == "jobs" {
							jobs = append(jobs, w.String())
						}
					}
					if len(jobs) != len(test.wrote) {
						t.Errorf("it wrote %v, want %v", jobs, test.wrote)
					}
					s.Advance(time.Minute)
				},
			})
		})
	}
}
