// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pause_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAPausedOperator holds what operator pause means beside what each pause does.
func TestAPausedOperator(t *testing.T) {
	all := map[string]scene.Scenario{
		"it writes to no object, and sends no Events": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("sync", j.Note("sync", scene.Reports, scene.Fails(dsl.Permanent(scene.ErrAgain))))
			scene.EachCause(foo, j)
		}, Play: func(s *scene.Stage) {
			s.Update(scene.CRDs, "", "foos.example.com", scene.AddConditions)
			s.Begin()
			before := len(s.Events())
			pauseOperator(s)
			s.Resize(2)
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: other}}`)
			s.Remove()
			s.Advance(time.Hour)
			s.Process.Restart()
			s.Advance(time.Hour)
			s.Wrote()
			s.Called()
			if got := s.Events(); len(got) > before {
				s.T.Errorf("Events %v", got)
			}
		}},
		"new objects are created for their handlers afterwards": {Operator: scene.EachCause, Play: func(s *scene.Stage) {
			s.Launch()
			pauseOperator(s)
			s.Create(scene.Web)
			s.Advance(time.Hour)
			s.Called()
			resumeOperator(s)
			s.Called("made create")
		}},
		"deletions wait": {Operator: scene.EachCause, Play: func(s *scene.Stage) {
			s.Begin()
			pauseOperator(s)
			s.Remove()
			s.Advance(time.Hour)
			s.Called()
			s.WantFinalizers(scene.Finalizer)
			resumeOperator(s)
			s.Called("left delete")
			s.WantGone()
		}},
		"also of what is gone": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnDelete("left", j.Note("left"), dsl.NoFinalizer())
		}, Play: func(s *scene.Stage) {
			s.Begin()
			pauseOperator(s)
			s.Remove()
			s.WantGone()
			s.Called()
			s.Create(scene.Web)
			s.Advance(time.Hour)
			s.Called()
			resumeOperator(s)
			s.Called("left delete")
		}},
		"or deletions go on": {Operator: scene.EachCause, Play: func(s *scene.Stage) {
			s.Begin()
			pauseOperator(s, "deletions: proceed")
			s.Resize(2)
			s.Called()
			s.Remove()
			s.Called("left delete")
			s.WantGone()
		}},
		"a paused object stays paused, and keeps its deletion": {Operator: scene.EachCause, Play: func(s *scene.Stage) {
			s.Begin()
			pauseOperator(s, "deletions: proceed")
			annotate(s, map[string]string{pausedKey: "x"})
			s.Remove()
			s.Called()
			resumeOperator(s)
			s.Called()
			annotate(s, map[string]string{pausedKey: ""})
			s.Called("left delete")
		}},
		"it ends by itself": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Begin()
			pauseOperator(s, "until: "+strconv.Quote(in(2*time.Hour)))
			s.Resize(2)
			s.Advance(2*time.Hour - time.Second)
			s.Called()
			s.Advance(2 * time.Second)
			s.Called("sync update")
			checks(s)
			s.Process.Restart() // the ConfigMap is there still
			s.Called("sync resume")
		}},
		"another end counts from then on": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Begin()
			pauseOperator(s, "until: "+strconv.Quote(in(time.Hour)))
			s.Resize(2)
			s.Update(scene.ConfigMaps, scene.OpsNamespace, "op-paused", scene.SetField(in(3*time.Hour), "data", "until"))
			s.Advance(3*time.Hour - time.Second)
			s.Called()
			s.Advance(2 * time.Second)
			s.Called("sync update")
		}},
		"an end that is no time is none": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Begin()
			pauseOperator(s, "until: tomorrow")
			s.Resize(2)
			s.Advance(48 * time.Hour)
			s.Called()
		}},
		"schedules of the resource wait": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Schedule(scene.WithoutJitter(dsl.Timing{Cron: "0 * * * *"}), "tidy", j.Note("tidy"))
		}, Play: func(s *scene.Stage) {
			s.Launch()
			s.Advance(90 * time.Minute)
			s.Called("tidy timer")
			pauseOperator(s)
			s.Advance(5 * time.Hour)
			s.Called()
			resumeOperator(s)
			s.Called("tidy timer")
			s.Advance(30 * time.Minute)
			s.Called("tidy timer")
		}},
		"a handler that runs goes to its end, and those after it wait": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("slow", j.Note("slow", scene.TakesTime(time.Minute)))
			foo.OnReconcile("after", j.Note("after"))
		}, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Called("slow create")
			pauseOperator(s)
			s.Advance(time.Hour)
			s.Called()
			resumeOperator(s)
			s.Called("after create")
		}},
		"no daemon begins": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("slow", scene.TakesTime(time.Minute))
			watches(foo, j)
		}, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Settle()
			pauseOperator(s)
			s.Advance(time.Hour)
			s.Called()
			resumeOperator(s)
			s.Called("begins")
		}},
		"another operator goes on": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Begin()
			other := dsl.New("other")
			other.Resource(scene.Foos, func(foo *dsl.Resource) { foo.OnReconcile("theirs", s.Note("theirs")) })
			s.Start(other, ofOps)
			s.Called("theirs resume")
			pauseOperator(s)
			s.Resize(2)
			s.Called("theirs update")
		}},
		"handlers cannot pause their operator": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("sync", j.Note("sync", func(ctx context.Context, r *dsl.Request) error {
				_, err := r.Client.Apply(ctx, scene.ConfigMapIn(scene.OpsNamespace, "op-paused"))
				return err
			}))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			if s.Get(scene.ConfigMaps, scene.OpsNamespace, "op-paused") != nil {
				s.T.Error("the ConfigMap is there")
			}
		}},
		"without the right to see it the operator works": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			for _, verb := range reads {
				s.Forbid(verb, scene.ConfigMaps, scene.OpsNamespace)
			}
			pauseOperator(s)
			s.Launch()
			s.Create(scene.Web)
			s.Called("sync create")
			for _, verb := range reads {
				s.Allow(verb, scene.ConfigMaps, scene.OpsNamespace)
			}
			s.Advance(time.Minute)
			s.Resize(2)
			s.Called()
		}},
		"an account that loses the right says so, and the pause holds for ten minutes": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Begin()
			pauseOperator(s)
			for _, verb := range reads {
				s.Forbid(verb, scene.ConfigMaps, scene.OpsNamespace)
			}
			s.CutWatches(scene.ConfigMaps)
			s.Resize(2)
			s.Advance(5 * time.Minute)
			s.Called()
			if got := scene.ReadyMessages(s); !strings.Contains(got, "operator cannot be paused") {
				s.T.Errorf("/readyz?verbose says %s", got)
			}
			s.Advance(10 * time.Minute)
			s.Called("sync update")
			for _, verb := range reads {
				s.Allow(verb, scene.ConfigMaps, scene.OpsNamespace)
			}
			s.Advance(2 * time.Minute)
			s.Resize(3)
			s.Called() // the ConfigMap is there still
		}},
		"where it cannot be read for long the operator works": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			pauseOperator(s)
			s.Create(scene.Web)
			ends := []func() int{}
			for _, verb := range reads {
				ends = append(ends, s.FailWhile(verb, scene.ConfigMaps, errors.New("out of order")))
			}
			s.Launch()
			s.Advance(9 * time.Second)
			s.Called()
			s.Advance(2 * time.Second)
			s.Called("sync resume")
			for _, end := range ends {
				end()
			}
			s.Advance(time.Minute)
			s.Resize(2)
			s.Called()
		}},
	}
	for name, one := range all {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: one.Operator, Play: func(s *scene.Stage) {
				inOps(s)
				one.Play(s)
			}})
		})
	}
}

// reads are the verbs with which the ConfigMap is watched.
var reads = []string{"list", "watch"}

// in is a time from now, as the ConfigMap has it.
func in(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }

// TestAllReplicasObey holds that a process which comes to lead while the operator is paused runs nothing.
func TestAllReplicasObey(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
		s := scene.NewStage(t, c)
		first, _ := scene.StartReplicas(s, dsl.LeaderLease)
		s.Create(scene.Web)
		s.Forget()
		s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: op-paused, namespace: default}, data: {reason: looking}}`)
		s.Settle() // the order of events of two resources is not defined
		s.Resize(2)
		s.Advance(time.Minute)
		s.Called()
		if err := first.Stop(); err != nil {
			t.Error(err)
		}
		s.Advance(time.Minute)
		s.Called()
		s.Delete(scene.ConfigMaps, "default", "op-paused")
		s.Called("second resume")
	})
}

