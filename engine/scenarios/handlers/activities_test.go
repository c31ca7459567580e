// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// countRequests counts the requests of a process.
func countRequests(n *atomic.Int64) func(*engine.Settings) {
	return func(s *engine.Settings) {
		s.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return scene.RoundTripper(func(r *http.Request) (*http.Response, error) {
				n.Add(1)
				return next.RoundTrip(r)
			})
		})
	}
}

// TestStartupsRunFirstAndCleanupsLast holds what runs before everything else, and after it.
func TestStartupsRunFirstAndCleanupsLast(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
		foo.OnReconcile("slow", func(ctx context.Context, r *dsl.Request) error {
			greeting, _ := r.OperatorMemo.Get("greeting")
			j.Add("handler " + greeting.(string))
			<-ctx.Done()
			time.Sleep(time.Second)
			j.Add("handler ends")
			return nil
		})
	}, Play: func(s *scene.Stage) {
		s.Create(scene.Web)
		var requests atomic.Int64
		s.Operator.OnStartup("first", func(_ context.Context, r *dsl.Request) error {
			if r.Attempt == 1 {
				return dsl.Temporary(scene.ErrAgain, time.Minute)
			}
			r.OperatorMemo.Set("greeting", "hello")
			if n := requests.Load(); n > 0 {
				s.T.Errorf("%d requests before the startup is through", n)
			}
			return nil
		})
		s.Operator.OnCleanup("last", func(ctx context.Context, r *dsl.Request) error {
			s.Add("cleanup")
			o, err := r.Client.Get(ctx, scene.Foos, "default", "web")
			if err == nil {
				o.Object["spec"].(map[string]any)["color"] = "gone"
				_, err = r.Client.Apply(ctx, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "bye", "namespace": "default"}})
			}
			return err
		})
		s.Operator.OnReady("mood", func(context.Context, *dsl.Request) error { return errors.New("sad") })
		s.Process = s.Start(s.Operator, countRequests(&requests))
		if got := scene.CheckNamed(s.Process.Engine().Ready(), "startup"); got != "[-]startup failed: first: not yet" {
			s.T.Errorf("during the startup readiness has %q", got)
		}
		s.Advance(time.Minute)
		s.Called("handler hello")
		if got := scene.CheckNamed(s.Process.Engine().Ready(), "probe/mood"); got != "[-]probe/mood failed: sad" {
			s.T.Errorf("readiness has %q", got)
		}
		if got := len(s.Process.Engine().Healthy()); got != 1 {
			s.T.Errorf("health has %d checks", got)
		}
		if err := s.Process.Stop(); err != nil {
			s.T.Error(err)
		}
		s.Called("handler ends", "cleanup")
		if s.Get("configmaps.v1", "default", "bye") == nil {
			s.T.Error("the cleanup could not write")
		}
	}})
}

// TestAStartupThatFailsForGoodEndsTheProcess holds that the process ends, with its error, and has sent no request.
func TestAStartupThatFailsForGoodEndsTheProcess(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: scene.Syncs, Play: func(s *scene.Stage) {
		var requests atomic.Int64
		s.Operator.OnStartup("vain", scene.Fails(dsl.Permanent(scene.ErrAgain)))
		s.Operator.OnCleanup("bye", s.Note("bye"))
		p := s.Start(s.Operator, countRequests(&requests))
		err := p.Stop()
		if err == nil || err.Error() != "running startup vain: not yet" || requests.Load() > 0 {
			s.T.Errorf("it ends with %v after %d requests", err, requests.Load())
		}
		s.Called()
	}})
}

// TestAnActivityHasNoSubHandlers holds that one that declares some fails for good, for they would not run.
func TestAnActivityHasNoSubHandlers(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: scene.Syncs, Play: func(s *scene.Stage) {
		s.Operator.OnStartup("parts", scene.DeclaresSubHandlers(&s.Journal, nil, nil, "a"))
		err := s.Start(s.Operator).Stop()
		if want := "running startup parts: it declares sub-handlers, which startup does not have"; err == nil || err.Error() != want {
			s.T.Errorf("it ends with %v, want %s", err, want)
		}
		s.Called()
	}})
}

// TestEachReplicaRunsItsActivities holds that each process has its startup and its cleanup, and that the one which leads may
// write in its cleanup while the other one may not.
func TestEachReplicaRunsItsActivities(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: scene.Syncs, Play: func(s *scene.Stage) {
		begin := func(id string) *kit.Process {
			op := scene.Replica(&s.Journal, id, dsl.LeaderLease)
			writes := func(ctx context.Context, r *dsl.Request) error {
				_, err := r.Client.Apply(ctx, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": id, "namespace": "default"}})
				if err != nil && !strings.Contains(err.Error(), "does not lead") {
					s.T.Errorf("%s: %v", id, err)
				}
				s.Add(id + " " + string(r.Cause) + map[bool]string{true: " writes", false: " does not write"}[err == nil])
				return nil
			}
			op.OnStartup("begin", writes)
			op.OnCleanup("end", writes)
			p := s.Start(op)
			s.Advance(time.Second)
			return p
		}
		first := begin("one")
		second := begin("two")
		s.Called("one startup does not write", "two startup does not write")
		_ = second.Stop()
		s.Called("two cleanup does not write")
		_ = first.Stop()
		s.Called("one cleanup writes")
	}})
}
