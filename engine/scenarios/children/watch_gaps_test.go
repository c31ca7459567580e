// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// expires lets something happen that no watch of a resource shows, because its version expires. Then the resource is listed again.
func expires(s *scene.Stage, resource string, happens func()) {
	s.T.Helper()
	s.HoldWatches(resource)
	happens()
	s.Settle()
	s.ExpireWatches(resource)
	s.ReleaseWatches(resource)
	s.Advance(time.Minute)
}

// listsFail returns a function that lets something happen while the watch of a resource has ended, and lists of it fail, for so long.
func listsFail(lasts time.Duration) func(s *scene.Stage, resource string, happens func()) {
	return func(s *scene.Stage, resource string, happens func()) {
		s.T.Helper()
		refused := errors.New("connection reset by peer")
		lists, watches := s.FailWhile("list", resource, refused), s.FailWhile("watch", resource, refused)
		s.ExpireWatches(resource)
		happens()
		s.Advance(lasts)
		lists()
		watches()
		s.Advance(time.Minute)
	}
}

// gaps are the ways in which a watch shows nothing for a while.
var gaps = map[string]func(s *scene.Stage, resource string, happens func()){
	"its version expires": expires, "lists fail": listsFail(10 * time.Second), "lists fail for minutes": listsFail(5 * time.Minute),
}

// keepsSlowlyIn returns a handler that keeps the ConfigMap web of a namespace, which takes a second each time.
func keepsSlowlyIn(namespace string, spec ...dsl.ChildSpec) dsl.Func {
	return func(ctx context.Context, r *dsl.Request) error {
		if err := scene.TakesTime(time.Second)(ctx, r); err != nil {
			return err
		}
		_, err := r.Children.Apply(ctx, scene.ConfigMapWithValue(namespace, "x"), spec...)
		return err
	}
}

// keepers are operators that keep the ConfigMap web of the owner's namespace.
var keepers = map[string]func(foo *dsl.Resource, j *kit.Journal){
	"a level-triggered handler": func(foo *dsl.Resource, j *kit.Journal) {
		foo.Owns(scene.ConfigMaps)
		foo.OnReconcile("keep", j.Note("keep", keepsSlowlyIn("default")))
	},
	"a handler with the cause child": func(foo *dsl.Resource, j *kit.Journal) {
		foo.Owns(scene.ConfigMaps)
		foo.On([]dsl.Cause{dsl.Create, dsl.Child}, "keep", j.Note("keep", keepsSlowlyIn("default")))
	},
}

// TestAChildThatGoesInAGapOfItsWatchIsMadeAgain holds that the owner hears of a child that the operator makes, and that goes again before
// any watch or listing shows it.
func TestAChildThatGoesInAGapOfItsWatchIsMadeAgain(t *testing.T) {
	remove := func(s *scene.Stage) { s.Delete(scene.ConfigMaps, "default", "web") }
	for gap, inGap := range gaps {
		for name, operator := range keepers {
			scene.PlayAll(t, map[string]scene.Scenario{
				name + ", " + gap + ": a new owner's child": {Operator: operator, Play: func(s *scene.Stage) {
					s.Launch()
					inGap(s, scene.ConfigMaps, func() {
						s.Create(scene.Web)
						s.Advance(2 * time.Second)
						remove(s)
					})
					wantValue(s, "default", "x")
					s.Called("keep create", "keep child")
					s.Advance(time.Hour)
					s.Called()
				}},
				name + ", " + gap + ": a child that is made again": {Operator: operator, Play: func(s *scene.Stage) {
					s.Begin()
					s.Advance(2 * time.Second)
					s.Forget()
					remove(s)
					s.Settle()
					inGap(s, scene.ConfigMaps, func() {
						s.Advance(2 * time.Second)
						remove(s)
					})
					wantValue(s, "default", "x")
					s.Called("keep child", "keep child")
				}},
				name + ", " + gap + ": somebody else's object has the name then": {Operator: operator, Play: func(s *scene.Stage) {
					s.Update(scene.CRDs, "", "foos.example.com", scene.AddConditions)
					s.Launch()
					inGap(s, scene.ConfigMaps, func() {
						s.Create(scene.Web)
						s.Advance(2 * time.Second)
						remove(s)
						s.Create(scene.ConfigMapWithValue("default", "theirs"))
					})
					wantValue(s, "default", "theirs")
					s.WantWarning("keep")
					s.Take()
				}},
			})
		}
	}
}

