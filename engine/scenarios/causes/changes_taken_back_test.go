// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package causes_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAChangeThatIsTakenBackIsHandledOnceAHandlerHasBegunWithIt is law 1: a change that is taken back while no process runs,
// and that a handler has begun with, is news for it.
func TestAChangeThatIsTakenBackIsHandledOnceAHandlerHasBegunWithIt(t *testing.T) {
	takenBack := func(s *scene.Stage) {
		s.Begin()
		s.LabelTier("gold")
		s.Called("h update")
		s.Advance(11 * time.Second)
		s.Take()
		s.Process.Kill()
		s.LabelTier("")
		s.Process.Restart()
		s.Settle()
		if got := s.Take(); len(got) == 0 {
			s.T.Error("it has begun with a label that is not there any more, and is not called for that")
		}
	}
	updates := func(does dsl.Func, options ...dsl.Option) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) { foo.OnUpdate("h", j.Note("h", does), options...) }
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"one that waits": {Operator: updates(scene.Fails(dsl.Waiting("rain", 0))), Play: takenBack},
		"one that fails, and is tried again every few seconds": {Operator: updates(scene.RetriesAfter(scene.Soon)), Play: takenBack},
		"one of a field": {Operator: updates(scene.Fails(dsl.Waiting("rain", 0)), dsl.Field("metadata.labels.tier")), Play: takenBack},
		"one of create that failed for good at first, and waits now": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("h", j.Note("h", scene.Fails(dsl.Permanent(scene.ErrAgain)), scene.Fails(dsl.Waiting("rain", 0)), scene.Succeeds))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.LabelTier("gold")
			s.Called("h create")
			s.Advance(time.Minute)
			s.Process.Kill()
			s.LabelTier("")
			s.Process.Restart()
			s.Called("h create")
		}},
		"one that came to see the object when others had handled it": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("other", j.Note("other"))
			foo.OnUpdate("h", j.Note("h", scene.Fails(dsl.Waiting("rain", 0))), dsl.Label("tier", "gold"), dsl.Field("metadata.annotations.note"))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.LabelTier("gold")
			s.Called()
			s.Set("x", "metadata", "annotations", "note")
			s.Called("h update")
			s.Advance(11 * time.Second)
			s.Process.Kill()
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
				unstructured.RemoveNestedField(o.Object, "metadata", "annotations", "note")
			})
			s.Process.Restart()
			s.Called("h update")
		}},
		"that it waits costs one write, after ten seconds": {Operator: updates(scene.Fails(dsl.Waiting("rain", 0))), Play: func(s *scene.Stage) {
			s.Begin()
			s.LabelTier("gold")
			s.Wrote()
			s.Advance(11 * time.Second)
			s.Wrote("patch foos default/web")
			s.Advance(5 * time.Hour)
			s.Wrote()
		}},
		"so do retries that come every few seconds": {Operator: updates(scene.RetriesAfter(scene.Soon)), Play: func(s *scene.Stage) {
			s.Begin()
			s.LabelTier("gold")
			s.Advance(time.Hour)
			s.Wrote("patch foos default/web")
		}},
	})
}

// TestAChangeThatIsTakenBackIsHandledWithAPartialCache is the same where the cache shows a part of the object, or none of it.
func TestAChangeThatIsTakenBackIsHandledWithAPartialCache(t *testing.T) {
	for name, cached := range map[string]func(foo *dsl.Resource){
		"metadata alone":   func(foo *dsl.Resource) { foo.Cache = dsl.CacheMetadata },
		"nothing of it":    func(foo *dsl.Resource) { foo.Cache = dsl.CacheLive },
		"one of its paths": func(foo *dsl.Resource) { foo.Keep = []dsl.Path{dsl.MustParsePath("spec.size")} },
	} {
		scene.PlayAll(t, map[string]scene.Scenario{name: {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			cached(foo)
			foo.OnUpdate("h", j.Note("h", scene.Fails(dsl.Waiting("rain", 0))))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.LabelTier("gold")
			s.Called("h update")
			s.Advance(11 * time.Second)
			s.Take()
			s.Process.Kill()
			s.LabelTier("")
			s.Process.Restart()
			s.Called("h update")
			s.Advance(time.Minute)
			s.Forget()
			s.Advance(5 * time.Hour)
			s.Wrote()
			s.Take()
			s.Process.Restart()
			s.Called("h update")
			s.Wrote()
		}}})
	}
}

// offersCondition asks for a condition if the resource has conditions, which the API server has to be asked.
func offersCondition(_ context.Context, r *dsl.Request) error {
	r.Patch.OfferCondition("Applied", metav1.ConditionTrue, "Yes", "yes")
	return nil
}

