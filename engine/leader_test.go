// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

// replica is an operator like the others of its name, whose handlers note which one they are of.
func replica(j *journal, id string, mode dsl.LeaderMode, then ...dsl.Func) *dsl.Operator {
	op := dsl.New("op")
	op.Settings.LeaderElection = dsl.LeaderElection{Mode: mode, Namespace: "default"}
	op.Resource(foos, func(foo *dsl.Resource) {
		foo.On(append(both(), dsl.Resume), id, j.Note(id, then...))
		foo.OnReconcile(id+"-status", reports)
	})
	return op
}

// replicas starts two replicas, of which the first one leads.
func replicas(s *stage, mode dsl.LeaderMode, then ...dsl.Func) (first, second *enginetest.Process) {
	s.t.Helper()
	if mode == dsl.LeaderLife {
		for _, name := range []string{"op-0", "op-1"} {
			s.Create(`{apiVersion: v1, kind: Pod, metadata: {name: ` + name + `}}`)
		}
	}
	first = s.Start(replica(&s.Journal, "first", mode, then...))
	s.Advance(time.Second)
	second = s.Start(replica(&s.Journal, "second", mode))
	s.Advance(time.Second)
	return first, second
}

// takeover lets time pass until the second replica handles something, and tells how long it took.
func takeover(s *stage) time.Duration {
	s.t.Helper()
	begun := time.Now()
	for time.Since(begun) < 10*time.Minute {
		if slices.ContainsFunc(s.Take(), func(line string) bool { return strings.HasPrefix(line, "second ") }) {
			return time.Since(begun)
		}
		s.Advance(100 * time.Millisecond)
	}
	s.t.Error("the second replica never took over")
	return 0
}

func TestLeaderElection(t *testing.T) {
	scenarios(t, map[string]scenario{
		"only the leader works; who stands by has warm caches": {level, func(s *stage) {
			_, second := replicas(s, dsl.LeaderLease)
			s.Create(web)
			s.Called("first create")
			s.size(2)
			s.Called("first update")
			s.Advance(10 * time.Minute)
			s.Called()
			if writes := second.Writes(); len(writes) > 0 {
				s.t.Errorf("the standby wrote %v", writes)
			}
			for _, c := range second.Engine().Ready() {
				if c.State != 0 || c.Name == "started" && !strings.Contains(c.Message, "standing by") {
					s.t.Errorf("the standby says %+v", c)
				}
			}
		}},
		"a leader that stops gives its place to the next within seconds": {level, func(s *stage) {
			first, _ := replicas(s, dsl.LeaderLease)
			s.Create(web)
			s.Forget()
			if err := first.Stop(); err != nil {
				s.t.Error(err)
			}
			if took := takeover(s); took > 5*time.Second {
				s.t.Errorf("it took %v", took)
			}
		}},
		"a leader that dies is followed when its lease is over": {level, func(s *stage) {
			first, _ := replicas(s, dsl.LeaderLease)
			s.Create(web)
			s.Forget()
			first.Kill()
			if took := takeover(s); took < 10*time.Second || took > 24*time.Second {
				s.t.Errorf("it took %v", took)
			}
		}},
		"a leader that is cut off ends its handlers before another one begins, and stands by when it is back": {level, func(s *stage) {
			var ended time.Time
			var cause error
			first, _ := replicas(s, dsl.LeaderLease, func(ctx context.Context, r *dsl.Request) error {
				<-ctx.Done()
				ended, cause = time.Now(), context.Cause(ctx)
				if err := writesElsewhere(context.WithoutCancel(ctx), r); err == nil {
					s.t.Error("it could write when leadership was lost")
				}
				return nil
			})
			s.Create(web)
			s.Called("first create")
			first.Sever()
			begun := time.Now()
			took := takeover(s)
			if ended.IsZero() || ended.Sub(begun) > 10*time.Second || took <= ended.Sub(begun) {
				s.t.Errorf("the handler ended after %v, the other leads after %v", ended.Sub(begun), took)
			}
			if cause == nil || errors.Is(cause, context.DeadlineExceeded) {
				s.t.Errorf("the context's cause is %v", cause)
			}
			first.Restore()
			s.Advance(time.Minute)
			s.Forget()
			s.size(2)
			s.Called("second update")
			if writes := first.Writes(); len(writes) > 0 {
				s.t.Errorf("the former leader wrote %v", writes)
			}
		}},
		"a leader that comes back looks at everything again": {level, func(s *stage) {
			first, second := replicas(s, dsl.LeaderLease)
			s.Create(web)
			s.Forget()
			first.Sever()
			takeover(s)
			first.Restore()
			s.size(2)
			s.Advance(time.Minute)
			s.Forget()
			if err := second.Stop(); err != nil {
				s.t.Error(err)
			}
			s.Advance(10 * time.Second)
			s.Called("first resume")
			s.size(3)
			s.Called("first update")
		}},
		"in mode life the next one takes over when the pod is gone": {level, func(s *stage) {
			first, _ := replicas(s, dsl.LeaderLife)
			s.Create(web)
			s.Called("first create")
			first.Kill()
			s.Advance(10 * time.Minute)
			s.Called()
			s.Delete("pods.v1", "default", "op-0")
			if took := takeover(s); took > 5*time.Second {
				s.t.Errorf("it took %v", took)
			}
		}},
		"in mode life a container that is restarted goes on": {level, func(s *stage) {
			first, _ := replicas(s, dsl.LeaderLife)
			s.Create(web)
			s.Forget()
			first.Kill()
			first.Restart()
			s.Advance(10 * time.Second)
			s.Called("first resume")
		}},
	})
}