// TestAChildThatGoesWithItsNamespaceInAGapIsMissed holds that the owner hears of a child that goes with its namespace before any watch or
// listing shows the child: a missing namespace is said, and once it is there again, so is the child.
func TestAChildThatGoesWithItsNamespaceInAGapIsMissed(t *testing.T) {
	spec := dsl.ChildSpec{Handler: "keep", Name: "settings", Ownership: dsl.Labelled}
	for gap, inGap := range gaps {
		t.Run(gap, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.ConfigMaps)
				foo.OnReconcile("keep", j.Note("keep", keepsSlowlyIn("elsewhere", spec)))
			}, Play: func(s *scene.Stage) {
				s.CreateElsewhere()
				s.Launch()
				inGap(s, scene.ConfigMaps, func() {
					s.Create(scene.Web)
					s.Advance(2 * time.Second)
					s.Delete(scene.ConfigMaps, "elsewhere", "web")
					s.Delete("namespaces.v1", "", "elsewhere")
				})
				s.WantWarning("keep")
				s.CreateElsewhere()
				s.Advance(10 * time.Minute)
				wantValue(s, "elsewhere", "x")
				s.Take()
			}})
		})
	}
}

// TestAChildThatARestoredBackupLacksIsMadeAgain restores the cluster to the state before a child was made, which no watch has shown.
func TestAChildThatARestoredBackupLacksIsMadeAgain(t *testing.T) {
	for name, operator := range keepers {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: operator, Play: func(s *scene.Stage) {
				s.Begin()
				s.Advance(time.Minute)
				s.Forget()
				s.Delete(scene.ConfigMaps, "default", "web")
				s.Settle()
				s.HoldWatches()
				restore := s.Backup()
				s.Advance(10 * time.Second)
				wantValue(s, "default", "x")
				restore()
				if s.Get(scene.ConfigMaps, "default", "web") != nil {
					t.Fatal("the backup has the child")
				}
				s.ExpireWatches()
				s.ReleaseWatches()
				s.Advance(5 * time.Minute)
				wantValue(s, "default", "x")
				s.Take()
			}})
		})
	}
}

// TestAChildThatIsChangedAgainInAGapOfItsWatchIsPutBack holds that an own write to a child which no event shows is no reason to take the same
// change, made again, for none.
func TestAChildThatIsChangedAgainInAGapOfItsWatchIsPutBack(t *testing.T) {
	spoil := setsOf(int64(7), "spec", "replicas")
	tests := map[string]func(s *scene.Stage, inGap func(happens func())){
		"the answer to the own write comes first": func(s *scene.Stage, inGap func(happens func())) {
			spoil(s)
			s.Settle()
			inGap(func() {
				s.Advance(2 * time.Second)
				wantReplicas(s, 1)
				spoil(s)
			})
		},
		"the answer comes after the listing": func(s *scene.Stage, inGap func(happens func())) {
			s.DelayNext("patch", scene.Deployments, 20*time.Second)
			spoil(s)
			s.Settle()
			inGap(func() {
				s.Advance(2 * time.Second)
				wantReplicas(s, 1)
				spoil(s)
			})
		},
		"somebody changes what nobody looks at, too": func(s *scene.Stage, inGap func(happens func())) {
			spoil(s)
			s.Settle()
			inGap(func() {
				s.Advance(2 * time.Second)
				setsOf("x", "metadata", "labels", "team")(s)
				spoil(s)
				setsOf(true, "spec", "paused")(s)
			})
		},
	}
	for name, play := range tests {
		for gap, inGap := range gaps {
			t.Run(name+", "+gap, func(t *testing.T) {
				scene.PlayYAML(t, strings.NewReplacer("OPTIONS", "", "MORE", "").Replace(looksAtWeb), func(s *scene.Stage) {
					for _, h := range s.Operator.Handlers() {
						of := h.Func
						h.Func = func(ctx context.Context, r *dsl.Request) error {
							return errors.Join(scene.TakesTime(time.Second)(ctx, r), of(ctx, r))
						}
					}
					s.Begin()
					s.Advance(time.Minute)
					s.Forget()
					play(s, func(happens func()) { inGap(s, scene.Deployments, happens) })
					wantReplicas(s, 1)
					s.Wrote("patch deployments default/web", "patch deployments default/web")
					s.Advance(time.Hour)
					s.Wrote()
					s.Take()
				})
			})
		}
	}
}

