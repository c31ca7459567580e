// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package log_test

import (
	"context"
	"regexp"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAnObjectThatIsHeldBackIsLoggedWithTheEnd holds what the log says of objects whose reconciles do not begin: one line
// when that has lasted, or begins to be a loop, and one when it is over.
func TestAnObjectThatIsHeldBackIsLoggedWithTheEnd(t *testing.T) {
	const web = `"resource"="foos.v1.example.com" "namespace"="default" "name"="web"`
	parks := func(foo *dsl.Resource, _ *kit.Journal) {
		foo.Owns(scene.Deployments)
		foo.OnReconcile("child", scene.KeepsDeployment)
	}
	loops := func(foo *dsl.Resource, _ *kit.Journal) {
		for _, side := range []string{"left", "right"} {
			foo.OnReconcile(side, func(_ context.Context, r *dsl.Request) error {
				if r.Object.GetAnnotations()["mended"] == "" {
					r.Patch.Label("side", side)
				}
				return nil
			})
		}
	}
	// parked resizes the object twice, so that the second reconcile waits for the write of the first.
	parked := func(s *scene.Stage) {
		s.HoldWatches(scene.Deployments)
		s.Resize(2)
		s.Settle()
		s.Resize(3)
		s.Settle()
	}
	behind := "^\"level\"=0 \"msg\"=\"waits for the cache to show the operator's own writes\" " + web + "$"
	shown := func(lasted string) string {
		return "^\"level\"=0 \"msg\"=\"no longer waits for the cache to show the operator's own writes\" " + web + ` "lasted"="` + lasted + `"$`
	}
	const begins, over = `"msg"="object loops: its reconciles write again and again; it rests"`, `^"level"=0 "msg"="no longer looping" ` + web + ` "lasted"="`
	about := regexp.MustCompile(`"msg"="(waits |no longer |object loops)`)
	tests := map[string]struct {
		define func(*dsl.Resource, *kit.Journal)
		play   func(s *scene.Stage, log func() []string)
	}{
		"a cache that is behind has a line after ten seconds, and one when it is not": {parks, func(s *scene.Stage, log func() []string) {
			parked(s)
			s.Advance(9 * time.Second)
			s.WantLines(log)
			s.Advance(time.Second)
			s.WantLines(log, behind)
			s.Advance(20 * time.Second)
			s.ReleaseWatches(scene.Deployments)
			s.WantLines(log, shown("30s"))
		}},
		"one that catches up soon has none": {parks, func(s *scene.Stage, log func() []string) {
			parked(s)
			s.Advance(9 * time.Second)
			s.ReleaseWatches(scene.Deployments)
			s.Advance(time.Hour)
			s.WantLines(log)
		}},
		"one whose object goes meanwhile waits no more": {parks, func(s *scene.Stage, log func() []string) {
			parked(s)
			s.Advance(time.Minute)
			s.WantLines(log, behind)
			s.Remove()
			s.ReleaseWatches(scene.Deployments)
			s.WantLines(log, shown("1m0s"))
		}},
		"a loop has one line, however often it is found again": {loops, func(s *scene.Stage, log func() []string) {
			s.Advance(time.Hour)
			s.WantLines(log, begins)
		}},
		"a loop that has ended has a line": {loops, func(s *scene.Stage, log func() []string) {
			s.Advance(10 * time.Minute)
			s.WantLines(log, begins)
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{"mended": "yes"}) })
			s.Advance(time.Hour)
			s.WantLines(log, over)
		}},
		"a loop whose object goes has a line": {loops, func(s *scene.Stage, log func() []string) {
			s.Advance(10 * time.Minute)
			s.WantLines(log, begins)
			s.Remove()
			s.WantLines(log, over)
		}},
		"one that begins anew has another one": {loops, func(s *scene.Stage, log func() []string) {
			s.Advance(10 * time.Minute)
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{"mended": "yes"}) })
			s.Advance(time.Hour)
			s.WantLines(log, begins, over)
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetAnnotations(nil) })
			s.Advance(time.Hour)
			s.WantLines(log, begins)
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: tt.define, Play: func(s *scene.Stage) {
				all := scene.LaunchWithLog(s, "")
				s.Create(scene.Web)
				s.Settle()
				tt.play(s, func() []string {
					return slices.DeleteFunc(all(), func(line string) bool { return !about.MatchString(line) })
				})
			}})
		})
	}
}

// TestAnObjectThatWaitsForMemoryIsLoggedWithTheEnd holds the same of an object whose reconcile takes memory that another one holds.
func TestAnObjectThatWaitsForMemoryIsLoggedWithTheEnd(t *testing.T) {
	const web = ` memory that other reconciles hold" "resource"="foos.v1.example.com" "namespace"="default" "name"="web"`
	for name, tt := range map[string]struct {
		other time.Duration
		want  []string
	}{
		"for long": {30 * time.Second, []string{`^"level"=0 "msg"="waits for` + web + "$", `^"level"=0 "msg"="no longer waits for` + web + ` "lasted"="30s"$`}},
		"not long": {9 * time.Second, nil},
	} {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, _ *kit.Journal) {
				foo.OnReconcile("slow", scene.TakesTime(tt.other))
			}, Play: func(s *scene.Stage) {
				var log func() []string
				s.WithLittleMemory(func() { log = scene.LaunchWithLog(s, "memory that other reconciles hold") })
				for _, name := range []string{"other", "web"} {
					s.Create(scene.Large(name))
					s.Settle()
				}
				s.Advance(time.Minute)
				s.WantLines(log, tt.want...)
			}})
		})
	}
}
