// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/operate/status"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAnOperatorWithALoopingObjectIsNotWell holds that operator status says so by its exit code.
func TestAnOperatorWithALoopingObjectIsNotWell(t *testing.T) {
	labels := func(side string) dsl.Func {
		return func(_ context.Context, r *dsl.Request) error {
			r.Patch.Label("side", side)
			return nil
		}
	}
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, _ *kit.Journal) {
		foo.OnReconcile("left", labels("left"))
		foo.OnReconcile("right", labels("right"))
	}, Play: func(s *scene.Stage) {
		s.Launch()
		s.Create(scene.Web)
		s.Advance(10 * time.Second)
		a, err := s.Process.Engine().Ask(t.Context(), "status", nil)
		if err != nil {
			t.Fatal(err)
		}
		got := a.(*status.Status)
		foos := got.Resources[0]
		if foos.Looping != 1 || got.Healthy() {
			t.Errorf("%d objects loop, and all is well: %v", foos.Looping, got.Healthy())
		}
		if diff := cmp.Diff(map[string]int{"failing": 1}, foos.Health); diff != "" {
			t.Errorf("objects by standing (-want +got):\n%s", diff)
		}
		if why := foos.NotReady; len(why) != 1 || why[0].Name != "default/web" || !slices.Equal(why[0].Why, []string{"its reconciles write again and again; it rests"}) {
			t.Errorf("objects that are not ready: %+v", why)
		}
	}})
}
