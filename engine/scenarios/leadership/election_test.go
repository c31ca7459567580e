// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package leadership_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

func TestOneReplicaWorks(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"only the leader works; who stands by has warm caches": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			_, second := scene.StartReplicas(s, dsl.LeaderLease)
			s.Create(scene.Web)
			s.Called("first create")
			s.Resize(2)
			s.Called("first update")
			s.Advance(10 * time.Minute)
			s.Called()
			if writes := second.Writes(); len(writes) > 0 {
				s.T.Errorf("the standby wrote %v", writes)
			}
			for _, c := range second.Engine().Ready() {
				if c.State != 0 || c.Name == "started" && !strings.Contains(c.Message, "standing by") {
					s.T.Errorf("the standby says %+v", c)
				}
			}
		}},
		"a leader that stops gives its place to the next within seconds": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			first, _ := scene.StartReplicas(s, dsl.LeaderLease)
			s.Create(scene.Web)
			s.Forget()
			if err := first.Stop(); err != nil {
				s.T.Error(err)
			}
			if took := scene.AwaitTakeover(s); took > 5*time.Second {
				s.T.Errorf("it took %v", took)
			}
		}},
		"a leader that dies is followed when its lease is over": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			first, _ := scene.StartReplicas(s, dsl.LeaderLease)
			s.Create(scene.Web)
			s.Forget()
			first.Kill()
			if took := scene.AwaitTakeover(s); took < 10*time.Second || took > 24*time.Second {
				s.T.Errorf("it took %v", took)
			}
		}},
		"a leader that is cut off ends its handlers before another one begins, and stands by when it is back": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			var ended time.Time
			var cause error
			first, _ := scene.StartReplicas(s, dsl.LeaderLease, func(ctx context.Context, r *dsl.Request) error {
				<-ctx.Done()
				ended, cause = time.Now(), context.Cause(ctx)
				if err := scene.WritesElsewhere(context.WithoutCancel(ctx), r); err == nil {
					s.T.Error("it could write when leadership was lost")
				}
				return nil
			})
			s.Create(scene.Web)
			s.Called("first create")
			first.Sever()
			begun := time.Now()
			took := scene.AwaitTakeover(s)
			if ended.IsZero() || ended.Sub(begun) > 10*time.Second || took <= ended.Sub(begun) {
				s.T.Errorf("the handler ended after %v, the other leads after %v", ended.Sub(begun), took)
			}
			if cause == nil || errors.Is(cause, context.DeadlineExceeded) {
				s.T.Errorf("the context's cause is %v", cause)
			}
			first.Restore()
			s.Advance(time.Minute)
			s.Forget()
			s.Resize(2)
			s.Called("second update")
			if writes := first.Writes(); len(writes) > 0 {
				s.T.Errorf("the former leader wrote %v", writes)
			}
		}},
		"a leader that comes back looks at everything again": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			first, second := scene.StartReplicas(s, dsl.LeaderLease)
			s.Create(scene.Web)
			s.Forget()
			first.Sever()
			scene.AwaitTakeover(s)
			first.Restore()
			s.Resize(2)
			s.Advance(time.Minute)
			s.Forget()
			if err := second.Stop(); err != nil {
				s.T.Error(err)
			}
			s.Advance(10 * time.Second)
			s.Called("first resume")
			s.Resize(3)
			s.Called("first update")
		}},
		"in mode life the next one takes over when the pod is gone": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			first, _ := scene.StartReplicas(s, dsl.LeaderLife)
			s.Create(scene.Web)
			s.Called("first create")
			first.Kill()
			s.Advance(10 * time.Minute)
			s.Called()
			s.Delete("pods.v1", "default", "op-0")
			if took := scene.AwaitTakeover(s); took > 5*time.Second {
				s.T.Errorf("it took %v", took)
			}
		}},
		"in mode life a container that is restarted goes on": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			first, _ := scene.StartReplicas(s, dsl.LeaderLife)
			s.Create(scene.Web)
			s.Forget()
			first.Kill()
			first.Restart()
			s.Advance(10 * time.Second)
			s.Called("first resume")
		}},
	})
}
