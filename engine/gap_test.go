// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// gap lets something happen that no watch shows.
func (s *stage) gap(happens func()) {
	s.t.Helper()
	s.HoldWatches(foos)
	happens()
	s.ExpireWatches(foos)
	s.ReleaseWatches(foos)
	s.Advance(time.Minute)
}

// notes declares handlers that note the uid of what they are called for.
func notes(options ...dsl.Option) func(foo *dsl.Resource, j *journal) {
	return func(foo *dsl.Resource, j *journal) {
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

// TestGaps is law 7: what happens while nobody watches is made up for.
func TestGaps(t *testing.T) {
	scenarios(t, map[string]scenario{
		"an object that was deleted is a delete of it as it was last seen": {notes(dsl.NoFinalizer()), func(s *stage) {
			s.begin()
			uid := string(s.web().GetUID())
			s.gap(func() { s.remove() })
			s.Called("left " + uid)
		}},
		"an object that was deleted and made again is a delete and a create": {notes(dsl.NoFinalizer()), func(s *stage) {
			s.begin()
			old := string(s.web().GetUID())
			s.gap(func() {
				s.remove()
				s.Create(web)
			})
			s.Called("left "+old, "made "+string(s.web().GetUID()))
		}},
		"the same where the watch sees both": {notes(dsl.NoFinalizer()), func(s *stage) {
			s.begin()
			old := string(s.web().GetUID())
			s.HoldWatches(foos)
			s.remove()
			s.Create(web)
			s.ReleaseWatches(foos)
			s.Called("left "+old, "made "+string(s.web().GetUID()))
		}},
		"one that came and went is none": {notes(dsl.NoFinalizer()), func(s *stage) {
			s.Launch()
			s.gap(func() {
				s.Create(web)
				s.remove()
			})
			s.Called()
		}},
		"one whose deletion began is a delete": {notes(), func(s *stage) {
			s.begin()
			uid := string(s.web().GetUID())
			s.gap(func() { s.remove() })
			s.Called("left " + uid)
			s.gone()
		}},
		"a retry that waits is not made for another object of the name": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("vain", j.Note("vain", temporary(time.Hour), succeeds))
			}, func(s *stage) {
				s.begin()
				s.gap(func() {
					s.remove()
					s.Create(web)
				})
				s.Called("vain create")
				s.Advance(2 * time.Hour)
				s.Called()
			},
		},
		"a delete handler of what is gone is tried again, and the name's next object does not wait for it": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnDelete("left", j.Note("left", temporary(late), succeeds), dsl.NoFinalizer())
				foo.OnReconcile("sync", j.Note("sync"))
			}, func(s *stage) {
				s.begin()
				s.remove()
				s.Create(web)
				s.Called("left delete", "sync create")
				s.Advance(late)
				s.Called("left delete 2")
				s.Advance(time.Hour)
				s.Called()
			},
		},
	})
}

// TestForeignObjects holds that what a pass has worked out for one object is not written to
// another one that has its name meanwhile.
func TestForeignObjects(t *testing.T) {
	var s *stage
	swaps := func(then dsl.Func) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.On(both(), "swap", j.Note("swap", func(ctx context.Context, r *dsl.Request) error {
				s.HoldWatches(foos)
				s.remove()
				s.Create(web)
				return then(ctx, r)
			}, succeeds))
		}
	}
	untouched := func(on *stage) {
		s = on
		s.Launch()
		s.Create(web)
		s.Settle()
		if o := s.web(); o.Object["status"] != nil || len(o.GetAnnotations()) > 0 || len(o.GetLabels()) > 0 {
			s.t.Errorf("the new object has what was meant for the old one: %v", o.Object)
		}
		s.ReleaseWatches(foos)
		s.Called("swap create", "swap create")
	}
	scenarios(t, map[string]scenario{
		"the state": {swaps(succeeds), untouched},
		"a label": {swaps(func(_ context.Context, r *dsl.Request) error {
			r.Patch.Label("tier", "gold")
			return nil
		}), untouched},
		"a status": {swaps(func(_ context.Context, r *dsl.Request) error {
			r.Patch.SetStatus("phase", "old")
			return nil
		}), untouched},
		"a condition": {swaps(func(_ context.Context, r *dsl.Request) error {
			r.Patch.SetCondition("Ready", "True", "Done", "All is well.")
			return nil
		}), untouched},
		"a child": {func(foo *dsl.Resource, j *journal) {
			foo.Owns(deployments)
			swaps(keepsChild)(foo, j)
		}, func(on *stage) {
			s = on
			s.Launch()
			s.Create(web)
			s.Settle()
			s.ReleaseWatches(foos)
			s.Settle()
			owned := s.Get(deployments, "default", "web")
			if uid, _, _ := unstructured.NestedSlice(owned.Object, "metadata", "ownerReferences"); len(uid) != 1 {
				s.t.Errorf("the child's owners are %v", uid)
			}
		}},
	})
}
