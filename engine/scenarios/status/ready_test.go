// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// wantReadyCondition holds what web says in its condition Ready, and for which generation.
func wantReadyCondition(s *scene.Stage, when, want string) {
	s.T.Helper()
	s.Settle()
	got := "nothing"
	list, _, _ := unstructured.NestedSlice(s.Web().Object, "status", "conditions")
	for _, item := range list {
		if c := item.(map[string]any); c["type"] == "Ready" {
			got = fmt.Sprintf("%v %v %v %q", c["observedGeneration"], c["status"], c["reason"], c["message"])
		}
	}
	if got != want {
		s.T.Errorf("%s it says %s\nwant %s", when, got, want)
	}
}

// whenAsked declares that the engine keeps Ready, and a handler with these errors, one for each attempt, and a child.
func whenAsked(errs ...error) func(*dsl.Resource, *kit.Journal) {
	return func(foo *dsl.Resource, _ *kit.Journal) {
		foo.Ready = new(true)
		foo.Owns("bars.v1.example.org")
		foo.OnReconcile("bar", func(ctx context.Context, r *dsl.Request) error {
			if len(errs) == 0 {
				return nil
			}
			err := errs[0]
			errs = errs[1:]
			return err
		}, dsl.WithBackoff(time.Second, time.Second))
	}
}

func TestReadySumsUpHandlersInGo(t *testing.T) {
	const status = "patch foos/status default/web"
	all := map[string]scene.Scenario{
		"it is asked for, and one write": {Operator: whenAsked(), Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			wantReadyCondition(s, "at first", `1 True AllReady ""`)
			s.Wrote(status)
			s.Resize(2)
			wantReadyCondition(s, "of a new generation", `2 True AllReady ""`)
			s.Wrote(status)
			s.Process.Restart()
			s.Advance(time.Hour)
			s.Wrote()
		}},
		"a new generation is not ready while its handler fails, and of a ready one two failures are no news": {
			Operator: whenAsked(nil, scene.ErrAgain, scene.ErrAgain, nil), Play: func(s *scene.Stage) {
				s.Begin()
				s.Resize(2)
				wantReadyCondition(s, "after a failure", `2 False Reconciling "Handler bar: it is not through yet"`)
				s.Advance(time.Minute)
				wantReadyCondition(s, "in the end", `2 True AllReady ""`)
				s.Wrote(status, status)
			},
		},
		"a failure of the same generation is reported when it lasts": {Operator: whenAsked(nil, scene.ErrAgain, scene.ErrAgain, scene.ErrAgain, scene.ErrAgain), Play: func(s *scene.Stage) {
			s.Begin()
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"a": "b"}) })
			wantReadyCondition(s, "after a failure", `1 True AllReady ""`)
			s.Advance(2500 * time.Millisecond)
			wantReadyCondition(s, "after three", `1 False HandlerFailing "Handler bar: not yet"`)
			s.Advance(time.Minute)
			wantReadyCondition(s, "in the end", `1 True AllReady ""`)
			s.Wrote(status, status)
		}},
		"what is waited for is reported": {Operator: whenAsked(dsl.Waiting("the queue", 10*time.Second)), Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			wantReadyCondition(s, "at first", `1 False Waiting "Handler bar: waiting for the queue"`)
			s.Advance(time.Minute)
			wantReadyCondition(s, "in the end", `1 True AllReady ""`)
		}},
		"a handler that sets it has the say": {Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Ready = new(true)
			foo.OnReconcile("says", func(_ context.Context, r *dsl.Request) error {
				r.Patch.SetCondition("Ready", "Unknown", "Mine", "Of mine.")
				return nil
			})
		}, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			wantReadyCondition(s, "at first", `1 Unknown Mine "Of mine."`)
			s.Wrote(status)
		}},
		"it is asked for, and nothing of what timers do": {Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Ready = new(true)
			foo.OnReconcile("seen", scene.Succeeds, dsl.Label("never", "seen"))
			foo.Every(time.Second, "tick", scene.Succeeds)
		}, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Advance(time.Minute)
			wantReadyCondition(s, "without a handler that sees it", "nothing")
			s.Wrote()
		}},
	}
	for name, one := range all {
		play := one.Play
		one.Play = func(s *scene.Stage) {
			s.Update("customresourcedefinitions.v1.apiextensions.k8s.io", "", "foos.example.com", scene.AddConditions)
			play(s)
		}
		all[name] = one
	}
	scene.PlayAll(t, all)
}