// countsConfigMaps is a handler that makes the ConfigMap web when the size is 1, deletes it in the same run when the size is 2, and counts
// the ConfigMaps.
func countsConfigMaps(ctx context.Context, r *dsl.Request) error {
	if err := scene.TakesTime(time.Second)(ctx, r); err != nil {
		return err
	}
	size := scene.SizeOf(r.Object)
	if size > 0 && r.Cause != dsl.Child {
		if _, err := r.Children.Apply(ctx, scene.ConfigMapWithValue("default", "x")); err != nil {
			return err
		}
	}
	if size == 2 && r.Cause != dsl.Child {
		if err := r.Children.Delete(ctx, scene.ConfigMaps, "web"); err != nil {
			return err
		}
	}
	found, err := r.Children.List(scene.ConfigMaps)
	r.Patch.SetStatus("count", int64(len(found)))
	return err
}

// TestACountOfChildrenIsRightAfterAGapOfTheirWatch holds that a status which counts children is worked out again when one of them goes
// in a gap of the watch, whoever has deleted it.
func TestACountOfChildrenIsRightAfterAGapOfTheirWatch(t *testing.T) {
	tests := map[string]func(s *scene.Stage){
		"somebody deletes it": func(s *scene.Stage) {
			s.Resize(1)
			s.Advance(2 * time.Second)
			s.Delete(scene.ConfigMaps, "default", "web")
		},
		"the operator itself deletes it": func(s *scene.Stage) {
			s.Resize(2)
			s.Advance(2 * time.Second)
		},
		"the operator itself deletes it, and the answer to the status is lost": func(s *scene.Stage) {
			s.LoseNext("patch", scene.Foos+"/status")
			s.Resize(2)
			s.Advance(2 * time.Second)
		},
		"the operator itself deletes it, and the answers to the deletion and to the status are lost": func(s *scene.Stage) {
			s.LoseNext("delete", scene.ConfigMaps)
			s.LoseNext("patch", scene.Foos+"/status")
			s.Resize(2)
			s.Advance(2 * time.Second)
		},
		"the operator itself deletes it, and the status fails": func(s *scene.Stage) {
			s.FailNext("patch", scene.Foos+"/status", errors.New("connection reset by peer"))
			s.Resize(2)
			s.Advance(2 * time.Second)
		},
	}
	for name, play := range tests {
		for gap, inGap := range gaps {
			t.Run(name+", "+gap, func(t *testing.T) {
				scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, _ *kit.Journal) {
					foo.Owns(scene.ConfigMaps)
					foo.On([]dsl.Cause{dsl.Create, dsl.Update, dsl.Child}, "count", countsConfigMaps)
				}, Play: func(s *scene.Stage) {
					s.Launch()
					s.Create(strings.Replace(scene.Web, "size: 1", "size: 0", 1))
					s.Advance(time.Minute)
					inGap(s, scene.ConfigMaps, func() { play(s) })
					s.Advance(time.Minute)
					want := int64(len(s.List(scene.ConfigMaps, "default")))
					s.WantField("status.count", want)
				}})
			})
		}
	}
}
