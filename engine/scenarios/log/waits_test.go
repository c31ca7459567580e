// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package log_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestALongWaitIsLoggedWithItsEnd holds what the log says of handlers that wait: a line after ten seconds, though nothing
// happens, and one when it is over.
func TestALongWaitIsLoggedWithItsEnd(t *testing.T) {
	// waits is a handler that waits for these, one after the other.
	waits := func(reasons ...string) dsl.Func {
		return func(_ context.Context, _ *dsl.Request) error {
			if len(reasons) == 0 {
				return nil
			}
			reason := reasons[0]
			if len(reasons) > 1 || reason == "" {
				reasons = reasons[1:]
			}
			if reason == "" {
				return nil
			}
			return dsl.Waiting(reason, 20*time.Second)
		}
	}
	one := func(reasons ...string) func(*dsl.Resource, *kit.Journal) {
		return func(foo *dsl.Resource, _ *kit.Journal) { foo.OnReconcile("app", waits(reasons...)) }
	}
	line := func(handler, text string) string {
		return fmt.Sprintf(`^"level"=0 "msg"="%s" "resource"="foos.v1.example.com" "namespace"="default" "name"="web" "handler"="%s"`, text, handler)
	}
	over := func(handler, text, lasted string) string {
		return line(handler, "no longer "+text) + ` "lasted"="` + lasted + `"$`
	}
	tests := map[string]struct {
		define func(*dsl.Resource, *kit.Journal)
		play   func(s *scene.Stage, log func() []string)
	}{
		"it comes though no event does, once however long it lasts": {one("the moon"), func(s *scene.Stage, log func() []string) {
			s.Advance(9 * time.Second)
			s.WantLines(log)
			s.Advance(time.Second)
			s.WantLines(log, line("app", "waits for the moon")+"$")
			s.Advance(time.Hour)
			s.WantLines(log)
		}},
		"its end has a line": {one("the moon", "the moon", ""), func(s *scene.Stage, log func() []string) {
			s.Advance(time.Minute)
			s.WantLines(log, line("app", "waits for the moon"), over("app", "waits for the moon", "40s"))
		}},
		"one that is short has none": {one("the moon", ""), func(s *scene.Stage, log func() []string) {
			s.Advance(9 * time.Second)
			s.Resize(2)
			s.Advance(time.Hour)
			s.WantLines(log)
		}},
		"what is waited for next has one ten seconds later": {one("the moon", "Mars"), func(s *scene.Stage, log func() []string) {
			s.Advance(29 * time.Second)
			s.WantLines(log, line("app", "waits for the moon"))
			s.Advance(time.Second)
			s.WantLines(log, line("app", "waits for Mars"))
			s.Advance(time.Hour)
			s.WantLines(log)
		}},
		"what is waited for changes all the time, which is said ever more seldom": {func(foo *dsl.Resource, _ *kit.Journal) {
			n := 0
			foo.OnReconcile("app", func(context.Context, *dsl.Request) error {
				n++
				return dsl.Waiting(fmt.Sprintf("number %d", n), 20*time.Second)
			})
		}, func(s *scene.Stage, log func() []string) {
			s.Advance(time.Hour)
			if got := log(); len(got) < 5 || len(got) > 10 {
				s.T.Errorf("%d lines in an hour:\n%s", len(got), strings.Join(got, "\n"))
			}
		}},
		"one that fails after a while waits no more": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnReconcile("app", func(_ context.Context, r *dsl.Request) error {
				if r.Object.GetGeneration() > 1 {
					return dsl.Permanent(scene.ErrAgain)
				}
				return dsl.Waiting("the moon", time.Hour)
			})
		}, func(s *scene.Stage, log func() []string) {
			s.Advance(30 * time.Second)
			s.Resize(2)
			s.WantLines(log, line("app", "waits for the moon"), "handler failed for good", over("app", "waits for the moon", "30s"))
		}},
		"one whose object goes waits no more": {one("the moon"), func(s *scene.Stage, log func() []string) {
			s.Advance(30 * time.Second)
			s.Remove()
			s.WantLines(log, line("app", "waits for the moon"), over("app", "waits for the moon", "30s"))
		}},
		"a handler that comes after one that waits": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnReconcile("app", waits("the moon", "the moon", ""))
			foo.OnReconcile("next", scene.Succeeds, dsl.After("app"))
		}, func(s *scene.Stage, log func() []string) {
			s.Advance(time.Minute)
			s.WantLines(log, line("app", "waits for the moon"), line("next", "waits for handler app"),
				over("app", "waits for the moon", "40s"), over("next", "waits for handler app", "40s"))
		}},
		"a handler that comes after one that fails": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnReconcile("app", scene.Fails(dsl.Permanent(scene.ErrAgain)))
			foo.OnReconcile("next", scene.Succeeds, dsl.After("app"))
		}, func(s *scene.Stage, log func() []string) {
			s.Advance(time.Minute)
			s.WantLines(log, "handler failed for good", line("next", "waits for handler app"))
		}},
		"sub-handlers that fail have said so themselves": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnReconcile("all", func(_ context.Context, r *dsl.Request) error {
				r.Handle("a", scene.Fails(scene.ErrAgain), dsl.WithBackoff(time.Hour, time.Hour))
				return nil
			})
		}, func(s *scene.Stage, log func() []string) {
			s.Advance(time.Minute)
			s.WantLines(log, "handler will be tried again")
		}},
		"a delete handler": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnDelete("farewell", scene.Fails(dsl.Waiting("the bank", time.Hour)))
		}, func(s *scene.Stage, log func() []string) {
			s.Remove()
			s.Advance(time.Minute)
			s.WantLines(log, line("farewell", "waits for the bank"))
		}},
		"a schedule, which has no object": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Schedule(dsl.Timing{Every: time.Second}, "sweep", scene.Fails(dsl.Waiting("the moon", time.Hour)))
		}, func(s *scene.Stage, log func() []string) {
			s.Advance(time.Minute)
			s.WantLines(log, `"msg"="waits for the moon" "resource"="foos.v1.example.com" "handler"="sweep"$`)
		}},
		"text of several lines is one": {one("the moon\nand the stars"), func(s *scene.Stage, log func() []string) {
			s.Advance(time.Minute)
			s.WantLines(log, line("app", "waits for the moon and the stars"))
		}},
		"a process that begins again says it once more": {one("the moon"), func(s *scene.Stage, log func() []string) {
			s.Advance(time.Minute)
			s.WantLines(log, line("app", "waits for the moon"))
			s.Process.Restart()
			s.Advance(time.Hour)
			s.WantLines(log, "operator stops", "operator stopped", "operator starts", line("app", "waits for the moon"))
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: tt.define, Play: func(s *scene.Stage) {
				log := scene.LaunchWithLog(s, "")
				log()
				s.Create(scene.Web)
				s.Settle()
				tt.play(s, log)
			}})
		})
	}
}

