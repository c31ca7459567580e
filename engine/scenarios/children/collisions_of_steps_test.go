// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// twoHandlers returns a resource with two handlers that make a ConfigMap of the name that is given for each.
func twoHandlers(one, two string) string {
	child := func(name, text string) string {
		return `{apiVersion: v1, kind: ConfigMap, metadata: {name: "` + name + `"}, data: {from: ` + text + `}}`
	}
	return `{resource: foos.v1.example.com, resync: 1m, handlers: [{id: first, apply: {settings: ` + child(one, "one") + `}},
		{id: second, apply: {limits: ` + child(two, "two") + `}}]}`
}

// TestOneChildHasOneHandler holds that two handlers do not make one object and undo each other's work.
func TestOneChildHasOneHandler(t *testing.T) {
	t.Run("where names say so, it is a fault of the configuration", func(t *testing.T) {
		_, err := scene.ParseYAML(twoHandlers("shared", "shared"))
		if err == nil || !strings.Contains(err.Error(), "first") || !strings.Contains(err.Error(), "second") {
			t.Errorf("the error is %v, want one that names both handlers", err)
		}
		for name, resource := range map[string]string{
			"other names":                 twoHandlers("one", "two"),
			"names that are worked out":   twoHandlers("${self.spec.one}", "${self.spec.two}"),
			"one that may be the same":    twoHandlers("shared", "${self.spec.two}"),
			"a kind or namespace besides": strings.Replace(twoHandlers("shared", "shared"), "ConfigMap", "Secret", 1),
		} {
			if _, err := scene.ParseYAML(resource); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	// quarrel has both look again and again, and checks that nothing is written any more.
	quarrel := func(s *scene.Stage) {
		s.Launch()
		s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 1, one: shared, two: shared}}`)
		s.Advance(10 * time.Minute)
		before := s.Get(scene.ConfigMaps, "default", "shared")
		s.Forget()
		s.Advance(20 * time.Minute)
		if n := len(s.Writes()); n > 0 {
			s.T.Errorf("in twenty looks there are %d writes", n)
		}
		after := s.Get(scene.ConfigMaps, "default", "shared")
		if scene.ValueAt(before, "data.from") != "one" || scene.ValueAt(after, "data.from") != "one" {
			s.T.Errorf("the first handler's child is %v, and then %v", scene.ValueAt(before, "data"), scene.ValueAt(after, "data"))
		}
	}
	t.Run("where names come out the same, the second one is refused", func(t *testing.T) {
		scene.PlayYAML(t, twoHandlers("${self.spec.one}", "${self.spec.two}"), func(s *scene.Stage) {
			quarrel(s)
			reported := false
			for _, e := range s.Events() {
				reported = reported || e.Type == "Warning" && e.Reason == "NameCollision" && strings.Contains(e.Note, "shared")
			}
			if !reported {
				s.T.Errorf("no Event reports it: %v", s.Events())
			}
		})
	})
	t.Run("so it is in Go", func(t *testing.T) {
		making := func(text string) dsl.Func {
			return func(c context.Context, r *dsl.Request) error {
				_, err := r.Children.Apply(c, map[string]any{
					"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "shared"}, "data": map[string]any{"from": text},
				})
				return err
			}
		}
		scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.Resync = time.Minute
			foo.OnReconcile("first", making("one"), dsl.Retries(1))
			foo.OnReconcile("second", making("two"), dsl.Retries(1))
		}, Play: func(s *scene.Stage) {
			quarrel(s)
			s.WantWarning("second")
		}})
	})
}
