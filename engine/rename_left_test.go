// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestWhatLeavesARenamedOperatorLosesItsEarlierMarks holds that an object that leaves the selector before the marks of the earlier
// name are moved has none of them then, so it is new when it comes back.
func TestWhatLeavesARenamedOperatorLosesItsEarlierMarks(t *testing.T) {
	declare := func(foo *dsl.Resource, j *journal, options ...dsl.Option) {
		foo.LabelSelector = "tier=gold"
		foo.Owns(configMaps)
		foo.OnCreate("made", j.Note("made", func(ctx ctx, r *dsl.Request) error {
			_, err := r.Children.Apply(ctx, settings("elsewhere", "x"), dsl.ChildSpec{Handler: "made", Name: "x", Ownership: dsl.Labelled})
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
			perform(t, scenario{func(foo *dsl.Resource, j *journal) {
				foo.Cache = test.profile
				declare(foo, j, test.options...)
			}, func(s *stage) {
				s.elsewhere()
				s.Launch()
				s.Create(goldenWeb)
				s.Called("made create")
				s.Process.Kill()
				s.Operator = dsl.New("new")
				s.Operator.Was = []string{"op"}
				s.Operator.Resource(foos, func(foo *dsl.Resource) {
					foo.Cache = test.profile
					declare(foo, &s.Journal, test.options...)
				})
				end := s.FailWhile("patch", foos, errAgain)
				s.Process = s.Start(s.Operator)
				s.Advance(time.Minute)
				s.set("lead", "metadata", "labels", "tier")
				s.Advance(time.Minute)
				end()
				s.Advance(time.Hour)
				s.Called("left delete")
				s.finalizers()
				for key := range s.web().GetAnnotations() {
					if strings.HasPrefix(key, "op.") || strings.HasSuffix(key, "/state") {
						t.Errorf("it has the mark %s", key)
					}
				}
				s.set("gold", "metadata", "labels", "tier")
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
			perform(t, scenario{func(foo *dsl.Resource, j *journal) {
				foo.Owns(configMaps)
				foo.OnCreate("made", j.Note("made", func(ctx ctx, r *dsl.Request) error {
					_, err := r.Children.Apply(ctx, settings("elsewhere", "x"), dsl.ChildSpec{Handler: "made", Name: "x", Ownership: dsl.Labelled, OnDelete: policy})
					return err
				}))
				foo.OnDelete("left", j.Note("left"))
			}, func(s *stage) {
				s.elsewhere()
				s.begin()
				s.Process.Kill()
				s.Operator = dsl.New("new")
				s.Operator.Was = []string{"op"}
				s.Operator.Resource(foos, func(foo *dsl.Resource) {
					foo.OnCreate("made", s.Note("made"))
					foo.OnDelete("left", s.Note("left"))
				})
				s.Process = s.Start(s.Operator)
				s.remove()
				s.Advance(time.Hour)
				s.Called("left delete")
				if s.web() != nil {
					t.Error("the owner is held")
				}
				child := s.Get(configMaps, "elsewhere", "web")
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