// TestAnApplyThatWaitsSaysForWhat holds that the log names what an apply waits for.
func TestAnApplyThatWaitsSaysForWhat(t *testing.T) {
	tests := map[string]struct{ resource, want string }{
		"a related object": {`{resource: foos.v1.example.com, owns: [configmaps.v1], related: [{name: pull, resource: secrets.v1, namespace: platform, object: registry-pull}], handlers: [
			{id: app, apply: {web: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {registry: "${related.pull.metadata.labels.registry}"}}}}]}`,
			`waits for Secret platform/registry-pull to exist \(needed by child web\)`},
		"a child that is not ready": {`{resource: foos.v1.example.com, owns: [deployments.v1.apps], handlers: [
			{id: app, apply: {web: {readyWhen: "${child.?status.?readyReplicas.orValue(0) > 0}", template: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1}}}}}]}`,
			"waits for Deployment default/web to be ready"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayYAML(t, tt.resource, func(s *scene.Stage) {
				log := scene.LaunchWithLog(s, "waits")
				log()
				s.Create(scene.Web)
				s.Advance(10 * time.Second)
				s.WantLines(log, `"msg"="`+tt.want+`" "resource"="foos.v1.example.com" "namespace"="default" "name"="web" "handler"="app"$`)
			})
		})
	}
}

