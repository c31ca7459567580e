// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package outages_test

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

// reported is when the journal has the line, within a minute.
func reported(s *scene.Stage, line string) (after time.Duration) {
	s.T.Helper()
	start := time.Now()
	for time.Since(start) < time.Minute {
		s.Advance(time.Second)
		if slices.Contains(s.Take(), line) {
			return time.Since(start)
		}
	}
	s.T.Errorf("%q was not reported", line)
	return time.Since(start)
}

// TestNothingWaitsForACacheThatCannotCatchUp holds that no reconcile waits for what will not be shown, and that no reconcile takes
// an old cache for how things are.
func TestNothingWaitsForACacheThatCannotCatchUp(t *testing.T) {
	keeps := func(foo *dsl.Resource, j *kit.Journal) {
		foo.Owns(scene.Deployments)
		foo.OnReconcile("child", j.Note("child", scene.KeepsDeployment))
		foo.OnReconcile("look", func(_ context.Context, r *dsl.Request) error {
			_, err := r.Children.List(scene.Deployments)
			j.Add(fmt.Sprint("look: ", err))
			return err
		})
		foo.OnDelete("left", j.Note("left"))
	}
	const refused = "look: deployments.apps is forbidden: the operator may not list, watch"
	// written has the operator write to a child that it then cannot see any more.
	written := func(s *scene.Stage) {
		s.Begin()
		s.HoldWatches(scene.Deployments)
		s.Resize(2)
		s.Called("child update", "look: <nil>")
		s.ForbidWatching(scene.Deployments)
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"an object is deleted though the rights to watch its children were taken away after a write to one": {Operator: keeps, Play: func(s *scene.Stage) {
			written(s)
			s.Remove()
			if after := reported(s, "left delete"); after > 40*time.Second {
				s.T.Errorf("it took %v", after)
			}
			s.WantGone()
		}},
		"its handlers get an error that its children cannot be read, and go on when they can": {Operator: keeps, Play: func(s *scene.Stage) {
			written(s)
			s.Resize(3)
			reported(s, refused)
			scene.WantUnwell(s, "child/"+scene.Foos+"/"+scene.Deployments, "forbidden: list, watch")
			s.AllowWatching(scene.Deployments)
			s.ReleaseWatches(scene.Deployments)
			reported(s, "look: <nil>")
			s.Advance(12 * time.Second) // it may have tried again by itself, before the others were notified
			if n, _, _ := unstructured.NestedInt64(s.Get(scene.Deployments, "default", "web").Object, "spec", "replicas"); n != 3 {
				s.T.Errorf("the child has %d replicas", n)
			}
			scene.WantWell(s)
		}},
		"a short absence is waited for": {Operator: keeps, Play: func(s *scene.Stage) {
			written(s)
			s.Resize(3)
			s.Advance(15 * time.Second)
			s.Called()
			s.AllowWatching(scene.Deployments)
			s.Advance(25 * time.Second)
			s.Called("child update", "look: <nil>")
		}},
		"an object whose own watch is lost waits, for nothing is known of it": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "report", j.Note("report", scene.Reports))
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.HoldWatches(scene.Foos)
				s.Advance(time.Second)
				s.ForbidWatching(scene.Foos)
				s.Resize(2)
				s.Advance(10 * time.Minute)
				s.Called()
				scene.WantUnwell(s, "resource/"+scene.Foos, "forbidden: list, watch")
				s.AllowWatching(scene.Foos)
				s.ReleaseWatches(scene.Foos)
				s.Advance(25 * time.Second)
				s.Called("report update")
			},
		},
	})
}

// TestNothingWaitsForWhatARestoredServerHasForgotten holds that nothing is waited for that a server has forgotten: its
// versions have gone back.
func TestNothingWaitsForWhatARestoredServerHasForgotten(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"writes that are forgotten are made again": {Operator: keepsOne, Play: func(s *scene.Stage) {
			s.Begin()
			for i := range int64(20) {
				s.Create(fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: filler-%d}}`, i))
			}
			s.Forget()
			restore := s.Snapshot()
			for i := range int64(20) {
				s.Create(fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: other-%d}}`, i))
			}
			s.HoldWatches(scene.Deployments, scene.Foos)
			s.Resize(2)
			s.ReleaseWatches(scene.Foos)
			s.Called("child update")
			restore()
			s.ReleaseWatches()
			s.Advance(3 * time.Minute)
			s.Forget()
			s.Resize(3)
			s.Called("child update")
			s.Resize(4)
			s.Called("child update")
			scene.WantWell(s)
		}},
	})
}

// keepsOne keeps a child.
func keepsOne(foo *dsl.Resource, j *kit.Journal) {
	foo.Owns(scene.Deployments)
	foo.OnReconcile("child", j.Note("child", scene.KeepsDeployment))
}
