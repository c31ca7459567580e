// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

// TestADeletionLooksForChildrenWhoseCreationGotNoAnswer holds that an owner goes when each such child was found, or is known to
// be absent.
func TestADeletionLooksForChildrenWhoseCreationGotNoAnswer(t *testing.T) {
	// lost makes the child with a request whose answer is lost, while the watch of its kind brings nothing.
	lost := func(s *stage) {
		s.elsewhere()
		s.Launch()
		s.LoseNext("patch", configMaps)
		s.HoldWatches(configMaps)
		s.Create(web)
		s.Settle()
		s.value("elsewhere", "x")
		s.Forget()
	}
	there := func(s *stage) {
		s.t.Helper()
		if s.Settle(); s.web() == nil {
			s.t.Error("the owner is gone, and its child is not")
		}
	}
	scenarios(t, map[string]scenario{
		"it was made": {keepsOnChange, func(s *stage) {
			lost(s)
			s.remove()
			there(s)
			s.Advance(20 * time.Second)
			there(s)
			s.ReleaseWatches(configMaps)
			s.Advance(time.Minute)
			s.leftNothing()
		}},
		"it was made, and found by the next attempt": {keepsOnChange, func(s *stage) {
			lost(s)
			s.Advance(time.Minute)
			s.Called()
			s.remove()
			there(s)
			s.ReleaseWatches(configMaps)
			s.Advance(time.Minute)
			s.leftNothing()
		}},
		"it was made, and cannot be looked for at first": {keepsOnChange, func(s *stage) {
			lost(s)
			end := s.FailWhile("get", configMaps, apierrors.NewInternalError(errors.New("etcdserver: request timed out")))
			s.remove()
			s.Advance(time.Minute)
			there(s)
			end()
			s.Advance(2 * time.Minute)
			there(s)
			s.ReleaseWatches(configMaps)
			s.Advance(time.Minute)
			s.leftNothing()
		}},
		"it was made, and may not be looked for": {keepsOnChange, func(s *stage) {
			lost(s)
			s.Forbid("get", configMaps)
			s.CutWatches(configMaps)
			s.remove()
			there(s)
			s.Advance(time.Minute)
			s.ReleaseWatches(configMaps)
			s.Advance(time.Minute)
			s.leftNothing()
		}},
		"it was not made": {keepsOnChange, func(s *stage) {
			s.elsewhere()
			s.Launch()
			s.FailNext("patch", configMaps, enginetest.ErrRefused)
			s.HoldWatches(configMaps)
			s.Create(web)
			s.remove()
			s.Advance(time.Second)
			s.leftNothing()
		}},
		"the server refused it, and it may not be looked for": {keepsOnChange, func(s *stage) {
			s.elsewhere()
			s.Launch()
			s.Forbid("patch", configMaps)
			s.Forbid("get", configMaps)
			s.Create(web)
			s.Settle()
			s.unseen(configMaps)
			s.remove()
			s.Advance(time.Second)
			s.leftNothing()
		}},
	})
}

// TestANextLeaderKnowsOfChildrenThatItsCacheLacks holds that a process which takes over with a cache that lags behind loses no
// child of the leader before it.
func TestANextLeaderKnowsOfChildrenThatItsCacheLacks(t *testing.T) {
	// taken makes the child in a first process, and has a second one take over whose cache does not show it.
	taken := func(s *stage) {
		s.elsewhere()
		s.Operator.Settings.LeaderElection = dsl.LeaderElection{Mode: dsl.LeaderLease, Namespace: "default"}
		first := s.Start(s.Operator)
		s.Advance(time.Second)
		s.Process = s.Start(s.Operator)
		s.Advance(time.Second)
		s.HoldWatches(configMaps)
		s.Create(web)
		s.value("elsewhere", "x")
		first.Kill()
		s.Advance(time.Minute)
	}
	operator := func(foo *dsl.Resource, j *journal) {
		keepsOnChange(foo, j)
		notesColor(foo)
	}
	scenarios(t, map[string]scenario{
		"the owner is deleted": {operator, func(s *stage) {
			taken(s)
			s.remove()
			if s.Advance(20 * time.Second); s.web() == nil {
				s.t.Error("the owner is gone, and its child is not")
			}
			s.ReleaseWatches(configMaps)
			s.Advance(time.Minute)
			s.leftNothing()
		}},
		"the owner is written first": {operator, func(s *stage) {
			taken(s)
			s.set("blue", "spec", "color")
			s.Settle()
			if got := s.web().GetAnnotations()["example.com/color"]; got != "blue" {
				s.t.Errorf("the object was last written for color %q", got)
			}
			s.ReleaseWatches(configMaps)
			s.Advance(time.Minute)
			s.leavesNothing()
		}},
	})
}

// TestARecordWhoseWriteGotNoAnswerIsRead holds that a child is listed which is made after its place left the record by a write whose
// answer was lost.
func TestARecordWhoseWriteGotNoAnswerIsRead(t *testing.T) {
	var tick atomic.Bool // a timer reads it at any time
	wanted, lose := true, func() {}
	spec := dsl.ChildSpec{Handler: "keep", Name: "settings", Ownership: dsl.Labelled}
	operator := func(foo *dsl.Resource, _ *journal) {
		foo.Owns(configMaps)
		foo.On([]dsl.Cause{dsl.Create, dsl.Update}, "keep", func(ctx ctx, r *dsl.Request) error {
			size, _ := dsl.MustParsePath("spec.size").In(r.Object.Object)
			r.Patch.Annotate("example.com/size", fmt.Sprint(size))
			if !wanted {
				lose()
				return nil
			}
			_, err := r.Children.Apply(ctx, settings("elsewhere", "x"), spec)
			return err
		}, dsl.Field("spec.size"))
		foo.Every(time.Minute, "tick", func(ctx ctx, r *dsl.Request) error {
			if !tick.Load() {
				return nil
			}
			_, err := r.Children.Apply(ctx, settings("elsewhere", "x"), spec)
			return err
		})
		foo.OnDelete("leave", removesAll)
	}
	// lost has the server do a write without the child's place, and loses the answer. The cache does not show the write.
	lost := func(s *stage, again bool) {
		s.elsewhere()
		wanted, lose = true, func() {}
		tick.Store(false)
		s.begin()
		s.Delete(configMaps, "elsewhere", "web")
		s.Settle()
		wanted, lose = false, func() {
			s.HoldWatches(foos)
			s.LoseNext("patch", foos)
			wanted, lose = again, func() {}
		}
		s.size(2)
		s.Advance(10 * time.Second)
	}
	listed := func(s *stage) {
		s.t.Helper()
		s.value("elsewhere", "x")
		s.ReleaseWatches(foos)
		s.Advance(time.Minute)
		if listed := s.listed(); listed != `["/ConfigMap/elsewhere/web"]` {
			s.t.Errorf("the record is %s", listed)
		}
		s.leavesNothing()
	}
	scenarios(t, map[string]scenario{
		"by the next pass": {operator, func(s *stage) {
			lost(s, true)
			listed(s)
		}},
		"by a later pass, when the next one had nothing to write": {operator, func(s *stage) {
			lost(s, false)
			tick.Store(true)
			s.Advance(2 * time.Minute)
			if s.Get(configMaps, "elsewhere", "web") == nil {
				s.ReleaseWatches(foos)
				s.Advance(2 * time.Minute)
			}
			listed(s)
		}},
	})
}
