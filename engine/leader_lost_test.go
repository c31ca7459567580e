// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

const leases = "leases.v1.coordination.k8s.io"

// takeLock gives the lock to somebody else, as a person does with an editor.
func takeLock(s *stage, mode dsl.LeaderMode) {
	s.t.Helper()
	s.Update(leases, "default", "op-leader", func(o *unstructured.Unstructured) {
		if mode == dsl.LeaderLife {
			pod := s.Get("pods.v1", "default", "op-1")
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.GetName(), UID: pod.GetUID()}})
		}
		if err := unstructured.SetNestedField(o.Object, "usurper", "spec", "holderIdentity"); err != nil {
			s.t.Error(err)
		}
	})
}

// accepted returns the writes of a process that the server took.
func accepted(p *enginetest.Process) []enginetest.Write {
	return slices.DeleteFunc(p.Writes(), func(w enginetest.Write) bool { return w.Code >= 400 })
}

// TestLeadershipLostInTheGracePeriod is law 10: a process that was asked to stop has its grace
// period only while it leads.
func TestLeadershipLostInTheGracePeriod(t *testing.T) {
	const grace = 2 * time.Minute
	for _, mode := range []dsl.LeaderMode{dsl.LeaderLease, dsl.LeaderLife} {
		t.Run(string(mode), func(t *testing.T) {
			perform(t, scenario{level, func(s *stage) {
				var ended, next time.Time
				var cause error
				op := replica(s.journal, "first", mode, func(ctx context.Context, _ *dsl.Request) error {
					<-ctx.Done()
					ended, cause = time.Now(), context.Cause(ctx)
					return nil
				})
				op.Settings.GracePeriod = grace
				after := replica(s.journal, "second", mode, func(context.Context, *dsl.Request) error {
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
				s.Create(web)
				s.calls("first create")

				asked := time.Now()
				if mode == dsl.LeaderLease {
					first.Kill() // it is cut off, too, and cannot renew
				} else {
					// Its pod goes, and the lock with it, and the process has not ended yet.
					time.AfterFunc(time.Second, func() {
						s.Delete("pods.v1", "default", "op-0")
						s.Delete(leases, "default", "op-leader")
					})
					if err := first.Stop(); err != nil {
						s.t.Error(err)
					}
				}
				if took := ended.Sub(asked); ended.IsZero() || took >= grace/2 || !errors.Is(cause, context.Canceled) {
					s.t.Errorf("the handler ended %v after the stop was asked for, by %v; want it to end when leadership was lost", took, cause)
				}
				s.Advance(grace)
				if next.IsZero() || next.Before(ended) {
					s.t.Errorf("the next leader's handler ran at %v, that of the one before ended at %v", next, ended)
				}
			}})
		})
	}
}

// TestFenceShutsAtTheFirstSign is law 10 for a lock that is taken from a leader that lives: it need
// not renew to find that out. Each case takes no time, so that no renewal comes to help.
func TestFenceShutsAtTheFirstSign(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Group: "example.com", Resource: "foos"}, "web", errors.New("modified"))
	for _, mode := range []dsl.LeaderMode{dsl.LeaderLease, dsl.LeaderLife} {
		t.Run(string(mode), func(t *testing.T) {
			scenarios(t, map[string]scenario{
				"the lock is seen to be another's": {level, func(s *stage) {
					first, _ := replicas(s, mode)
					s.Create(web)
					s.forget()
					accepted(first)
					takeLock(s, mode)
					s.Settle()
					s.size(2)
					s.calls()
					if writes := accepted(first); len(writes) > 0 {
						s.t.Errorf("without the lock it wrote %v", writes)
					}
				}},
				"the lock is deleted": {level, func(s *stage) {
					first, _ := replicas(s, mode)
					s.Create(web)
					s.forget()
					accepted(first)
					s.Forbid("create", leases) // or it is made again at once
					s.Delete(leases, "default", "op-leader")
					s.Settle()
					s.size(2)
					s.calls()
					if writes := accepted(first); len(writes) > 0 {
						s.t.Errorf("without a lock it wrote %v", writes)
					}
					s.Allow("create", leases)
					s.Advance(time.Minute)
					s.holds(2)
				}},
				"a conflict is a sign, where the lock may not be watched": {level, func(s *stage) {
					s.Forbid("watch", leases)
					first, _ := replicas(s, mode)
					s.Create(web)
					s.forget()
					accepted(first)
					takeLock(s, mode)
					s.FailNext("patch", foos+"/status", conflict)
					s.size(2)
					s.calls("first update")
					if writes := accepted(first); len(writes) > 0 {
						s.t.Errorf("after the conflict it wrote %v", writes)
					}
				}},
				"a conflict with somebody else costs a leader nothing": {level, func(s *stage) {
					replicas(s, mode)
					s.Create(web)
					s.forget()
					s.FailNext("patch", foos+"/status", conflict)
					s.size(2)
					s.calls("first update")
					s.holds(2)
				}},
				"while the lock cannot be read, a write waits for the answer": {level, func(s *stage) {
					first, _ := replicas(s, mode)
					s.Create(web)
					s.forget()
					accepted(first)
					s.FailNext("get", leases, enginetest.ErrRefused)
					s.FailNext("patch", foos+"/status", conflict)
					s.size(2)
					s.calls("first update")
					if writes := accepted(first); len(writes) > 0 {
						s.t.Errorf("in doubt it wrote %v", writes)
					}
					s.Advance(5 * time.Second)
					s.holds(2)
					s.calls()
				}},
			})
		})
	}
}

// holds checks that the size was reported in web's status.
func (s *stage) holds(size int64) {
	s.t.Helper()
	s.Settle()
	if got, _, _ := unstructured.NestedInt64(s.web().Object, "status", "size"); got != size {
		s.t.Errorf("status.size is %d, want %d", got, size)
	}
}
