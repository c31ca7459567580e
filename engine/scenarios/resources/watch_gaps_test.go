// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package resources_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// happenUnseen lets something happen that no watch shows.
func happenUnseen(s *scene.Stage, happens func()) {
	s.T.Helper()
	s.HoldWatches(scene.Foos)
	happens()
	s.ExpireWatches(scene.Foos)
	s.ReleaseWatches(scene.Foos)
	s.Advance(time.Minute)
}

// notes declares handlers that note the uid of what they are called for.
func notes(options ...dsl.Option) func(foo *dsl.Resource, j *kit.Journal) {
	return func(foo *dsl.Resource, j *kit.Journal) {
		uid := func(id string) dsl.Func {
			return func(_ context.Context, r *dsl.Request) error {
				j.Add(id + " " + string(r.Object.GetUID()))
				return nil
			}
		}
		foo.OnCreate("made", uid("made"))
		foo.OnUpdate("changed", uid("changed"))
		foo.OnDelete("left", uid("left"), options...)
	}
}

// TestEventsInAGapOfTheWatchAreMadeUpFor is law 7: what happens while no process watches is made up for.
func TestEventsInAGapOfTheWatchAreMadeUpFor(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"an object that was deleted is a delete of it as it was last seen": {Operator: notes(dsl.NoFinalizer()), Play: func(s *scene.Stage) {
			s.Begin()
			uid := string(s.Web().GetUID())
			happenUnseen(s, func() { s.Remove() })
			s.Called("left " + uid)
		}},
		"an object that was deleted and made again is a delete and a create": {Operator: notes(dsl.NoFinalizer()), Play: func(s *scene.Stage) {
			s.Begin()
			old := string(s.Web().GetUID())
			happenUnseen(s, func() {
				s.Remove()
				s.Create(scene.Web)
			})
			s.Called("left "+old, "made "+string(s.Web().GetUID()))
		}},
		"the same where the watch sees both": {Operator: notes(dsl.NoFinalizer()), Play: func(s *scene.Stage) {
			s.Begin()
			old := string(s.Web().GetUID())
			s.HoldWatches(scene.Foos)
			s.Remove()
			s.Create(scene.Web)
			s.ReleaseWatches(scene.Foos)
			s.Called("left "+old, "made "+string(s.Web().GetUID()))
		}},
		"one that came and went is none": {Operator: notes(dsl.NoFinalizer()), Play: func(s *scene.Stage) {
			s.Launch()
			happenUnseen(s, func() {
				s.Create(scene.Web)
				s.Remove()
			})
			s.Called()
		}},
		"one whose deletion began is a delete": {Operator: notes(), Play: func(s *scene.Stage) {
			s.Begin()
			uid := string(s.Web().GetUID())
			happenUnseen(s, func() { s.Remove() })
			s.Called("left " + uid)
			s.WantGone()
		}},
		"a retry that waits is not made for another object of the name": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("vain", j.Note("vain", scene.RetriesAfter(time.Hour), scene.Succeeds))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				happenUnseen(s, func() {
					s.Remove()
					s.Create(scene.Web)
				})
				s.Called("vain create")
				s.Advance(2 * time.Hour)
				s.Called()
			},
		},
		"a delete handler of what is gone is tried again, and the name's next object does not wait for it": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnDelete("left", j.Note("left", scene.RetriesAfter(scene.Late), scene.Succeeds), dsl.NoFinalizer())
				foo.OnReconcile("sync", j.Note("sync"))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Remove()
				s.Create(scene.Web)
				s.Called("left delete", "sync create")
				s.Advance(scene.Late)
				s.Called("left delete 2")
				s.Advance(time.Hour)
				s.Called()
			},
		},
	})
}

// TestAPassDoesNotWriteToTheNextObjectOfItsName holds that what a reconcile has worked out for one object is not written to
// another one that has its name meanwhile.
func TestAPassDoesNotWriteToTheNextObjectOfItsName(t *testing.T) {
	var s *scene.Stage
	swaps := func(then dsl.Func) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.On(scene.CreateAndUpdate(), "swap", j.Note("swap", func(ctx context.Context, r *dsl.Request) error {
				s.HoldWatches(scene.Foos)
				s.Remove()
				s.Create(scene.Web)
				return then(ctx, r)
			}, scene.Succeeds))
		}
	}
	untouched := func(on *scene.Stage) {
		s = on
		s.Launch()
		s.Create(scene.Web)
		s.Settle()
		if o := s.Web(); o.Object["status"] != nil || len(o.GetAnnotations()) > 0 || len(o.GetLabels()) > 0 {
			s.T.Errorf("the new object has what was meant for the old one: %v", o.Object)
		}
		s.ReleaseWatches(scene.Foos)
		s.Called("swap create", "swap create")
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"the state": {Operator: swaps(scene.Succeeds), Play: untouched},
		"a label": {Operator: swaps(func(_ context.Context, r *dsl.Request) error {
			r.Patch.Label("tier", "gold")
			return nil
		}), Play: untouched},
		"a status": {Operator: swaps(func(_ context.Context, r *dsl.Request) error {
			r.Patch.SetStatus("phase", "old")
			return nil
		}), Play: untouched},
		"a condition": {Operator: swaps(func(_ context.Context, r *dsl.Request) error {
			r.Patch.SetCondition("Ready", "True", "Done", "All is well.")
			return nil
		}), Play: untouched},
		"a child": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Owns(scene.Deployments)
			swaps(scene.KeepsDeployment)(foo, j)
		}, Play: func(on *scene.Stage) {
			s = on
			s.Launch()
			s.Create(scene.Web)
			s.Settle()
			s.ReleaseWatches(scene.Foos)
			s.Settle()
			owned := s.Get(scene.Deployments, "default", "web")
			if uid, _, _ := unstructured.NestedSlice(owned.Object, "metadata", "ownerReferences"); len(uid) != 1 {
				s.T.Errorf("the child's owners are %v", uid)
			}
		}},
	})
}
