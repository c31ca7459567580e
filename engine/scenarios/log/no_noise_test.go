// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package log_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestNothingIsLoggedOfHealthyObjects holds that a fault which passes by itself, or is somebody else's, leaves no Event about
// an object and no error in the log.
func TestNothingIsLoggedOfHealthyObjects(t *testing.T) {
	broken := errors.New("connection reset by peer")
	tests := map[string]struct {
		fault func(s *scene.Stage)
		lines []string
	}{
		"one write of many gets no answer": {func(s *scene.Stage) {
			s.FailNext("patch", scene.Foos, broken)
			s.Resize(2)
			s.Advance(time.Minute)
		}, nil},
		"one write of many fails in the server": {func(s *scene.Stage) {
			s.FailNext("patch", scene.Foos, apierrors.NewInternalError(errors.New("a hiccup")))
			s.Resize(2)
			s.Advance(time.Minute)
		}, []string{`"level"=0 "msg"="reconcile could not be finished" .*"handwerk.warning"=true .*hiccup`, `"level"=0 "msg"="reconcile finished again"`}},
		"a write is refused once, by a server that does not know its roles yet": {func(s *scene.Stage) {
			s.FailNext("patch", scene.Foos, apierrors.NewForbidden(schema.GroupResource{Group: "example.com", Resource: "foos"}, "web", errors.New("RBAC: not yet")))
			s.Resize(2)
			s.Advance(time.Minute)
		}, []string{`"level"=0 "msg"="handler will be tried again" .*"handwerk.warning"=true .*RBAC: not yet`, `"msg"="handler works again"`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{
				Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnUpdate("sync", j.Note("sync", scene.Reports)) },
				Play: func(s *scene.Stage) {
					log := scene.LaunchWithLog(s, "")
					s.Create(scene.Web)
					log()
					s.Events()
					tt.fault(s)
					if events := s.Events(); len(events) > 0 {
						t.Errorf("Events %+v", events)
					}
					s.WantLines(log, tt.lines...)
				},
			})
		})
	}
}

// refusals counts requests that were answered with 403.
type refusals struct {
	next http.RoundTripper
	n    atomic.Int64
}

func (r *refusals) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusForbidden {
		r.n.Add(1)
	}
	return response, err
}

// TestANamespaceThatIsBeingDeletedIsLeftAlone holds that many objects in a namespace that is being deleted do not send
// requests that it refuses, again and again, and that a new namespace of that name is served soon.
func TestANamespaceThatIsBeingDeletedIsLeftAlone(t *testing.T) {
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.Deployments)
			foo.OnReconcile("child", func(ctx context.Context, r *dsl.Request) error {
				child := scene.DeploymentNamed(r.Object.GetName(), 1)
				child["metadata"].(map[string]any)["namespace"] = "shop"
				_, err := r.Children.Apply(ctx, child, dsl.ChildSpec{Ownership: dsl.Labelled})
				return err
			})
		},
		Play: func(s *scene.Stage) {
			const objects = 50
			s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: shop, finalizers: [example.com/hold]}}`)
			for i := range objects {
				s.Create(fmt.Sprintf(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web-%d}, spec: {size: 1}}`, i))
			}
			refusals := &refusals{}
			s.Process = s.Start(s.Operator, func(e *engine.Settings) {
				e.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
					refusals.next = next
					return refusals
				})
			})
			s.Delete("namespaces.v1", "", "shop")
			s.Advance(time.Minute)
			refused := refusals.n.Load()
			if refused == 0 || refused > 20 {
				t.Errorf("%d requests were refused in a minute, want a few", refused)
			}
			s.Update("namespaces.v1", "", "shop", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: shop}}`)
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: late}, spec: {size: 1}}`)
			s.Advance(time.Minute)
			if s.Get(scene.Deployments, "shop", "late") == nil {
				t.Error("an object of the new namespace has no child")
			}
		},
	})
}
