// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// label changes the object in what no generation tells of; an empty value takes the label off.
func (s *stage) label(value string) {
	s.t.Helper()
	s.Update(foos, "default", "web", func(o *unstructured.Unstructured) {
		if value == "" {
			o.SetLabels(nil)
			return
		}
		o.SetLabels(map[string]string{"tier": value})
	})
}

// TestWhatAHandlerHasBegunWith is law 1: a change that is taken back while no process runs, and that a handler
// has begun with, is news for it.
func TestWhatAHandlerHasBegunWith(t *testing.T) {
	takenBack := func(s *stage) {
		s.begin()
		s.label("gold")
		s.Called("h update")
		s.Advance(11 * time.Second)
		s.Take()
		s.Process.Kill()
		s.label("")
		s.Process.Restart()
		s.Settle()
		if got := s.Take(); len(got) == 0 {
			s.t.Error("it has begun with a label that is not there any more, and is not called for that")
		}
	}
	updates := func(does dsl.Func, options ...dsl.Option) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) { foo.OnUpdate("h", j.Note("h", does), options...) }
	}
	scenarios(t, map[string]scenario{
		"one that waits": {updates(fails(dsl.Waiting("rain", 0))), takenBack},
		"one that fails, and is tried again every few seconds": {updates(temporary(soon)), takenBack},
		"one of a field": {updates(fails(dsl.Waiting("rain", 0)), dsl.Field("metadata.labels.tier")), takenBack},
		"one of create that failed for good at first, and waits now": {func(foo *dsl.Resource, j *journal) {
			foo.OnCreate("h", j.Note("h", fails(dsl.Permanent(errAgain)), fails(dsl.Waiting("rain", 0)), succeeds))
		}, func(s *stage) {
			s.begin()
			s.label("gold")
			s.Called("h create")
			s.Advance(time.Minute)
			s.Process.Kill()
			s.label("")
			s.Process.Restart()
			s.Called("h create")
		}},
		"one that came to see the object when others had handled it": {func(foo *dsl.Resource, j *journal) {
			foo.OnCreate("other", j.Note("other"))
			foo.OnUpdate("h", j.Note("h", fails(dsl.Waiting("rain", 0))), dsl.Label("tier", "gold"), dsl.Field("metadata.annotations.note"))
		}, func(s *stage) {
			s.begin()
			s.label("gold")
			s.Called()
			s.set("x", "metadata", "annotations", "note")
			s.Called("h update")
			s.Advance(11 * time.Second)
			s.Process.Kill()
			s.Update(foos, "default", "web", func(o *unstructured.Unstructured) {
				unstructured.RemoveNestedField(o.Object, "metadata", "annotations", "note")
			})
			s.Process.Restart()
			s.Called("h update")
		}},
		"that it waits costs one write, after ten seconds": {updates(fails(dsl.Waiting("rain", 0))), func(s *stage) {
			s.begin()
			s.label("gold")
			s.Wrote()
			s.Advance(11 * time.Second)
			s.Wrote("patch foos default/web")
			s.Advance(5 * time.Hour)
			s.Wrote()
		}},
		"so do retries that come every few seconds": {updates(temporary(soon)), func(s *stage) {
			s.begin()
			s.label("gold")
			s.Advance(time.Hour)
			s.Wrote("patch foos default/web")
		}},
	})
}

