// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package writes_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestWritesAreAsManyAsThePageForKopfSays counts the writes for one object in situations of kopf's, and holds that
// docs/from-kopf.md says as many. Status is a subresource; Events are not counted.
func TestWritesAreAsManyAsThePageForKopfSays(t *testing.T) {
	page, err := os.ReadFile("../../../docs/from-kopf.md")
	if err != nil {
		t.Fatal(err)
	}
	minute := dsl.Temporary(scene.ErrAgain, time.Minute)
	made := func(s *scene.Stage) { s.Create(scene.Web) }
	status := func(_ context.Context, r *dsl.Request) error { r.Patch.SetStatus("n", 1); return nil }
	tests := map[string]struct {
		operator func(foo *dsl.Resource, j *kit.Journal)
		// play is what is counted, on a stage with an object where begun is set.
		play  func(s *scene.Stage)
		begun bool
		want  int
	}{
		"a handler with three sub-handlers": {func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("all", scene.DeclaresSubHandlers(j, nil, nil, "a", "b", "c"))
		}, made, false, 1},
		"a patch of body and status, by values and functions": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnCreate("all", func(_ context.Context, r *dsl.Request) error {
				r.Patch.Label("a", "b")
				r.Patch.SetStatus("n", 1)
				r.Patch.Transform(func(o *unstructured.Unstructured) error {
					o.SetAnnotations(map[string]string{"a": "b"})
					return unstructured.SetNestedField(o.Object, "x", "status", "text")
				})
				return nil
			})
		}, made, false, 2},
		"a creation that patches the spec, beside an update handler": {func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("make", func(_ context.Context, r *dsl.Request) error { r.Patch.Set("spec.size", 2); return nil })
			foo.OnUpdate("adapt", j.Note("adapt"))
		}, made, false, 1},
		"a wait of an hour": {func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("late", j.Note("late", scene.Fails(dsl.Temporary(scene.ErrAgain, time.Hour)), nil))
		}, func(s *scene.Stage) { s.Create(scene.Web); s.Advance(2 * time.Hour) }, false, 2},
		"a deletion, retried after a minute": {func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnDelete("leave", j.Note("leave", scene.Fails(minute), nil))
		}, func(s *scene.Stage) { s.Remove(); s.Advance(time.Hour) }, true, 2},
		"ten runs of a timer with one result": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Every(time.Minute, "beat", status, dsl.InitialDelay(0))
		}, func(s *scene.Stage) { s.Create(scene.Web); s.Advance(10 * time.Minute) }, false, 1},
		"a daemon: first sight": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Daemon("watch", func(c context.Context, _ *dsl.DaemonRequest) error { <-c.Done(); return nil })
		}, made, false, 1},
		"five handlers, one by one": {func(foo *dsl.Resource, j *kit.Journal) {
			foo.Lifecycle = dsl.OneByOne
			for i := range 5 {
				foo.OnReconcile(fmt.Sprint("h", i), func(_ context.Context, r *dsl.Request) error { r.Patch.SetStatus(fmt.Sprint("n", i), 1); return nil })
			}
		}, made, false, 5},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: test.operator, Play: func(s *scene.Stage) {
				if s.Launch(); test.begun {
					s.Create(scene.Web)
					s.Settle()
					s.Forget()
				}
				test.play(s)
				s.Settle()
				var writes []string
				for _, w := range s.Writes() {
					if strings.Contains(w.String(), " foos") && !strings.Contains(w.String(), "create foos ") {
						writes = append(writes, w.String())
					}
				}
				if len(writes) != test.want {
					s.T.Errorf("%d writes, want %d: %v", len(writes), test.want, writes)
				}
			}})
			said := false
			for line := range strings.Lines(string(page)) {
				cells := strings.Split(line, "|")
				said = said || len(cells) == 5 && strings.TrimSpace(cells[1]) == name && strings.TrimSpace(cells[3]) == fmt.Sprint(test.want)
			}
			if !said {
				t.Errorf("docs/from-kopf.md has no row %q with %d", name, test.want)
			}
		})
	}
}
