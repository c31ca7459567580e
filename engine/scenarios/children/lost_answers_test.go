// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestADeletionLooksForChildrenWhoseCreationGotNoAnswer holds that an owner goes when each such child was found, or is known to
// be absent.
func TestADeletionLooksForChildrenWhoseCreationGotNoAnswer(t *testing.T) {
	// lost makes the child with a request whose answer is lost, while the watch of its kind brings nothing.
	lost := func(s *scene.Stage) {
		s.CreateElsewhere()
		s.Launch()
		s.LoseNext("patch", scene.ConfigMaps)
		s.HoldWatches(scene.ConfigMaps)
		s.Create(scene.Web)
		s.Settle()
		wantValue(s, "elsewhere", "x")
		s.Forget()
	}
	there := func(s *scene.Stage) {
		s.T.Helper()
		if s.Settle(); s.Web() == nil {
			s.T.Error("the owner is gone, and its child is not")
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"it was made": {Operator: keepsOnChange, Play: func(s *scene.Stage) {
			lost(s)
			s.Remove()
			there(s)
			s.Advance(20 * time.Second)
			there(s)
			s.ReleaseWatches(scene.ConfigMaps)
			s.Advance(time.Minute)
			wantOwnerAndChildGone(s)
		}},
		"it was made, and found by the next attempt": {Operator: keepsOnChange, Play: func(s *scene.Stage) {
			lost(s)
			s.Advance(time.Minute)
			s.Called()
			s.Remove()
			there(s)
			s.ReleaseWatches(scene.ConfigMaps)
			s.Advance(time.Minute)
			wantOwnerAndChildGone(s)
		}},
		"it was made, and cannot be looked for at first": {Operator: keepsOnChange, Play: func(s *scene.Stage) {
			lost(s)
			end := s.FailWhile("get", scene.ConfigMaps, apierrors.NewInternalError(errors.New("etcdserver: request timed out")))
			s.Remove()
			s.Advance(time.Minute)
			there(s)
			end()
			s.Advance(2 * time.Minute)
			there(s)
			s.ReleaseWatches(scene.ConfigMaps)
			s.Advance(time.Minute)
			wantOwnerAndChildGone(s)
		}},
		"it was made, and may not be looked for": {Operator: keepsOnChange, Play: func(s *scene.Stage) {
			lost(s)
			s.Forbid("get", scene.ConfigMaps)
			s.CutWatches(scene.ConfigMaps)
			s.Remove()
			there(s)
			s.Advance(time.Minute)
			s.ReleaseWatches(scene.ConfigMaps)
			s.Advance(time.Minute)
			wantOwnerAndChildGone(s)
		}},
		"it was not made": {Operator: keepsOnChange, Play: func(s *scene.Stage) {
			s.CreateElsewhere()
			s.Launch()
			s.FailNext("patch", scene.ConfigMaps, kit.ErrRefused)
			s.HoldWatches(scene.ConfigMaps)
			s.Create(scene.Web)
			s.Remove()
			s.Advance(time.Second)
			wantOwnerAndChildGone(s)
		}},
		"the server refused it, and it may not be looked for": {Operator: keepsOnChange, Play: func(s *scene.Stage) {
			s.CreateElsewhere()
			s.Launch()
			s.Forbid("patch", scene.ConfigMaps)
			s.Forbid("get", scene.ConfigMaps)
			s.Create(scene.Web)
			s.Settle()
			s.ForbidWatching(scene.ConfigMaps)
			s.Remove()
			s.Advance(time.Second)
			wantOwnerAndChildGone(s)
		}},
	})
}

