// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestReconcilesAndAnswersHaveTheSameReasonOfSeveral holds that where two things keep the handlers of an object from running, the kept
// reconciles and the answer name the same one.
func TestReconcilesAndAnswersHaveTheSameReasonOfSeveral(t *testing.T) {
	pauseNamespace := func(s *scene.Stage) {
		s.Update("namespaces.v1", "", "default", func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{"op.handwerk.dev/paused": "while we move"})
		})
	}
	const paused = "no handler runs: paused: namespace default is paused: while we move"
	beats := func(foo *dsl.Resource) {
		foo.Every(time.Minute, "beat", func(_ context.Context, r *dsl.Request) error {
			r.Patch.SetStatus("beat", time.Now().String())
			return nil
		})
	}
	for name, tt := range map[string]struct {
		operator func(foo *dsl.Resource)
		play     func(s *scene.Stage)
		want     string
	}{
		"the cache is behind, and the namespace is paused": {beats, func(s *scene.Stage) {
			created(s)
			s.HoldWatches(scene.Foos)
			s.Advance(3 * time.Minute)
			pauseNamespace(s)
		}, paused},
		"the object loops, and the namespace is paused": {func(foo *dsl.Resource) {
			foo.OnReconcile("left", flips("left"))
			foo.OnReconcile("right", flips("right"))
		}, func(s *scene.Stage) {
			created(s)
			s.Advance(10 * time.Second)
			pauseNamespace(s)
		}, paused},
		"others hold the memory, and the namespace is paused": {func(foo *dsl.Resource) { foo.OnReconcile("app", hangs, dsl.Timeout(time.Hour)) }, func(s *scene.Stage) {
			memoryShort(s)
			pauseNamespace(s)
		}, paused},
		"the cache has keys alone, and the object is paused": {func(foo *dsl.Resource) {
			foo.Cache = dsl.CacheLive
			foo.OnReconcile("app", scene.Succeeds)
		}, func(s *scene.Stage) {
			created(s)
			pauseWeb(s)
		}, "no handler runs: paused: while we move"},
	} {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, _ *kit.Journal) { tt.operator(foo) }, Play: func(s *scene.Stage) {
				tt.play(s)
				s.Settle()
				a, err := s.Process.Engine().Why(s.T.Context(), history)
				if err != nil {
					t.Fatal(err)
				}
				if a.Idle == nil || a.Idle.Says != tt.want {
					t.Errorf("the answer says %+v, want %q", a.Idle, tt.want)
				}
				if last := a.History[len(a.History)-1]; last.Idle != tt.want {
					t.Errorf("the last reconcile says %q, want %q", last.Idle, tt.want)
				}
			}})
		})
	}
}
