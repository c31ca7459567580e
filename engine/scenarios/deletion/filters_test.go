// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package deletion_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// colour is a filter that holds for red objects, and fails for those without a colour.
func colour(r *dsl.Subject) (bool, error) {
	got, found, _ := unstructured.NestedString(r.Object.Object, "spec", "color")
	if !found {
		return false, errors.New("no colour")
	}
	return got == "red", nil
}

func removeColor(s *scene.Stage) {
	s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
		unstructured.RemoveNestedField(o.Object, "spec", "color")
	})
}

// TestAFilterThatFailsHoldsADeletion holds that a filter without an answer lets no object go, and that what could
// not be read is looked at again.
func TestAFilterThatFailsHoldsADeletion(t *testing.T) {
	guarded := func(foo *dsl.Resource, j *kit.Journal) { foo.OnDelete("left", j.Note("left"), dsl.When(colour)) }
	scene.PlayAll(t, map[string]scene.Scenario{
		"a deletion waits until it is known whether the handler sees the object": {Operator: guarded, Play: func(s *scene.Stage) {
			s.Begin()
			removeColor(s)
			s.WantFinalizers(scene.Finalizer)
			s.Remove()
			s.WantFinalizers(scene.Finalizer)
			s.Advance(time.Minute)
			s.Called()
			s.Wrote()
			s.Set("red", "spec", "color")
			s.Called("left delete")
			s.WantGone()
		}},
		"one that does not hold lets it go": {Operator: guarded, Play: func(s *scene.Stage) {
			s.Begin()
			removeColor(s)
			s.Remove()
			s.WantFinalizers(scene.Finalizer)
			s.Set("blue", "spec", "color")
			s.Called()
			s.WantGone()
		}},
		"an object for which it has never had an answer is held, too": {Operator: guarded, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 1}}`)
			s.WantFinalizers(scene.Finalizer)
			s.Wrote("patch foos default/web")
			s.Remove()
			s.Advance(time.Minute)
			s.Called()
			s.Set("red", "spec", "color")
			s.Called("left delete")
			s.WantGone()
		}},
		"a no takes the finalizer off again": {Operator: guarded, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 1}}`)
			s.WantFinalizers(scene.Finalizer)
			s.Set("blue", "spec", "color")
			s.WantFinalizers()
			s.Remove()
			s.Called()
			s.WantGone()
		}},
		"a restart that cannot read children yet writes nothing": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.OnDelete("left", j.Note("left"), dsl.When(func(r *dsl.Subject) (bool, error) {
					found, err := r.Children.Get(scene.Deployments, "web")
					return found != nil, err
				}))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.WantFinalizers()
				s.Forget()
				s.Forbid("list", scene.Deployments)
				s.Process.Restart()
				s.Advance(time.Minute)
				s.Wrote()
				s.Create(strings.ReplaceAll(scene.Web, "web", "other"))
				s.Settle()
				if o := s.Get(scene.Foos, "default", "other"); len(o.GetFinalizers()) == 0 {
					s.T.Error("a new object has no finalizer")
				}
				s.Allow("list", scene.Deployments)
				s.Advance(2 * time.Minute)
				if o := s.Get(scene.Foos, "default", "other"); len(o.GetFinalizers()) > 0 {
					s.T.Error("the finalizer stays although no handler wants it")
				}
			},
		},
		"a filter is asked once in a pass for each cause": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On([]dsl.Cause{dsl.Create, dsl.Delete}, "both", j.Note("both"), dsl.When(func(r *dsl.Subject) (bool, error) {
					j.Add("asked for " + string(r.Cause))
					return true, nil
				}))
			}, Play: func(s *scene.Stage) {
				s.HoldWatches(scene.Foos) // what the reconcile writes makes no second one
				s.Create(scene.Web)
				s.Launch()
				s.Called("asked for create", "asked for delete", "both create")
				s.ReleaseWatches(scene.Foos)
			},
		},
		"children that the pass itself made count for the finalizer": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.OnReconcile("child", scene.KeepsDeployment)
				foo.OnDelete("left", j.Note("left"), dsl.When(func(r *dsl.Subject) (bool, error) {
					found, err := r.Children.Get(scene.Deployments, "web")
					return found != nil, err
				}))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.WantFinalizers(scene.Finalizer)
			},
		},
		"children that cannot be read yet are looked at again": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.OnReconcile("sync", j.Note("sync"), dsl.When(func(r *dsl.Subject) (bool, error) {
					_, err := r.Children.List(scene.Deployments)
					return err == nil, err
				}))
			}, Play: func(s *scene.Stage) {
				s.Forbid("list", scene.Deployments)
				s.Launch()
				s.Create(scene.Web)
				s.Called()
				s.Allow("list", scene.Deployments)
				s.Advance(2 * time.Minute)
				s.Called("sync create")
			},
		},
	})
}

