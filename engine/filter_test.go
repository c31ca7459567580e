// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// colour is a filter that holds for red objects, and fails for those without a colour.
func colour(r *dsl.Subject) (bool, error) {
	got, found, _ := unstructured.NestedString(r.Object.Object, "spec", "color")
	if !found {
		return false, errors.New("no colour")
	}
	return got == "red", nil
}

func unpaint(s *stage) {
	s.Update(foos, "default", "web", func(o *unstructured.Unstructured) {
		unstructured.RemoveNestedField(o.Object, "spec", "color")
	})
}

// TestFiltersThatFail holds that a filter without an answer lets no object go, and that what could
// not be read is looked at again.
func TestFiltersThatFail(t *testing.T) {
	guarded := func(foo *dsl.Resource, j *journal) { foo.OnDelete("left", j.Note("left"), dsl.When(colour)) }
	scenarios(t, map[string]scenario{
		"a deletion waits until it is known whether the handler sees the object": {guarded, func(s *stage) {
			s.begin()
			unpaint(s)
			s.finalizers(finalizer)
			s.remove()
			s.finalizers(finalizer)
			s.Advance(time.Minute)
			s.Called()
			s.Wrote()
			s.set("red", "spec", "color")
			s.Called("left delete")
			s.gone()
		}},
		"one that does not hold lets it go": {guarded, func(s *stage) {
			s.begin()
			unpaint(s)
			s.remove()
			s.finalizers(finalizer)
			s.set("blue", "spec", "color")
			s.Called()
			s.gone()
		}},
		"an object without the finalizer gets none for it": {guarded, func(s *stage) {
			s.Launch()
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 1}}`)
			s.finalizers()
			s.Wrote()
		}},
		"a filter is asked once in a pass for each cause": {
			func(foo *dsl.Resource, j *journal) {
				foo.On([]dsl.Cause{dsl.Create, dsl.Delete}, "both", j.Note("both"), dsl.When(func(r *dsl.Subject) (bool, error) {
					j.Add("asked for " + string(r.Cause))
					return true, nil
				}))
			}, func(s *stage) {
				s.HoldWatches(foos) // what the pass writes makes no second one
				s.Create(web)
				s.Launch()
				s.Called("asked for create", "asked for delete", "both create")
				s.ReleaseWatches(foos)
			},
		},
		"children that the pass itself made count for the finalizer": {
			func(foo *dsl.Resource, j *journal) {
				foo.Owns(deployments)
				foo.OnReconcile("child", keepsChild)
				foo.OnDelete("left", j.Note("left"), dsl.When(func(r *dsl.Subject) (bool, error) {
					found, err := r.Children.Get(deployments, "web")
					return found != nil, err
				}))
			}, func(s *stage) {
				s.begin()
				s.finalizers(finalizer)
			},
		},
		"children that cannot be read yet are looked at again": {
			func(foo *dsl.Resource, j *journal) {
				foo.Owns(deployments)
				foo.OnReconcile("sync", j.Note("sync"), dsl.When(func(r *dsl.Subject) (bool, error) {
					_, err := r.Children.List(deployments)
					return err == nil, err
				}))
			}, func(s *stage) {
				s.Forbid("list", deployments)
				s.Launch()
				s.Create(web)
				s.Called()
				s.Allow("list", deployments)
				s.Advance(2 * time.Minute)
				s.Called("sync create")
			},
		},
	})
}

// TestFiltersInADeletion holds that a deletion waits for handlers that see the object, and for no others.
func TestFiltersInADeletion(t *testing.T) {
	failed := func(foo *dsl.Resource, j *journal) {
		foo.OnDelete("bye", j.Note("bye", fails(dsl.Permanent(errAgain))), dsl.LabelAbsent("tier"))
	}
	scenarios(t, map[string]scenario{
		"one that failed for good does not see the object any more": {failed, func(s *stage) {
			s.begin()
			s.remove()
			s.Called("bye delete")
			s.finalizers(finalizer)
			s.label("gold")
			s.Called()
			s.gone()
		}},
		"the same by the time of the next process": {failed, func(s *stage) {
			s.begin()
			s.remove()
			s.Called("bye delete")
			s.Process.Kill()
			s.label("gold")
			s.Process.Restart()
			s.Called()
			s.gone()
		}},
		"one that is to be tried again does not see the object any more": {func(foo *dsl.Resource, j *journal) {
			foo.OnDelete("bye", j.Note("bye", temporary(time.Hour)), dsl.LabelAbsent("tier"))
		}, func(s *stage) {
			s.begin()
			s.remove()
			s.Called("bye delete")
			s.label("gold")
			s.Called()
			s.gone()
		}},
		"one that has succeeded does not run again when it sees the object again": {func(foo *dsl.Resource, j *journal) {
			foo.OnDelete("one", j.Note("one"), dsl.LabelAbsent("tier"))
			foo.OnDelete("two", j.Note("two", temporary(time.Hour)))
		}, func(s *stage) {
			s.begin()
			s.remove()
			s.Called("one delete", "two delete")
			s.label("gold")
			s.Called("two delete") // the change cuts its wait short
			s.label("")
			s.Called("two delete")
			s.Process.Restart()
			s.Called()
		}},
	})
}

// TestOutOfSight is about objects that a selector does not select any more.
func TestOutOfSight(t *testing.T) {
	gold := func(profile dsl.CacheProfile, then ...dsl.Func) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.LabelSelector, foo.Cache = "tier=gold", profile
			foo.OnReconcile("sync", j.Note("sync"))
			foo.OnDelete("left", j.Note("left", then...), dsl.Retries(0))
		}
	}
	tier := func(s *stage, value string) { s.set(value, "metadata", "labels", "tier") }
	all := map[string]scenario{
		"one whose handler has failed for good is held": {gold("", fails(errAgain)), func(s *stage) {
			s.Launch()
			s.Create(web)
			tier(s, "gold")
			s.finalizers(finalizer)
			tier(s, "iron")
			s.Called("sync create", "left delete")
			s.finalizers(finalizer)
		}},
		"one that is back is handled anew": {gold(""), func(s *stage) {
			s.Launch()
			s.Create(web)
			for range 3 {
				tier(s, "gold")
				s.finalizers(finalizer)
				s.Called("sync create")
				tier(s, "iron")
				s.finalizers()
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
				s.t.Errorf("calls %s", got)
			}
			s.finalizers(finalizer)
		}},
	}
	for _, profile := range []dsl.CacheProfile{dsl.CacheCompact, dsl.CacheMetadata, dsl.CacheLive} {
		all["the finalizer goes when the handler is done, with cache "+string(profile)] = scenario{gold(profile), func(s *stage) {
			s.Launch()
			s.Create(web)
			tier(s, "gold")
			s.finalizers(finalizer)
			tier(s, "iron")
			s.Called("sync create", "left delete")
			s.finalizers()
			s.remove()
			s.gone()
		}}
	}
	scenarios(t, all)
}
