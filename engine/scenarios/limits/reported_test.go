// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package limits_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/decide/limits"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
	"github.com/handwerk-dev/handwerk/engine/reconcile/conditions"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAHeldDeletionIsReported holds what people see while a limit holds deletions: in the log, on the objects, in Events
// and in the answer of operator why.
func TestAHeldDeletionIsReported(t *testing.T) {
	scene.PlayWithConditions(t, func(foo *dsl.Resource) { foo.OnDelete("left", scene.Succeeds) }, func(s *scene.Stage) {
		for i := range 40 {
			s.Create(scene.FooIn("default", "foo-"+strings.Repeat("x", i), nil))
		}
		s.Advance(2 * time.Minute)
		for _, o := range s.List(scene.Foos, "default") {
			s.Delete(scene.Foos, "default", o.GetName())
		}
		s.Advance(5 * time.Second)
		left := s.List(scene.Foos, "default")
		if len(left) != 29 {
			s.T.Fatalf("%d of 41 objects are left", len(left))
		}
		const says = "more than 30% of the Foo objects of foos.v1.example.com are to be deleted; operator release lets them go"
		for _, o := range left {
			if got := scene.ConditionMessage(o, conditions.DeletionsHeld); got != "Operator op: "+says {
				s.T.Errorf("the condition of %s says %q", o.GetName(), got)
			}
		}
		events := 0
		for _, e := range s.Events() {
			if e.Reason == conditions.DeletionsHeld {
				if events++; e.Note != "Deletion waits: "+says {
					s.T.Errorf("an Event says %q", e.Note)
				}
			}
		}
		if events != 29 {
			s.T.Errorf("%d Events about 29 objects", events)
		}
		answer, err := s.Process.Engine().Why(context.WithoutCancel(s.T.Context()), why.Question{Resource: "foos", Namespace: "default", Name: left[0].GetName()})
		if err != nil {
			s.T.Fatal(err)
		}
		if want := ": the deletion waits: 29 of 41 Foo objects of foos.v1.example.com are to be deleted (cause deletion), more than limits.deletions.share allows (30%); operator release lets them go"; !strings.HasSuffix(answer.Verdict, want) {
			s.T.Errorf("the verdict is %q", answer.Verdict)
		}
		s.Advance(time.Hour)
		for _, e := range s.Events() {
			if e.Reason == conditions.DeletionsHeld && e.Count != 1 {
				s.T.Errorf("after an hour there is an Event with count %d", e.Count)
			}
		}
	})
}

// TestTheLogSaysOnceWhatIsHeld holds that the log has a line when deletions begin to be held, and one at the end.
func TestTheLogSaysOnceWhatIsHeld(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: leaves, Play: func(s *scene.Stage) {
		s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: ops}}`)
		log := scene.LaunchWithLog(s, "deletions are", inOps)
		for i := range 40 {
			s.Create(scene.FooIn("default", "foo-"+strings.Repeat("x", i), nil))
		}
		s.Advance(2 * time.Minute)
		for _, o := range s.List(scene.Foos, "default") {
			s.Delete(scene.Foos, "default", o.GetName())
		}
		s.Advance(time.Hour)
		s.WantLines(log, `deletions are held: operator release lets them go`)
		release(s, limits.Release{Until: time.Now().Add(time.Hour), By: "jane"})
		s.Advance(3 * time.Minute)
		s.WantLines(log, `deletions are released`, `deletions are no longer held`)
	}})
}

// heldEvents returns how many Events say that deletions are held.
func heldEvents(s *scene.Stage) (n int) {
	for _, e := range s.Events() {
		if e.Reason == conditions.DeletionsHeld {
			n += int(e.Count)
		}
	}
	return n
}

// TestEachHoldHasAnEvent holds that an owner gets an Event each time that a limit begins to hold its deletions.
func TestEachHoldHasAnEvent(t *testing.T) {
	scene.PlayYAML(t, fan, func(s *scene.Stage) {
		begin(s, 100)
		for i := range 3 {
			s.Set([]any{}, "spec", "names")
			s.Advance(10 * time.Minute)
			if n := heldEvents(s); n != i+1 {
				s.T.Errorf("hold %d: %d Events", i+1, n)
			}
			s.Set(names(100), "spec", "names")
			s.Advance(30 * time.Minute)
			if got := checkOf(s) + scene.ConditionMessage(s.Web(), conditions.DeletionsHeld); got != "" {
				s.T.Errorf("hold %d: %s", i+1, got)
			}
		}
	})
}

// TestAReleaseThatCannotBeReadIsLoggedOnce holds that a mistake in a release by hand fills no log, and takes nothing from
// what the operator has recorded.
func TestAReleaseThatCannotBeReadIsLoggedOnce(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: leaves, Play: func(s *scene.Stage) {
		s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: ops}}`)
		log := scene.LaunchWithLog(s, "record of waiting", inOps)
		for i := range 100 {
			s.Create(fmt.Sprintf("{apiVersion: example.com/v1, kind: Foo, metadata: {name: foo-%d}}", i))
		}
		s.Advance(2 * time.Minute)
		s.Forget()
		removeAll(s, 100)
		began(s)
		s.Apply("person", map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "op-deletions", "namespace": scene.OpsNamespace},
			"data": map[string]any{limits.ReleasedKey: `[{"until": "tomorrow"}]`},
		})
		s.Advance(time.Hour)
		if lines := log(); len(lines) != 1 {
			s.T.Errorf("%d lines: %v", len(lines), lines[:min(2, len(lines))])
		}
		s.Process.Restart()
		s.Advance(time.Hour)
		if n := began(s); n != 0 {
			s.T.Errorf("%d delete handlers began after a restart", n)
		}
	}})
}

// TestAReleaseOfAnotherZoneIsLoggedOnce holds that a release by hand may have a time of any zone.
func TestAReleaseOfAnotherZoneIsLoggedOnce(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: leaves, Play: func(s *scene.Stage) {
		s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: ops}}`)
		log := scene.LaunchWithLog(s, "deletions are released", inOps)
		for i := range 100 {
			s.Create(fmt.Sprintf("{apiVersion: example.com/v1, kind: Foo, metadata: {name: foo-%d}}", i))
		}
		s.Advance(2 * time.Minute)
		removeAll(s, 100)
		s.Advance(5 * time.Second)
		release(s, limits.Release{Cause: limits.Selector, Until: time.Now().Add(time.Hour).In(time.FixedZone("IST", 5*3600+1800))})
		s.Advance(time.Hour)
		if lines := log(); len(lines) != 1 {
			s.T.Errorf("%d lines", len(lines))
		}
	}})
}
