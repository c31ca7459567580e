// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/operate/status"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// pauseWeb pauses web by its annotation.
func pauseWeb(s *scene.Stage) {
	s.T.Helper()
	s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
		notes := maps.Clone(o.GetAnnotations())
		if notes == nil {
			notes = map[string]string{}
		}
		notes["op.handwerk.dev/paused"] = "while we move"
		o.SetAnnotations(notes)
	})
	s.Settle()
}

// inOps gives the operator the namespace in which its pause is declared.
func inOps(s *scene.Stage) {
	s.T.Helper()
	s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: ops}}`)
	s.Adjust = append(s.Adjust, func(e *engine.Settings) { e.Namespace = scene.OpsNamespace })
}

// pauseOperator pauses the operator.
func pauseOperator(s *scene.Stage) {
	s.T.Helper()
	s.Settle()
	s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: op-paused, namespace: ops}, data: {reason: "while we move", by: alice}}`)
	s.Settle()
}

// TestWhyOfAPausedObject holds what is said of a paused object beside the pause.
func TestWhyOfAPausedObject(t *testing.T) {
	for name, tt := range map[string]struct {
		operator   func(foo *dsl.Resource, j *kit.Journal)
		then       func(s *scene.Stage)
		want, lack string
	}{
		"its daemons do not run": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Daemon("watch", func(ctx context.Context, _ *dsl.DaemonRequest) error {
				<-ctx.Done()
				return nil
			})
		}, nil, "daemon watch does not run", ""},
		"a handler holds its deletion": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnDelete("left", scene.Succeeds)
		}, (*scene.Stage).Remove, "held by handler left", ""},
		"its machine has a state": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnDelete("left", scene.Succeeds)
			foo.Machine(dsl.Machine{States: []dsl.State{{Name: "A", Terminal: true}}})
		}, (*scene.Stage).Remove, "machine machine is in state A", ""},
		"the time for the next attempt, which has passed, is not promised": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnReconcile("app", scene.RetriesAfter(time.Minute))
		}, func(s *scene.Stage) { s.Advance(time.Hour) }, "handler app failed", "tried again at"},
		"what a handler waited for is named": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnReconcile("app", scene.Fails(dsl.Waiting("the moon", time.Minute)))
		}, func(s *scene.Stage) { s.Advance(time.Hour) }, "handler app waits for the moon", "tried again at"},
	} {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: tt.operator, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(10 * time.Second)
				pauseWeb(s)
				if tt.then != nil {
					tt.then(s)
					s.Settle()
				}
				got := answer(s)
				if !strings.Contains(got, tt.want) || tt.lack != "" && strings.Contains(got, tt.lack) {
					t.Errorf("want %q and not %q:\n%s", tt.want, tt.lack, got)
				}
			}})
		})
	}
}

// TestAPauseThatBeginsDuringAPass holds what is said of a handler that the pause has kept from running in a reconcile that had begun.
func TestAPauseThatBeginsDuringAPass(t *testing.T) {
	for name, first := range map[string]bool{"at its creation": true, "at a change": false} {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, _ *kit.Journal) {
				foo.Ready = new(true)
				foo.OnReconcile("slow", scene.TakesTime(time.Minute))
				foo.OnReconcile("after", scene.Succeeds)
			}, Play: func(s *scene.Stage) {
				s.Update(scene.CRDs, "", "foos.example.com", scene.AddConditions)
				inOps(s)
				s.Launch()
				s.Create(scene.Web)
				s.Settle()
				if !first {
					s.Advance(10 * time.Minute)
					s.Resize(2)
					s.Settle()
				}
				pauseOperator(s)
				s.Advance(time.Hour)
				if c := scene.Condition(s.Web(), "Ready"); c != nil && c["status"] == "True" && c["observedGeneration"] == s.Web().GetGeneration() {
					t.Errorf("handler after has not run, and Ready says %v", c)
				}
				now, err := s.Process.Engine().Ask(context.Background(), "status", nil)
				if err != nil {
					t.Fatal(err)
				}
				if got := now.(*status.Status).Resources[0].Health; got["ready"] > 0 {
					t.Errorf("handler after has not run, and the object stands as %v", got)
				}
				wantLine(s, answerTo(s, history), "handler after does not run: the operator is paused by alice: while we move")
			}})
		})
	}
}
