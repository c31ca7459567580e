// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package resources_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAnObjectThatFailsLeavesTheIndexUntilItChanges holds that an index has no old value of an object for which its
// function fails, and does not ask again about an object that is still the same, whatever the error asks for.
func TestAnObjectThatFailsLeavesTheIndexUntilItChanges(t *testing.T) {
	fails := map[string]func() error{
		"with an error":             func() error { return errors.New("not yet") },
		"with a temporary error":    func() error { return dsl.Temporary(errors.New("not yet"), time.Second) },
		"with a permanent error":    func() error { return dsl.Permanent(errors.New("not yet")) },
		"by a panic":                func() error { panic("not yet") },
		"by a wait, as handlers do": func() error { return dsl.Waiting("not yet", time.Second) },
	}
	scenarios := map[string]scene.Scenario{
		"several objects, from the start on and until their deletion": {Operator: scene.LooksUp(dsl.Reconcile), Play: func(s *scene.Stage) {
			s.Create(settingsMap("a", "", "x", "broken"))
			s.Create(settingsMap("b", "", "x", "2"))
			s.Create(settingsMap("c", "", "x", "3"))
			s.LaunchWithIndex()
			s.Create(scene.FooWithRef("web", "x"))
			s.Called("web create: 2 3")
			wantIndexHealth(s, "indexed", "default/a: not yet")
			setData(s, "c", "v", "panic")
			s.Called("web index: 2")
			wantIndexHealth(s, "indexed", "default/c: panic: no")
			setData(s, "a", "v", "1")
			s.Called("web index: 1 2")
			s.Delete(scene.ConfigMaps, "default", "c")
			s.Called()
			wantIndexHealth(s, "indexed", "")
		}},
	}
	for name, fail := range fails {
		scenarios[name] = scene.Scenario{Operator: scene.LooksUp(dsl.Reconcile), Play: func(s *scene.Stage) { playFailure(s, fail) }}
	}
	scene.PlayAll(t, scenarios)
}

// playFailure has ConfigMap a fail, once it is in the index, and once more after a restart.
func playFailure(s *scene.Stage, fail func() error) {
	asked := &kit.Journal{}
	s.Operator.Index("owners", scene.ConfigMaps, func(o *unstructured.Unstructured) ([]dsl.Entry, error) {
		if v, _, _ := unstructured.NestedString(o.Object, "data", "v"); v == "broken" {
			asked.Add(o.GetName())
			return nil, fail()
		}
		return scene.ValuesByOwner(o)
	})
	s.Create(settingsMap("a", "", "x", "1"))
	s.Create(settingsMap("b", "", "x", "2"))
	s.Launch()
	s.Create(scene.FooWithRef("web", "x"))
	s.Called("web create: 1 2")
	setData(s, "a", "v", "broken")
	s.Called("web index: 2")
	wantIndexHealth(s, "indexed", "default/a: ")
	s.Advance(time.Hour)
	s.Called()
	if got := strings.Join(asked.Take(), " "); got != "a" {
		s.T.Errorf("the function was asked about %q, want a once", got)
	}
	setData(s, "a", "v", "3")
	s.Called("web index: 3 2")
	wantIndexHealth(s, "indexed", "")
}