// TestAPassThatEndsEarlyKeepsWhatItsHandlersDid is law 1 where what a handler wants cannot be worked out: those before it have
// done what they did.
func TestAPassThatEndsEarlyKeepsWhatItsHandlersDid(t *testing.T) {
	const crds = "customresourcedefinitions.v1.apiextensions.k8s.io"
	scene.PlayAll(t, map[string]scene.Scenario{
		"they do not run again": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("first", j.Note("first"))
			foo.OnCreate("second", j.Note("second", offersCondition))
		}, Play: func(s *scene.Stage) {
			end := s.FailWhile("get", crds, scene.ErrAgain)
			s.Launch()
			s.Create(scene.Web)
			s.Advance(5 * time.Minute)
			if failed := end(); failed < 2 { // one at the start
				s.T.Fatalf("%d requests failed", failed)
			}
			s.Advance(5 * time.Minute)
			if n := len(s.Of("first", "web")); n != 1 {
				s.T.Errorf("first has succeeded, and was called %d times", n)
			}
		}},
		"they and it run again when the change is taken back": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnUpdate("first", j.Note("first"))
			foo.OnUpdate("second", j.Note("second", offersCondition))
		}, Play: func(s *scene.Stage) {
			end := s.FailWhile("get", crds, scene.ErrAgain)
			s.Begin()
			s.Resize(2)
			s.Settle()
			s.Resize(1)
			if failed := end(); failed < 2 { // one at the start
				s.T.Fatalf("%d requests failed", failed)
			}
			s.Advance(time.Hour)
			for _, h := range []string{"first", "second"} {
				calls := s.Of(h, "web")
				if len(calls) < 2 {
					s.T.Fatalf("%s was called %d times", h, len(calls))
				}
				if got := scene.ValueAt(calls[len(calls)-1].Object, "spec.size"); got != int64(1) {
					s.T.Errorf("%s was called last for %v, and the size is 1 again", h, got)
				}
			}
		}},
	})
}

// TestACreateHandlerRunsForAFieldThatComesLate holds that a handler of create runs for a field that comes while the object
// is still being made, or before the handler's filter holds.
func TestACreateHandlerRunsForAFieldThatComesLate(t *testing.T) {
	h := func(foo *dsl.Resource, j *kit.Journal) {
		foo.On(scene.CreateAndUpdate(), "h", j.Note("h"), dsl.Field("spec.extra"), dsl.Label("tier", "gold"))
	}
	another := func(foo *dsl.Resource, j *kit.Journal) {
		h(foo, j)
		foo.OnCreate("other", j.Note("other"))
	}
	comes := func(between func(s *scene.Stage)) func(s *scene.Stage) {
		return func(s *scene.Stage) {
			s.Begin()
			between(s)
			s.Take()
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
				o.SetLabels(map[string]string{"tier": "gold"})
				o.Object["spec"].(map[string]any)["extra"] = "yes"
			})
			s.Called("h create")
			s.Process.Restart()
			s.Called()
		}
	}
	restart := func(s *scene.Stage) {
		s.Process.Restart()
		s.Settle()
	}
	sets := func(_ context.Context, r *dsl.Request) error {
		r.Patch.Set("spec.extra", "yes")
		return nil
	}
	written := func(options ...dsl.Option) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("first", j.Note("first", scene.Fails(scene.ErrAgain), sets))
			foo.OnCreate("second", j.Note("second"), append(options, dsl.Field("spec.extra"))...)
		}
	}
	once := func(s *scene.Stage) {
		s.Launch()
		s.Create(scene.Web)
		s.Advance(time.Hour)
		s.Called("first create", "first create 2", "second create")
	}
	nothing := func(*scene.Stage) {}
	scene.PlayAll(t, map[string]scene.Scenario{
		"field and filter at once":                                {Operator: h, Play: comes(nothing)},
		"the same after a restart":                                {Operator: h, Play: comes(restart)},
		"field and filter at once, where another handler is done": {Operator: another, Play: comes(nothing)},
		"the same with another one after a restart":               {Operator: another, Play: comes(restart)},
		"a field that an earlier handler writes when it succeeds": {Operator: written(), Play: once},
		"the same for a handler that says that it comes after it": {Operator: written(dsl.After("first")), Play: once},
		"a field that comes when all is made is no creation of those": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("first", j.Note("first"))
			foo.OnCreate("second", j.Note("second"), dsl.Field("spec.extra"))
		}, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Called("first create")
			s.Set("yes", "spec", "extra")
			s.Called()
		}},
	})
}

// TestAChangeThatIsTakenBackWhileItsHandlerWaitsIsHandled is law 1 for a handler that has begun with a change and waits:
// when that is taken back, what it has begun may have to be undone.
func TestAChangeThatIsTakenBackWhileItsHandlerWaitsIsHandled(t *testing.T) {
	wait := func(c context.Context, r *dsl.Request) error {
		if size, _ := dsl.MustParsePath("spec.size").In(r.Object.Object); size != int64(1) {
			return dsl.Waiting("rain", 0)
		}
		return nil
	}
	play := func(s *scene.Stage) {
		s.Begin()
		s.Resize(2)
		s.Called("h update")
		s.Resize(1)
		s.Settle()
		s.Advance(time.Hour)
		calls := s.Of("h", "web")
		if got := scene.ValueAt(calls[len(calls)-1].Object, "spec.size"); got != int64(1) {
			s.T.Errorf("it has begun with 2 and waited; the change is taken back, and an hour later it was last called for %v", got)
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"update": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnUpdate("h", j.Note("h", wait))
		}, Play: play},
		"level": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("h", j.Note("h", wait))
		}, Play: play},
	})
}