// TestAPauseUnderAnEarlierName holds that an upgrade which renames the operator does not end its pause, and that each ConfigMap pauses
// the operator for itself.
func TestAPauseUnderAnEarlierName(t *testing.T) {
	configMap := func(s *scene.Stage, name string, more ...string) {
		s.T.Helper()
		s.Settle() // the order of events of two resources is not defined
		s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: ` + name + `, namespace: ops}, data: {` + strings.Join(append(more, "reason: "+name), ", ") + `}}`)
		s.Settle()
	}
	says := func(s *scene.Stage, want ...string) {
		s.T.Helper()
		if diff := cmp.Diff(want, checks(s)); diff != "" {
			s.T.Errorf("/readyz?verbose (-want +got):\n%s", diff)
		}
	}
	gone := func(s *scene.Stage, name string) {
		s.T.Helper()
		s.Settle()
		s.Delete(scene.ConfigMaps, scene.OpsNamespace, name)
		s.Settle()
	}
	const older = "[+]paused ok: the operator is paused under its earlier name older: older-paused"
	all := map[string]scene.Scenario{
		"it holds": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			configMap(s, "older-paused")
			s.Launch()
			s.Create(scene.Web)
			s.Advance(time.Hour)
			s.Called()
			says(s, older)
			s.Process.Restart()
			s.Advance(time.Hour)
			s.Called()
			gone(s, "older-paused")
			s.Called("sync resume")
			says(s)
		}},
		"it begins while the operator runs": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Begin()
			configMap(s, "older-paused")
			s.Resize(2)
			s.Called()
			gone(s, "older-paused")
			s.Called("sync update")
		}},
		"one under the current name holds beside it": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Begin()
			configMap(s, "older-paused")
			configMap(s, "op-paused")
			says(s, "[+]paused ok: the operator is paused: op-paused")
			s.Resize(2)
			gone(s, "op-paused")
			s.Called()
			says(s, older)
			gone(s, "older-paused")
			s.Called("sync update")
		}},
		"when one of two ends by itself the other one holds, to its own end": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Begin()
			configMap(s, "op-paused", "until: "+strconv.Quote(in(time.Hour)))
			configMap(s, "older-paused", "until: "+strconv.Quote(in(3*time.Hour)))
			s.Resize(2)
			s.Advance(3*time.Hour - time.Second)
			s.Called()
			s.Advance(2 * time.Second)
			s.Called("sync update")
		}},
		"the name of a stranger means nothing": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Begin()
			configMap(s, "other-paused")
			s.Resize(2)
			s.Called("sync update")
		}},
	}
	for name, one := range all {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: one.Operator, Play: func(s *scene.Stage) {
				s.Operator.Was = []string{"older", "op.example.com"} // the second had the same name, and another domain
				inOps(s)
				one.Play(s)
			}})
		})
	}
}