// TestANextLeaderKnowsOfChildrenThatItsCacheLacks holds that a process which takes over with a cache that lags behind loses no
// child of the leader before it.
func TestANextLeaderKnowsOfChildrenThatItsCacheLacks(t *testing.T) {
	// taken makes the child in a first process, and has a second one take over whose cache does not show it.
	taken := func(s *scene.Stage) {
		s.CreateElsewhere()
		s.Operator.Settings.LeaderElection = dsl.LeaderElection{Mode: dsl.LeaderLease, Namespace: "default"}
		first := s.Start(s.Operator)
		s.Advance(time.Second)
		s.Process = s.Start(s.Operator)
		s.Advance(time.Second)
		s.HoldWatches(scene.ConfigMaps)
		s.Create(scene.Web)
		wantValue(s, "elsewhere", "x")
		first.Kill()
		s.Advance(time.Minute)
	}
	operator := func(foo *dsl.Resource, j *kit.Journal) {
		keepsOnChange(foo, j)
		notesColor(foo)
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"the owner is deleted": {Operator: operator, Play: func(s *scene.Stage) {
			taken(s)
			s.Remove()
			if s.Advance(20 * time.Second); s.Web() == nil {
				s.T.Error("the owner is gone, and its child is not")
			}
			s.ReleaseWatches(scene.ConfigMaps)
			s.Advance(time.Minute)
			wantOwnerAndChildGone(s)
		}},
		"the owner is written first": {Operator: operator, Play: func(s *scene.Stage) {
			taken(s)
			s.Set("blue", "spec", "color")
			s.Settle()
			if got := s.Web().GetAnnotations()["example.com/color"]; got != "blue" {
				s.T.Errorf("the object was last written for color %q", got)
			}
			s.ReleaseWatches(scene.ConfigMaps)
			s.Advance(time.Minute)
			removeWithChild(s)
		}},
	})
}

// TestARecordWhoseWriteGotNoAnswerIsRead holds that a child is listed which is made after its place left the record by a
// write whose answer was lost.
func TestARecordWhoseWriteGotNoAnswerIsRead(t *testing.T) {
	var tick atomic.Bool // a timer reads it at any time
	wanted, lose := true, func() {}
	spec := dsl.ChildSpec{Handler: "keep", Name: "settings", Ownership: dsl.Labelled}
	operator := func(foo *dsl.Resource, _ *kit.Journal) {
		foo.Owns(scene.ConfigMaps)
		foo.On([]dsl.Cause{dsl.Create, dsl.Update}, "keep", func(ctx context.Context, r *dsl.Request) error {
			size, _ := dsl.MustParsePath("spec.size").In(r.Object.Object)
			r.Patch.Annotate("example.com/size", fmt.Sprint(size))
			if !wanted {
				lose()
				return nil
			}
			_, err := r.Children.Apply(ctx, scene.ConfigMapWithValue("elsewhere", "x"), spec)
			return err
		}, dsl.Field("spec.size"))
		foo.Every(time.Minute, "tick", func(ctx context.Context, r *dsl.Request) error {
			if !tick.Load() {
				return nil
			}
			_, err := r.Children.Apply(ctx, scene.ConfigMapWithValue("elsewhere", "x"), spec)
			return err
		})
		foo.OnDelete("leave", removesAll)
	}
	// lost has the server do a write without the child's place, and loses the answer. The cache does not show the write.
	lost := func(s *scene.Stage, again bool) {
		s.CreateElsewhere()
		wanted, lose = true, func() {}
		tick.Store(false)
		s.Begin()
		s.Delete(scene.ConfigMaps, "elsewhere", "web")
		s.Settle()
		wanted, lose = false, func() {
			s.HoldWatches(scene.Foos)
			s.LoseNext("patch", scene.Foos)
			wanted, lose = again, func() {}
		}
		s.Resize(2)
		s.Advance(10 * time.Second)
	}
	listed := func(s *scene.Stage) {
		s.T.Helper()
		wantValue(s, "elsewhere", "x")
		s.ReleaseWatches(scene.Foos)
		s.Advance(time.Minute)
		if listed := listedInRecord(s); listed != `["/ConfigMap/elsewhere/web"]` {
			s.T.Errorf("the record is %s", listed)
		}
		removeWithChild(s)
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"by the next pass": {Operator: operator, Play: func(s *scene.Stage) {
			lost(s, true)
			listed(s)
		}},
		"by a later pass, when the next one had nothing to write": {Operator: operator, Play: func(s *scene.Stage) {
			lost(s, false)
			tick.Store(true)
			s.Advance(2 * time.Minute)
			if s.Get(scene.ConfigMaps, "elsewhere", "web") == nil {
				s.ReleaseWatches(scene.Foos)
				s.Advance(2 * time.Minute)
			}
			listed(s)
		}},
	})
}
