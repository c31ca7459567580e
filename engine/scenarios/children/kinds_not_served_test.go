// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// gateways is a resource whose plural cannot be guessed from its kind.
const gateways = "gateways.v1.example.org"

// keepsGateway makes the labelled Gateway web.
func keepsGateway(ctx context.Context, r *dsl.Request) error {
	_, err := r.Children.Apply(ctx, map[string]any{
		"apiVersion": "example.org/v1", "kind": "Gateway", "metadata": map[string]any{"name": r.Object.GetName()},
	}, dsl.ChildSpec{Ownership: dsl.Labelled})
	return err
}

// TestADeletionWaitsForAChildWhoseKindIsNotServed holds that a kind which is not served, and is not declared any more, proves no
// child absent unless its CRD is gone.
func TestADeletionWaitsForAChildWhoseKindIsNotServed(t *testing.T) {
	begins := func(s *scene.Stage) {
		s.T.Helper()
		s.Serve(kit.Resource{Name: gateways, Kind: "Gateway"})
		s.Begin()
	}
	// next is a version of the operator that does not declare the kind.
	next := func(s *scene.Stage, adjust ...func(*engine.Settings)) {
		op := dsl.New("op")
		op.Resource(scene.Foos, func(foo *dsl.Resource) { foo.OnReconcile("child", scene.Succeeds) })
		s.Process = s.Start(op, adjust...)
	}
	stops := func(s *scene.Stage) {
		s.T.Helper()
		if err := s.Process.Stop(); err != nil {
			s.T.Error(err)
		}
	}
	waits := func(s *scene.Stage, why string) {
		s.T.Helper()
		s.Advance(5 * time.Minute)
		if s.Web() == nil {
			s.T.Fatal("the owner is gone before its child")
		}
		held := scene.EventsAbout(s.Events(), "web", "DeletionHeld")
		if len(held) == 0 || !strings.Contains(held[0].Note, "Deletion is held") || !strings.Contains(held[0].Note, why) {
			s.T.Errorf("Events are %v, want one DeletionHeld that says %q", held, why)
		}
	}
	gone := func(s *scene.Stage) {
		s.T.Helper()
		s.Advance(6 * time.Minute) // a reconcile that could not be finished waits for 5 minutes at most
		if s.Web() != nil {
			s.T.Error("the owner is there still")
		}
	}
	childless := func(s *scene.Stage) {
		s.T.Helper()
		if gone(s); s.Get(gateways, "default", "web") != nil {
			s.T.Error("the child is left behind")
		}
	}
	operator := func(foo *dsl.Resource, _ *kit.Journal) {
		foo.Owns(gateways)
		foo.OnReconcile("child", keepsGateway)
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"the kind is declared still": {Operator: operator, Play: func(s *scene.Stage) {
			begins(s)
			s.Withdraw(gateways)
			s.Advance(time.Minute)
			s.Remove()
			waits(s, "deleting Gateway default/web")
			s.Restore(gateways)
			childless(s)
		}},
		"the kind is declared still, and the process is another one": {Operator: operator, Play: func(s *scene.Stage) {
			begins(s)
			s.Withdraw(gateways)
			s.Process.Restart()
			s.Remove()
			waits(s, "gateways.v1.example.org: it is not served")
			s.Restore(gateways)
			childless(s)
		}},
		"its CRD is there": {Operator: operator, Play: func(s *scene.Stage) {
			begins(s)
			stops(s)
			s.Withdraw(gateways)
			s.Remove()
			next(s)
			waits(s, "its CRD gateways.example.org is there")
			s.Restore(gateways)
			childless(s)
		}},
		"its CRD is there, and the register has the kind": {Operator: operator, Play: func(s *scene.Stage) {
			registers := func(with *engine.Settings) { with.Namespace = "default" }
			s.Serve(kit.Resource{Name: gateways, Kind: "Gateway"})
			s.Process = s.Start(s.Operator, registers)
			s.Create(scene.Web)
			s.Settle()
			stops(s)
			s.Withdraw(gateways)
			s.Remove()
			next(s, registers)
			waits(s, "its CRD gateways.example.org is there")
			s.Restore(gateways)
			childless(s)
		}},
		"CRDs may not be read": {Operator: operator, Play: func(s *scene.Stage) {
			begins(s)
			stops(s)
			s.Withdraw(gateways)
			s.Forbid("list", scene.CRDs)
			s.Forbid("watch", scene.CRDs)
			s.Remove()
			next(s)
			waits(s, "forbidden")
			s.Restore(gateways)
			childless(s)
		}},
		"its API is broken": {Operator: operator, Play: func(s *scene.Stage) {
			begins(s)
			stops(s)
			s.Break("example.org")
			s.Remove()
			next(s)
			waits(s, "API example.org/v1 is broken")
			s.Mend("example.org")
			childless(s)
		}},
		"it has moved to another version": {Operator: operator, Play: func(s *scene.Stage) {
			begins(s)
			stops(s)
			next(s)
			s.Settle()
			s.Update(scene.CRDs, "", "gateways.example.org", func(o *unstructured.Unstructured) {
				versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
				versions[0].(map[string]any)["name"] = "v2"
				if err := unstructured.SetNestedSlice(o.Object, versions, "spec", "versions"); err != nil {
					t.Error(err)
				}
			})
			s.Remove()
			if gone(s); s.Get("gateways.v2.example.org", "default", "web") != nil {
				s.T.Error("the child is left behind")
			}
		}},
		"its CRD is gone": {Operator: operator, Play: func(s *scene.Stage) {
			begins(s)
			stops(s)
			s.Unserve(gateways)
			s.Advance(2 * time.Second)
			s.Remove()
			next(s)
			s.Advance(20 * time.Second)
			if s.Web() != nil {
				s.T.Error("the owner is there still")
			}
			if held := scene.EventsAbout(s.Events(), "web", "DeletionHeld"); len(held) > 0 {
				s.T.Errorf("Events are %v, want no DeletionHeld", held)
			}
		}},
	})
}
