// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package log_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/observe/trace"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// spans keeps the spans that have ended, each with the names of those around it.
type spans struct {
	mu   sync.Mutex
	list []string
}

type spanOf struct{}

func (s *spans) Start(ctx context.Context, name string, _ ...string) context.Context {
	around, _ := ctx.Value(spanOf{}).(string)
	return context.WithValue(ctx, spanOf{}, strings.TrimPrefix(around+" > "+name, " > "))
}

func (s *spans) End(ctx context.Context, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := ctx.Value(spanOf{}).(string)
	if err != nil {
		text += fmt.Sprintf(": %v", err)
	}
	s.list = append(s.list, text)
}

func (s *spans) IDs(ctx context.Context) (traceID, spanID string) {
	if around, is := ctx.Value(spanOf{}).(string); is {
		return "t", around
	}
	return "", ""
}

// take returns the spans since the last call, without repetitions.
func (s *spans) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.list
	s.list = nil
	slices.Sort(out)
	return slices.Compact(out)
}

// TestReconcilesHandlersAndRequestsAreSpans holds that a trace has the reconcile around its handlers, and these around their requests, that
// failures are marked, and that the lines of a handler name the trace.
func TestReconcilesHandlersAndRequestsAreSpans(t *testing.T) {
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.Deployments)
			foo.OnReconcile("child", func(ctx context.Context, r *dsl.Request) error {
				r.Log.Info("at work")
				if err := scene.KeepsDeployment(ctx, r); err != nil {
					return err
				}
				r.Patch.Status["size"] = 1
				return nil
			})
			foo.OnDelete("farewell", scene.Fails(dsl.Permanent(scene.ErrAgain)), dsl.Release())
		},
		Play: func(s *scene.Stage) {
			tracer := &spans{}
			log := scene.LaunchWithLog(s, "at work", func(e *engine.Settings) {
				e.Tracer = tracer
				e.Config.Wrap(func(next http.RoundTripper) http.RoundTripper { return trace.Transport(tracer, next) })
			})
			s.Create(scene.Web)
			s.WantLines(log, `"trace"="t" "span"="reconcile"`)
			want := []string{
				"reconcile", "reconcile > PATCH", "reconcile > handler child", "reconcile > handler child > PATCH",
			}
			if diff := cmp.Diff(want, tracer.take()); diff != "" {
				t.Errorf("spans of a new object (-want +got):\n%s", diff)
			}
			s.Remove()
			s.Settle()
			if got := tracer.take(); !slices.Contains(got, "reconcile > handler farewell: not yet") {
				t.Errorf("spans of a deletion are %q", got)
			}
		},
	})
}
