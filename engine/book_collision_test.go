// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// same returns a resource with two handlers that make a ConfigMap of the name that is given for each.
func same(one, two string) string {
	child := func(name, text string) string {
		return `{apiVersion: v1, kind: ConfigMap, metadata: {name: "` + name + `"}, data: {from: ` + text + `}}`
	}
	return `{resource: foos.v1.example.com, resync: 1m, handlers: [{id: first, apply: {settings: ` + child(one, "one") + `}},
		{id: second, apply: {limits: ` + child(two, "two") + `}}]}`
}

// TestOneChildHasOneHandler holds that two handlers do not make one object and undo each other's work.
func TestOneChildHasOneHandler(t *testing.T) {
	t.Run("where names say so, it is a fault of the configuration", func(t *testing.T) {
		_, err := parse(same("shared", "shared"))
		if err == nil || !strings.Contains(err.Error(), "first") || !strings.Contains(err.Error(), "second") {
			t.Errorf("the error is %v, want one that names both handlers", err)
		}
		for name, resource := range map[string]string{
			"other names":                 same("one", "two"),
			"names that are worked out":   same("${self.spec.one}", "${self.spec.two}"),
			"one that may be the same":    same("shared", "${self.spec.two}"),
			"a kind or namespace besides": strings.Replace(same("shared", "shared"), "ConfigMap", "Secret", 1),
		} {
			if _, err := parse(resource); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	// quarrel has both look again and again, and checks that nothing is written any more.
	quarrel := func(s *stage) {
		s.Launch()
		s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 1, one: shared, two: shared}}`)
		s.Advance(10 * time.Minute)
		before := s.Get(configMaps, "default", "shared")
		s.Forget()
		s.Advance(20 * time.Minute)
		if n := len(s.Writes()); n > 0 {
			s.t.Errorf("in twenty looks there are %d writes", n)
		}
		after := s.Get(configMaps, "default", "shared")
		if value(before, "data.from") != "one" || value(after, "data.from") != "one" {
			s.t.Errorf("the first handler's child is %v, and then %v", value(before, "data"), value(after, "data"))
		}
	}
	t.Run("where names come out the same, the second one is told", func(t *testing.T) {
		written(t, same("${self.spec.one}", "${self.spec.two}"), func(s *stage) {
			quarrel(s)
			told := false
			for _, e := range s.Events() {
				told = told || e.Type == "Warning" && e.Reason == "NameCollision" && strings.Contains(e.Note, "shared")
			}
			if !told {
				s.t.Errorf("no Event tells of it: %v", s.Events())
			}
		})
	})
	t.Run("so it is in Go", func(t *testing.T) {
		making := func(text string) dsl.Func {
			return func(c ctx, r *dsl.Request) error {
				_, err := r.Children.Apply(c, map[string]any{
					"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "shared"}, "data": map[string]any{"from": text},
				})
				return err
			}
		}
		perform(t, scenario{func(foo *dsl.Resource, _ *journal) {
			foo.Owns(configMaps)
			foo.Resync = time.Minute
			foo.OnReconcile("first", making("one"), dsl.Retries(1))
			foo.OnReconcile("second", making("two"), dsl.Retries(1))
		}, func(s *stage) {
			quarrel(s)
			s.warned("second")
		}})
	})
}
