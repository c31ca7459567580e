// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package leadership_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// acceptedWrites returns the writes of a process that the server took.
func acceptedWrites(p *kit.Process) []kit.Write {
	return slices.DeleteFunc(p.Writes(), func(w kit.Write) bool { return w.Code >= 400 })
}

// TestTheGracePeriodEndsWithLeadership is law 10: a process that was asked to stop has its grace
// period only while it leads.
func TestTheGracePeriodEndsWithLeadership(t *testing.T) {
	const grace = 2 * time.Minute
	for _, mode := range []dsl.LeaderMode{dsl.LeaderLease, dsl.LeaderLife} {
		t.Run(string(mode), func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: scene.Syncs, Play: func(s *scene.Stage) {
				var ended, next time.Time
				var cause error
				op := scene.Replica(&s.Journal, "first", mode, func(ctx context.Context, _ *dsl.Request) error {
					<-ctx.Done()
					ended, cause = time.Now(), context.Cause(ctx)
					return nil
				})
				op.Settings.GracePeriod = grace
				after := scene.Replica(&s.Journal, "second", mode, func(context.Context, *dsl.Request) error {
					next = time.Now()
					return nil
				})
				for _, pod := range []string{"op-0", "op-1"} {
					s.Create(`{apiVersion: v1, kind: Pod, metadata: {name: ` + pod + `}}`)
				}
				first := s.Start(op)
				s.Advance(time.Second)
				s.Start(after)
				s.Advance(time.Second)
				s.Create(scene.Web)
				s.Called("first create")

				asked := time.Now()
				if mode == dsl.LeaderLease {
					first.Kill() // it is cut off, too, and cannot renew
				} else {
					// Its pod goes, and the lock with it, and the process has not ended yet.
					time.AfterFunc(time.Second, func() {
						s.Delete("pods.v1", "default", "op-0")
						s.Delete(scene.Leases, "default", "op-leader")
					})
					if err := first.Stop(); err != nil {
						s.T.Error(err)
					}
				}
				if took := ended.Sub(asked); ended.IsZero() || took >= grace/2 || !errors.Is(cause, context.Canceled) {
					s.T.Errorf("the handler ended %v after the stop was asked for, by %v; want it to end when leadership was lost", took, cause)
				}
				s.Advance(grace)
				if next.IsZero() || next.Before(ended) {
					s.T.Errorf("the next leader's handler ran at %v, that of the one before ended at %v", next, ended)
				}
			}})
		})
	}
}

// TestNothingIsWrittenAfterTheFirstSignOfAnotherLeader is law 10 for a lock that is taken from a leader that lives: it need
// not renew to find that out. Each case takes no time, so that no renewal comes to help.
func TestNothingIsWrittenAfterTheFirstSignOfAnotherLeader(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Group: "example.com", Resource: "foos"}, "web", errors.New("modified"))
	for _, mode := range []dsl.LeaderMode{dsl.LeaderLease, dsl.LeaderLife} {
		t.Run(string(mode), func(t *testing.T) {
			scene.PlayAll(t, map[string]scene.Scenario{
				"the lock is seen to be another's": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
					first, _ := scene.StartReplicas(s, mode)
					s.Create(scene.Web)
					s.Forget()
					acceptedWrites(first)
					scene.TakeLock(s, mode)
					s.Settle()
					s.Resize(2)
					s.Called()
					if writes := acceptedWrites(first); len(writes) > 0 {
						s.T.Errorf("without the lock it wrote %v", writes)
					}
				}},
				"the lock is deleted": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
					first, _ := scene.StartReplicas(s, mode)
					s.Create(scene.Web)
					s.Forget()
					acceptedWrites(first)
					s.Forbid("create", scene.Leases) // or it is made again at once
					s.Delete(scene.Leases, "default", "op-leader")
					s.Settle()
					s.Resize(2)
					s.Called()
					if writes := acceptedWrites(first); len(writes) > 0 {
						s.T.Errorf("without a lock it wrote %v", writes)
					}
					s.Allow("create", scene.Leases)
					s.Advance(time.Minute)
					wantReportedSize(s, 2)
				}},
				"a conflict is a sign, where the lock may not be watched": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
					s.Forbid("watch", scene.Leases)
					first, _ := scene.StartReplicas(s, mode)
					s.Create(scene.Web)
					s.Forget()
					acceptedWrites(first)
					scene.TakeLock(s, mode)
					s.FailNext("patch", scene.Foos+"/status", conflict)
					s.Resize(2)
					s.Called("first update")
					if writes := acceptedWrites(first); len(writes) > 0 {
						s.T.Errorf("after the conflict it wrote %v", writes)
					}
				}},
				"a conflict with somebody else costs a leader nothing": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
					scene.StartReplicas(s, mode)
					s.Create(scene.Web)
					s.Forget()
					s.FailNext("patch", scene.Foos+"/status", conflict)
					s.Resize(2)
					s.Called("first update")
					wantReportedSize(s, 2)
				}},
				"while the lock cannot be read, a write waits for the answer": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
					first, _ := scene.StartReplicas(s, mode)
					s.Create(scene.Web)
					s.Forget()
					acceptedWrites(first)
					s.FailNext("get", scene.Leases, kit.ErrRefused)
					s.FailNext("patch", scene.Foos+"/status", conflict)
					s.Resize(2)
					s.Called("first update")
					if writes := acceptedWrites(first); len(writes) > 0 {
						s.T.Errorf("in doubt it wrote %v", writes)
					}
					s.Advance(5 * time.Second)
					wantReportedSize(s, 2)
					s.Called()
				}},
			})
		})
	}
}

// wantReportedSize checks that the size was reported in web's status.
func wantReportedSize(s *scene.Stage, size int64) {
	s.T.Helper()
	s.Settle()
	if got, _, _ := unstructured.NestedInt64(s.Web().Object, "status", "size"); got != size {
		s.T.Errorf("status.size is %d, want %d", got, size)
	}
}