// TestADeletionWaitsForHandlersThatSeeTheObject holds that a deletion waits for handlers that see the object, and for no others.
func TestADeletionWaitsForHandlersThatSeeTheObject(t *testing.T) {
	failed := func(foo *dsl.Resource, j *kit.Journal) {
		foo.OnDelete("bye", j.Note("bye", scene.Fails(dsl.Permanent(scene.ErrAgain))), dsl.LabelAbsent("tier"))
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"one that failed for good does not see the object any more": {Operator: failed, Play: func(s *scene.Stage) {
			s.Begin()
			s.Remove()
			s.Called("bye delete")
			s.WantFinalizers(scene.Finalizer)
			s.LabelTier("gold")
			s.Called()
			s.WantGone()
		}},
		"the same by the time of the next process": {Operator: failed, Play: func(s *scene.Stage) {
			s.Begin()
			s.Remove()
			s.Called("bye delete")
			s.Process.Kill()
			s.LabelTier("gold")
			s.Process.Restart()
			s.Called()
			s.WantGone()
		}},
		"one that is to be tried again does not see the object any more": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnDelete("bye", j.Note("bye", scene.RetriesAfter(time.Hour)), dsl.LabelAbsent("tier"))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Remove()
			s.Called("bye delete")
			s.LabelTier("gold")
			s.Called()
			s.WantGone()
		}},
		"one that has succeeded does not run again when it sees the object again": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnDelete("one", j.Note("one"), dsl.LabelAbsent("tier"))
			foo.OnDelete("two", j.Note("two", scene.RetriesAfter(time.Hour)))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Remove()
			s.Called("one delete", "two delete")
			s.LabelTier("gold")
			s.Called("two delete") // the change cuts its wait short
			s.LabelTier("")
			s.Called("two delete")
			s.Process.Restart()
			s.Called()
		}},
	})
}

// TestAnObjectThatLeavesTheSelectorIsLetGo is about objects that a selector does not select any more.
func TestAnObjectThatLeavesTheSelectorIsLetGo(t *testing.T) {
	gold := func(profile dsl.CacheProfile, then ...dsl.Func) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.LabelSelector, foo.Cache = "tier=gold", profile
			foo.OnReconcile("sync", j.Note("sync"))
			foo.OnDelete("left", j.Note("left", then...), dsl.Retries(0))
		}
	}
	tier := func(s *scene.Stage, value string) { s.Set(value, "metadata", "labels", "tier") }
	all := map[string]scene.Scenario{
		"one whose handler has failed for good is held": {Operator: gold("", scene.Fails(scene.ErrAgain)), Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			tier(s, "gold")
			s.WantFinalizers(scene.Finalizer)
			tier(s, "iron")
			s.Called("sync create", "left delete")
			s.WantFinalizers(scene.Finalizer)
		}},
		"one that is back is handled again": {Operator: gold(""), Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			for range 3 {
				tier(s, "gold")
				s.WantFinalizers(scene.Finalizer)
				s.Called("sync create")
				tier(s, "iron")
				s.WantFinalizers()
				s.Called("left delete")
			}
			tier(s, "gold")
			s.Called("sync create")
			tier(s, "iron")
			tier(s, "gold")
			s.Settle()
			switch got := strings.Join(s.Take(), ", "); got {
			case "", "left delete, sync create": // it was out of sight too shortly, or long enough
			default:
				s.T.Errorf("calls %s", got)
			}
			s.WantFinalizers(scene.Finalizer)
		}},
	}
	for _, profile := range []dsl.CacheProfile{dsl.CacheCompact, dsl.CacheMetadata, dsl.CacheLive} {
		all["the finalizer goes when the handler is done, with cache "+string(profile)] = scene.Scenario{Operator: gold(profile), Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			tier(s, "gold")
			s.WantFinalizers(scene.Finalizer)
			tier(s, "iron")
			s.Called("sync create", "left delete")
			s.WantFinalizers()
			s.Remove()
			s.WantGone()
		}}
	}
	scene.PlayAll(t, all)
}
