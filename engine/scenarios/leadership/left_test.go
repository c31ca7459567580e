// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package leadership_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// tenants is a replica that works in namespaces with the label tenant, on Foos with the label tier=gold. It holds them by a finalizer.
func tenants(j *kit.Journal, id string) *dsl.Operator {
	op := dsl.New("op")
	op.Settings.LeaderElection = dsl.LeaderElection{Mode: dsl.LeaderLease, Namespace: "default"}
	op.Scope.NamespaceSelector = "tenant"
	op.Resource(scene.Foos, func(foo *dsl.Resource) {
		foo.LabelSelector = "tier=gold"
		note := func(what string) dsl.Func {
			return func(_ context.Context, r *dsl.Request) error {
				j.Add(id + " " + what + " " + r.Object.GetNamespace())
				return nil
			}
		}
		foo.OnReconcile("sync", note("sync"))
		foo.OnDelete("bye", note("left"))
	})
	return op
}

// TestTheNextLeaderLetsGoWhatADeadOneLeft holds that an object which left while a leader died is let go by the next one that has seen
// it leave, once, and that nothing else is.
func TestTheNextLeaderLetsGoWhatADeadOneLeft(t *testing.T) {
	label := func(key, value string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{key: value}) }
	}
	leave := func(s *scene.Stage) {
		s.Update("namespaces.v1", "", "a", func(o *unstructured.Unstructured) { o.SetLabels(nil) })
	}
	lives := func(s *scene.Stage, finalizers int) {
		s.T.Helper()
		if o := s.Get(scene.Foos, "a", "web"); o == nil || len(o.GetFinalizers()) != finalizers {
			s.T.Errorf("the object is %v, want %d finalizers", o, finalizers)
		}
	}
	tests := map[string]struct {
		play func(s *scene.Stage, first *kit.Process)
		// want are the handlers that run from then on.
		want string
		// then looks at the object, nil where it is to be there without a finalizer.
		then func(s *scene.Stage)
	}{
		"its namespace left the scope": {func(s *scene.Stage, first *kit.Process) {
			first.Sever()
			leave(s)
			first.Kill()
		}, "second left a", nil},
		"it left the selector": {func(s *scene.Stage, first *kit.Process) {
			first.Sever()
			s.Update(scene.Foos, "a", "web", label("tier", "lead"))
			first.Kill()
		}, "second left a", nil},
		"and the API server fails for a while": {func(s *scene.Stage, first *kit.Process) {
			first.Sever()
			leave(s)
			first.Kill()
			end := s.FailWhile("get", scene.Foos, scene.ErrAgain)
			s.Advance(5 * time.Minute)
			s.Called()
			end()
		}, "second left a", nil},
		"the leader let it go before it died": {func(s *scene.Stage, first *kit.Process) {
			leave(s)
			s.Settle()
			first.Kill()
		}, "first left a", nil},
		"its namespace came back": {func(s *scene.Stage, first *kit.Process) {
			first.Sever()
			leave(s)
			s.Settle()
			s.Update("namespaces.v1", "", "a", label("tenant", "x"))
			first.Kill()
		}, "second sync a", func(s *scene.Stage) { lives(s, 1) }},
		"somebody else took the finalizer off": {func(s *scene.Stage, first *kit.Process) {
			first.Sever()
			leave(s)
			s.Update(scene.Foos, "a", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			first.Kill()
		}, "", nil},
		"a finalizer of somebody else stays": {func(s *scene.Stage, first *kit.Process) {
			first.Sever()
			leave(s)
			s.Update(scene.Foos, "a", "web", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/theirs"}) })
			first.Kill()
		}, "", func(s *scene.Stage) { lives(s, 1) }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: scene.Syncs, Play: func(s *scene.Stage) {
				s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {tenant: x}}}`)
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, namespace: a, labels: {tier: gold}}, spec: {size: 1}}`)
				first := s.Start(tenants(&s.Journal, "first"))
				s.Advance(time.Second)
				s.Start(tenants(&s.Journal, "second"))
				s.Advance(time.Second)
				s.Called("first sync a")
				tt.play(s, first)
				s.Advance(10 * time.Minute)
				if got := strings.Join(s.Take(), ", "); got != tt.want {
					s.T.Errorf("it ran %q, want %q", got, tt.want)
				}
				if tt.then == nil {
					tt.then = func(s *scene.Stage) { lives(s, 0) }
				}
				tt.then(s)
			}})
		})
	}
}
