// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package upgrades_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestWhatLeavesARenamedOperatorLosesItsEarlierMarks holds that an object that leaves the selector before the marks of the
// earlier name are moved has none of them then, so it is new when it comes back.
func TestWhatLeavesARenamedOperatorLosesItsEarlierMarks(t *testing.T) {
	declare := func(foo *dsl.Resource, j *kit.Journal, options ...dsl.Option) {
		foo.LabelSelector = "tier=gold"
		foo.Owns(scene.ConfigMaps)
		foo.OnCreate("made", j.Note("made", func(ctx context.Context, r *dsl.Request) error {
			_, err := r.Children.Apply(ctx, scene.ConfigMapWithValue("elsewhere", "x"), dsl.ChildSpec{Handler: "made", Name: "x", Ownership: dsl.Labelled})
			return err
		}))
		foo.OnDelete("left", j.Note("left"), options...)
	}
	for name, test := range map[string]struct {
		options []dsl.Option
		profile dsl.CacheProfile
	}{
		"a handler holds it":              {nil, dsl.CacheCompact},
		"no handler holds it":             {[]dsl.Option{dsl.NoFinalizer()}, dsl.CacheCompact},
		"keys alone are held":             {nil, dsl.CacheLive},
		"keys alone, and no one holds it": {[]dsl.Option{dsl.NoFinalizer()}, dsl.CacheLive},
	} {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Cache = test.profile
				declare(foo, j, test.options...)
			}, Play: func(s *scene.Stage) {
				s.CreateElsewhere()
				s.Launch()
				s.Create(scene.GoldWeb)
				s.Called("made create")
				s.Process.Kill()
				s.Operator = dsl.New("new")
				s.Operator.Was = []string{"op"}
				s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
					foo.Cache = test.profile
					declare(foo, &s.Journal, test.options...)
				})
				end := s.FailWhile("patch", scene.Foos, scene.ErrAgain)
				s.Process = s.Start(s.Operator)
				s.Advance(time.Minute)
				s.Set("lead", "metadata", "labels", "tier")
				s.Advance(time.Minute)
				end()
				s.Advance(time.Hour)
				s.Called("left delete")
				s.WantFinalizers()
				for key := range s.Web().GetAnnotations() {
					if strings.HasPrefix(key, "op.") || strings.HasSuffix(key, "/state") {
						t.Errorf("it has the mark %s", key)
					}
				}
				s.Set("gold", "metadata", "labels", "tier")
				s.Called("made create")
			}})
		})
	}
}

// TestARenamedOperatorTakesChildrenThatNoCacheShows holds that a child with marks of the earlier name goes with its owner, also
// where this version of the operator does not watch its kind.
func TestARenamedOperatorTakesChildrenThatNoCacheShows(t *testing.T) {
	for _, policy := range []dsl.DeletePolicy{dsl.DeleteChild, dsl.OrphanChild} {
		t.Run(string(policy), func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.ConfigMaps)
				foo.OnCreate("made", j.Note("made", func(ctx context.Context, r *dsl.Request) error {
					_, err := r.Children.Apply(ctx, scene.ConfigMapWithValue("elsewhere", "x"), dsl.ChildSpec{Handler: "made", Name: "x", Ownership: dsl.Labelled, OnDelete: policy})
					return err
				}))
				foo.OnDelete("left", j.Note("left"))
			}, Play: func(s *scene.Stage) {
				s.CreateElsewhere()
				s.Begin()
				s.Process.Kill()
				s.Operator = dsl.New("new")
				s.Operator.Was = []string{"op"}
				s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
					foo.OnCreate("made", s.Note("made"))
					foo.OnDelete("left", s.Note("left"))
				})
				s.Process = s.Start(s.Operator)
				s.Remove()
				s.Advance(time.Hour)
				s.Called("left delete")
				if s.Web() != nil {
					t.Error("the owner is held")
				}
				child := s.Get(scene.ConfigMaps, "elsewhere", "web")
				if policy == dsl.DeleteChild && child != nil {
					t.Error("the child is there")
				}
				if policy == dsl.OrphanChild && (child == nil || len(child.GetLabels())+len(child.GetAnnotations()) > 0) {
					t.Errorf("the child is not free: %v", child)
				}
			}})
		})
	}
}
