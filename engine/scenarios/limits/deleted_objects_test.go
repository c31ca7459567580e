// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package limits_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/decide/limits"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// inOps has the operator keep its record in a namespace, as a deployed one does.
func inOps(s *engine.Settings) { s.Namespace = scene.OpsNamespace }

// launch creates so many objects and launches the operator.
func launch(s *scene.Stage, objects int) {
	s.T.Helper()
	s.Adjust = append(s.Adjust, inOps)
	s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: ops}}`)
	s.Launch()
	for i := range objects {
		s.Create(fmt.Sprintf("{apiVersion: example.com/v1, kind: Foo, metadata: {name: foo-%d}}", i))
	}
	s.Advance(2 * time.Minute) // new objects do not count
	s.Forget()
}

// removeAll deletes so many objects.
func removeAll(s *scene.Stage, objects int) {
	s.T.Helper()
	for i := range objects {
		s.Delete(scene.Foos, "default", fmt.Sprint("foo-", i))
	}
	s.Settle()
}

// release releases deletions, as operator release does.
func release(s *scene.Stage, all ...limits.Release) {
	s.T.Helper()
	text, err := json.Marshal(all)
	if err != nil {
		s.T.Fatal(err)
	}
	s.Apply("person", map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "op-deletions", "namespace": scene.OpsNamespace},
		"data": map[string]any{limits.ReleasedKey: string(text)},
	})
}

// wantMost fails the test if more than so many of the times are within a minute.
func wantMost(t *testing.T, times []time.Time, most int) {
	t.Helper()
	slices.SortFunc(times, time.Time.Compare)
	for i := most; i < len(times); i++ {
		if times[i].Sub(times[i-most]) < time.Minute {
			t.Errorf("deletions %d to %d began within a minute: %s, %s", i-most+1, i+1, times[i-most].Format(time.TimeOnly), times[i].Format(time.TimeOnly))
			return
		}
	}
}

// began returns how many delete handlers have run by the time that the record is written, and forgets them.
func began(s *scene.Stage) int {
	s.Advance(5 * time.Second)
	return len(s.Take())
}

// leaves declares a delete handler.
func leaves(foo *dsl.Resource, j *kit.Journal) { foo.OnDelete("left", j.Note("left")) }

// checkOf returns the message of the check about deletions; empty for none.
func checkOf(s *scene.Stage) string {
	for _, c := range s.Process.Engine().Ready() {
		if strings.HasPrefix(c.Name, "deletions/") {
			return c.Name + ": " + c.Message
		}
	}
	return ""
}

// TestADeletionOfMostObjectsIsHeld holds that the delete handlers of many objects wait for a person, and that none is
// lost.
func TestADeletionOfMostObjectsIsHeld(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"of 700 objects no more than 100 go before a person has released them": {Operator: leaves, Play: func(s *scene.Stage) {
			launch(s, 700)
			removeAll(s, 700)
			first := began(s)
			if first == 0 || first > 100 {
				s.T.Errorf("%d delete handlers began", first)
			}
			s.Advance(24 * time.Hour)
			if n := began(s); n != 0 {
				s.T.Errorf("%d delete handlers began without a release", n)
			}
			if got := checkOf(s); !strings.Contains(got, fmt.Sprintf("deletions/foos.v1.example.com/Foo/deletion: %[1]d of %[1]d Foo in default wait since ", 700-first)) || !strings.HasSuffix(got, "operator release lets them go") {
				s.T.Errorf("the check says %q", got)
			}
			release(s, limits.Release{Resource: "foos", Until: time.Now().Add(10 * time.Minute), By: "jane"})
			s.Advance(2 * time.Minute)
			if n := began(s); n != 700-first {
				s.T.Errorf("%d delete handlers began after the release", n)
			}
			if left := s.List(scene.Foos, "default"); len(left) > 0 {
				s.T.Errorf("%d objects are left", len(left))
			}
			if got := checkOf(s); got != "" {
				s.T.Errorf("the check says %q", got)
			}
		}},
		"the deletion of some objects goes on at once": {Operator: leaves, Play: func(s *scene.Stage) {
			launch(s, 40)
			removeAll(s, 12)
			if n := began(s); n != 12 {
				s.T.Errorf("%d delete handlers began", n)
			}
		}},
		"few objects have no share": {Operator: leaves, Play: func(s *scene.Stage) {
			launch(s, dsl.MinimumShared-1)
			removeAll(s, dsl.MinimumShared-1)
			if n := began(s); n != dsl.MinimumShared-1 {
				s.T.Errorf("%d delete handlers began", n)
			}
		}},
		"a release of another cause or resource releases nothing": {Operator: leaves, Play: func(s *scene.Stage) {
			launch(s, 40)
			removeAll(s, 40)
			if n := began(s); n != 10 {
				s.T.Errorf("%d delete handlers began", n)
			}
			release(s, limits.Release{Resource: "bars", Until: time.Now().Add(time.Hour)}, limits.Release{Cause: limits.Selector, Until: time.Now().Add(time.Hour)})
			s.Advance(time.Hour)
			if n := began(s); n != 0 {
				s.T.Errorf("%d delete handlers began", n)
			}
			release(s, limits.Release{Cause: limits.Deleted, Until: time.Now().Add(time.Hour)})
			s.Advance(2 * time.Minute)
			if n := began(s); n != 30 {
				s.T.Errorf("%d delete handlers began after the release", n)
			}
		}},
		"a restarted process holds what the process before it has held": {Operator: leaves, Play: func(s *scene.Stage) {
			launch(s, 100)
			removeAll(s, 100)
			if n := began(s); n != 10 {
				s.T.Errorf("%d delete handlers began", n)
			}
			for range 5 {
				s.Advance(90 * time.Second)
				s.Process.Restart()
				s.Advance(time.Second)
			}
			s.Advance(time.Hour)
			if n := began(s); n != 0 {
				s.T.Errorf("%d delete handlers began after restarts", n)
			}
			release(s, limits.Release{Until: time.Now().Add(time.Hour)})
			s.Advance(2 * time.Minute)
			if n := began(s); n != 90 {
				s.T.Errorf("%d delete handlers began after the release", n)
			}
		}},
	})
}

// TestDeletionsTakeTurns holds that no more deletions begin in any minute than the limit allows, also over a crash.
func TestDeletionsTakeTurns(t *testing.T) {
	paced := func(foo *dsl.Resource, j *kit.Journal) {
		foo.Limits = &dsl.Limits{Deletions: dsl.DeletionLimits{PerMinute: 20, Share: dsl.Unlimited}}
		leaves(foo, j)
	}
	gone := func(s *scene.Stage) (times []time.Time) {
		for _, w := range s.Writes() {
			if w.Resource == "foos" && w.Verb == "patch" {
				times = append(times, w.At)
			}
		}
		return times
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"a process that goes on": {Operator: paced, Play: func(s *scene.Stage) {
			launch(s, 100)
			removeAll(s, 100)
			s.Advance(5 * time.Minute)
			times := gone(s)
			if wantMost(s.T, times, 20); len(times) != 100 {
				s.T.Errorf("%d of 100 objects have gone in five minutes", len(times))
			}
		}},
		"processes that crash": {Operator: paced, Play: func(s *scene.Stage) {
			launch(s, 100)
			removeAll(s, 100)
			var times []time.Time
			for i := range 40 {
				s.Advance(time.Duration(3+i*7%31) * time.Second)
				times = append(times, gone(s)...)
				s.Process.Kill()
				s.Process.Restart()
			}
			s.Advance(20 * time.Minute)
			times = append(times, gone(s)...)
			if wantMost(s.T, times, 20); len(times) != 100 {
				s.T.Errorf("%d of 100 objects have gone", len(times))
			}
		}},
	})
}

// TestADeletionThatHasBegunGoesOnAfterARestart holds that objects whose delete handlers take long are counted once, and
// not again by the next process.
func TestADeletionThatHasBegunGoesOnAfterARestart(t *testing.T) {
	var called sync.Map
	var open atomic.Bool
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
		foo.OnDelete("left", func(_ context.Context, r *dsl.Request) error {
			called.Store(r.Object.GetName(), true)
			if open.Load() {
				return nil
			}
			return dsl.Temporary(errors.New("not yet"), time.Minute)
		})
	}, Play: func(s *scene.Stage) {
		launch(s, 40)
		for _, from := range []int{0, 12, 19} {
			for i := from; i < from+7; i++ {
				s.Delete(scene.Foos, "default", fmt.Sprint("foo-", i))
			}
			s.Advance(5 * time.Minute)
		}
		calls := 0
		called.Range(func(any, any) bool { calls++; return true })
		if got := checkOf(s); got != "" || calls != 21 {
			s.T.Errorf("before: handlers of %d objects, check %s", calls, got)
		}
		s.Process.Restart()
		s.Advance(5 * time.Minute)
		if got := checkOf(s); got != "" {
			s.T.Errorf("after restart: %s", got)
		}
		open.Store(true)
		s.Advance(10 * time.Minute)
		if left := len(s.List(scene.Foos, "default")); left != 19 {
			s.T.Errorf("%d left", left)
		}
	}})
}

// TestAPauseLetsNoDeletionGo holds that objects whose deletion is held still count while some or all of them are paused.
func TestAPauseLetsNoDeletionGo(t *testing.T) {
	for _, n := range []int{60, 100} {
		t.Run(fmt.Sprint(n, " objects"), func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: leaves, Play: func(s *scene.Stage) {
				launch(s, 100)
				removeAll(s, 100)
				began(s)
				left := s.List(scene.Foos, "default")
				for _, o := range left[:min(n, len(left))] {
					s.Update(scene.Foos, "default", o.GetName(), func(o *unstructured.Unstructured) {
						o.SetAnnotations(map[string]string{"op.handwerk.dev/paused": ""})
					})
				}
				s.Advance(time.Hour)
				if n := began(s); n != 0 {
					s.T.Errorf("%d began while others were paused", n)
				}
				for _, o := range s.List(scene.Foos, "default") {
					s.Update(scene.Foos, "default", o.GetName(), func(o *unstructured.Unstructured) { o.SetAnnotations(nil) })
				}
				s.Advance(time.Hour)
				if n := began(s); n != 0 {
					s.T.Errorf("%d began after the pause", n)
				}
			}})
		})
	}
}