// TestWhatAHandlerHasBegunWithOfAPart is the same where the cache shows a part of the object, or none of it.
func TestWhatAHandlerHasBegunWithOfAPart(t *testing.T) {
	for name, cached := range map[string]func(foo *dsl.Resource){
		"metadata alone":   func(foo *dsl.Resource) { foo.Cache = dsl.CacheMetadata },
		"nothing of it":    func(foo *dsl.Resource) { foo.Cache = dsl.CacheLive },
		"one of its paths": func(foo *dsl.Resource) { foo.Keep = []dsl.Path{dsl.MustParsePath("spec.size")} },
	} {
		scenarios(t, map[string]scenario{name: {func(foo *dsl.Resource, j *journal) {
			cached(foo)
			foo.OnUpdate("h", j.Note("h", fails(dsl.Waiting("rain", 0))))
		}, func(s *stage) {
			s.begin()
			s.label("gold")
			s.Called("h update")
			s.Advance(11 * time.Second)
			s.Take()
			s.Process.Kill()
			s.label("")
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

// offers asks for a condition if the resource has conditions, which the API server has to be asked.
func offers(_ context.Context, r *dsl.Request) error {
	r.Patch.OfferCondition("Applied", metav1.ConditionTrue, "Yes", "yes")
	return nil
}

// TestAPassThatEndsInTheMiddle is law 1 where what a handler wants cannot be worked out: those before it have
// done what they did.
func TestAPassThatEndsInTheMiddle(t *testing.T) {
	const crds = "customresourcedefinitions.v1.apiextensions.k8s.io"
	scenarios(t, map[string]scenario{
		"they do not run again": {func(foo *dsl.Resource, j *journal) {
			foo.OnCreate("first", j.Note("first"))
			foo.OnCreate("second", j.Note("second", offers))
		}, func(s *stage) {
			s.Launch()
			end := s.FailWhile("get", crds, errAgain)
			s.Create(web)
			s.Advance(5 * time.Minute)
			if failed := end(); failed == 0 {
				s.t.Fatal("no request failed")
			}
			s.Advance(5 * time.Minute)
			if n := len(s.Of("first", "web")); n != 1 {
				s.t.Errorf("first has succeeded, and was called %d times", n)
			}
		}},
		"they and it run again when the change is taken back": {func(foo *dsl.Resource, j *journal) {
			foo.OnUpdate("first", j.Note("first"))
			foo.OnUpdate("second", j.Note("second", offers))
		}, func(s *stage) {
			s.begin()
			end := s.FailWhile("get", crds, errAgain)
			s.size(2)
			s.Settle()
			s.size(1)
			if failed := end(); failed == 0 {
				s.t.Fatal("no request failed")
			}
			s.Advance(time.Hour)
			for _, h := range []string{"first", "second"} {
				calls := s.Of(h, "web")
				if len(calls) < 2 {
					s.t.Fatalf("%s was called %d times", h, len(calls))
				}
				if got := value(calls[len(calls)-1].Object, "spec.size"); got != int64(1) {
					s.t.Errorf("%s was called last for %v, and the size is 1 again", h, got)
				}
			}
		}},
	})
}

// TestWhatComesLate holds that a handler of create is told of a field that comes while the object is still being
// made, or before the handler's filter holds.
func TestWhatComesLate(t *testing.T) {
	h := func(foo *dsl.Resource, j *journal) {
		foo.On(both(), "h", j.Note("h"), dsl.Field("spec.extra"), dsl.Label("tier", "gold"))
	}
	another := func(foo *dsl.Resource, j *journal) {
		h(foo, j)
		foo.OnCreate("other", j.Note("other"))
	}
	comes := func(between func(s *stage)) func(s *stage) {
		return func(s *stage) {
			s.begin()
			between(s)
			s.Take()
			s.Update(foos, "default", "web", func(o *unstructured.Unstructured) {
				o.SetLabels(map[string]string{"tier": "gold"})
				o.Object["spec"].(map[string]any)["extra"] = "yes"
			})
			s.Called("h create")
			s.Process.Restart()
			s.Called()
		}
	}
	restart := func(s *stage) {
		s.Process.Restart()
		s.Settle()
	}
	sets := func(_ context.Context, r *dsl.Request) error {
		r.Patch.Set("spec.extra", "yes")
		return nil
	}
	written := func(options ...dsl.Option) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.OnCreate("first", j.Note("first", fails(errAgain), sets))
			foo.OnCreate("second", j.Note("second"), append(options, dsl.Field("spec.extra"))...)
		}
	}
	once := func(s *stage) {
		s.Launch()
		s.Create(web)
		s.Advance(time.Hour)
		s.Called("first create", "first create 2", "second create")
	}
	nothing := func(*stage) {}
	scenarios(t, map[string]scenario{
		"field and filter at once":                                {h, comes(nothing)},
		"the same after a restart":                                {h, comes(restart)},
		"field and filter at once, where another handler is done": {another, comes(nothing)},
		"the same with another one after a restart":               {another, comes(restart)},
		"a field that an earlier handler writes when it succeeds": {written(), once},
		"the same for a handler that says that it comes after it": {written(dsl.After("first")), once},
		"a field that comes when all is made is no creation of those": {func(foo *dsl.Resource, j *journal) {
			foo.OnCreate("first", j.Note("first"))
			foo.OnCreate("second", j.Note("second"), dsl.Field("spec.extra"))
		}, func(s *stage) {
			s.Launch()
			s.Create(web)
			s.Called("first create")
			s.set("yes", "spec", "extra")
			s.Called()
		}},
	})
}