// TestReadyzNamesObjectsThatAreNotReady holds the lines of objects that wait, fail or are held: the oldest ones first.
func TestReadyzNamesObjectsThatAreNotReady(t *testing.T) {
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnReconcile("depends", func(_ context.Context, r *dsl.Request) error {
				switch name, _, _ := strings.Cut(r.Object.GetName(), "-"); name {
				case "fails":
					return dsl.Temporary(scene.ErrAgain, time.Hour)
				case "lost":
					return dsl.Permanent(scene.ErrAgain)
				case "waits":
					return dsl.Waiting("Secret platform/registry-pull", time.Hour)
				}
				return nil
			})
			foo.OnReconcile("next", scene.Succeeds, dsl.After("depends"))
			foo.OnReconcile("picky", scene.Succeeds, dsl.When(func(r *dsl.Subject) (bool, error) {
				if r.Object.GetName() == "puzzles" {
					return false, errors.New("no such key")
				}
				return true, nil
			}))
			foo.OnDelete("farewell", scene.Fails(dsl.Permanent(scene.ErrAgain)))
		},
		Play: func(s *scene.Stage) {
			s.Launch()
			create := func(name string) {
				s.Create(strings.Replace(scene.Web, "name: web", "name: "+name, 1))
				s.Advance(time.Second)
			}
			for _, name := range []string{"ready", "fails", "lost", "puzzles", "held"} {
				create(name)
			}
			for i := range 22 {
				create(fmt.Sprintf("waits-%02d", i))
			}
			s.Delete(scene.Foos, "default", "held")
			s.Advance(time.Second)
			got := scene.NotReadyObjects(s)
			want := []string{
				"[+]waiting/foos.v1.example.com ok: 22 objects; the 20 of the longest time follow, 2 more do not",
				"[+]waiting/foos.v1.example.com/default/waits-00 ok: for 23s: handler depends waits for Secret platform/registry-pull; handler next waits for handler depends",
				"[+]waiting/foos.v1.example.com/default/waits-19 ok: for 4s: handler depends waits for Secret platform/registry-pull; handler next waits for handler depends",
				"[!]failing/foos.v1.example.com degraded: 3 objects",
				"[!]failing/foos.v1.example.com/default/fails degraded: for 27s: handler depends is tried again: not yet; handler next waits for handler depends",
				"[!]failing/foos.v1.example.com/default/lost degraded: for 26s: handler depends failed for good: not yet; handler next waits for handler depends",
				"[!]failing/foos.v1.example.com/default/puzzles degraded: for 25s: handler picky filter failed: no such key",
				"[!]held/foos.v1.example.com degraded: 1 object",
				"[!]held/foos.v1.example.com/default/held degraded: for 1s: handler farewell failed for good: not yet",
			}
			if diff := cmp.Diff(want, slices.Delete(slices.Clone(got), 2, 20)); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		},
	})
}

// TestReadyzNamesPassesThatFail holds the line of an object whose write fails, and that it goes.
func TestReadyzNamesPassesThatFail(t *testing.T) {
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, _ *kit.Journal) { foo.OnReconcile("status", scene.ReportsSeen) },
		Play: func(s *scene.Stage) {
			s.Launch()
			failing := apierrors.NewInternalError(errors.New("no space left"))
			s.FailNext("patch", scene.Foos+"/status", failing, failing, failing, failing)
			s.Create(scene.Web)
			s.Advance(3 * time.Second)
			got := scene.NotReadyObjects(s)
			if len(got) != 2 || !strings.HasPrefix(got[1], "[!]failing/foos.v1.example.com/default/web degraded: for 3s: reconcile could not be finished: ") ||
				!strings.Contains(got[1], "no space left") {
				t.Errorf("lines %q", got)
			}
			s.Advance(time.Hour)
			if got := scene.NotReadyObjects(s); len(got) > 0 {
				t.Errorf("later lines %q", got)
			}
		},
	})
}
