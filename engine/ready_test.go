// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// ready holds what web says in its condition Ready, and of which generation.
func (s *stage) ready(when, want string) {
	s.t.Helper()
	s.Settle()
	got := "nothing"
	list, _, _ := unstructured.NestedSlice(s.web().Object, "status", "conditions")
	for _, item := range list {
		if c := item.(map[string]any); c["type"] == "Ready" {
			got = fmt.Sprintf("%v %v %v %q", c["observedGeneration"], c["status"], c["reason"], c["message"])
		}
	}
	if got != want {
		s.t.Errorf("%s it says %s\nwant %s", when, got, want)
	}
}

// whenAsked declares that the engine keeps Ready, and a handler with these errors, one for each attempt, and a child.
func whenAsked(errs ...error) func(*dsl.Resource, *journal) {
	return func(foo *dsl.Resource, _ *journal) {
		foo.Ready = new(true)
		foo.Owns("bars.v1.example.org")
		foo.OnReconcile("bar", func(ctx ctx, r *dsl.Request) error {
			if len(errs) == 0 {
				return nil
			}
			err := errs[0]
			errs = errs[1:]
			return err
		}, dsl.WithBackoff(time.Second, time.Second))
	}
}

func TestReadyOfHandlersInGo(t *testing.T) {
	const status = "patch foos/status default/web"
	all := map[string]scenario{
		"it is asked for, and one write": {whenAsked(), func(s *stage) {
			s.Launch()
			s.Create(web)
			s.ready("at first", `1 True AllReady ""`)
			s.Wrote(status)
			s.size(2)
			s.ready("of a new generation", `2 True AllReady ""`)
			s.Wrote(status)
			s.Process.Restart()
			s.Advance(time.Hour)
			s.Wrote()
		}},
		"a new generation is not ready while its handler fails, and of a ready one two failures are no news": {
			whenAsked(nil, errAgain, errAgain, nil), func(s *stage) {
				s.begin()
				s.size(2)
				s.ready("after a failure", `2 False Reconciling "Handler bar: it is not through yet"`)
				s.Advance(time.Minute)
				s.ready("in the end", `2 True AllReady ""`)
				s.Wrote(status, status)
			},
		},
		"a failure of the same generation is told when it lasts": {whenAsked(nil, errAgain, errAgain, errAgain, errAgain), func(s *stage) {
			s.begin()
			s.Update(foos, "default", "web", func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"a": "b"}) })
			s.ready("after a failure", `1 True AllReady ""`)
			s.Advance(2500 * time.Millisecond)
			s.ready("after three", `1 False HandlerFailing "Handler bar: not yet"`)
			s.Advance(time.Minute)
			s.ready("in the end", `1 True AllReady ""`)
			s.Wrote(status, status)
		}},
		"what is waited for is told": {whenAsked(dsl.Waiting("the queue", 10*time.Second)), func(s *stage) {
			s.Launch()
			s.Create(web)
			s.ready("at first", `1 False Waiting "Handler bar: waiting for the queue"`)
			s.Advance(time.Minute)
			s.ready("in the end", `1 True AllReady ""`)
		}},
		"a handler that sets it has the say": {func(foo *dsl.Resource, _ *journal) {
			foo.Ready = new(true)
			foo.OnReconcile("says", func(_ ctx, r *dsl.Request) error {
				r.Patch.SetCondition("Ready", "Unknown", "Mine", "Of mine.")
				return nil
			})
		}, func(s *stage) {
			s.Launch()
			s.Create(web)
			s.ready("at first", `1 Unknown Mine "Of mine."`)
			s.Wrote(status)
		}},
		"it is asked for, and nothing of what timers do": {func(foo *dsl.Resource, _ *journal) {
			foo.Ready = new(true)
			foo.OnReconcile("seen", succeeds, dsl.Label("never", "seen"))
			foo.Every(time.Second, "tick", succeeds)
		}, func(s *stage) {
			s.Launch()
			s.Create(web)
			s.Advance(time.Minute)
			s.ready("without a handler that sees it", "nothing")
			s.Wrote()
		}},
	}
	for name, one := range all {
		play := one.play
		one.play = func(s *stage) {
			s.Update("customresourcedefinitions.v1.apiextensions.k8s.io", "", "foos.example.com", addConditions)
			play(s)
		}
		all[name] = one
	}
	scenarios(t, all)
}
