// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

// gateways is a resource whose plural cannot be guessed from its kind.
const gateways = "gateways.v1.example.org"

// keepsGateway makes the labelled Gateway web.
func keepsGateway(ctx ctx, r *dsl.Request) error {
	_, err := r.Children.Apply(ctx, map[string]any{
		"apiVersion": "example.org/v1", "kind": "Gateway", "metadata": map[string]any{"name": r.Object.GetName()},
	}, dsl.ChildSpec{Ownership: dsl.Labelled})
	return err
}

// TestADeletionWaitsForAChildWhoseKindIsNotServed holds that a kind which is not served, and is not declared any more, proves no
// child absent unless its CRD is gone.
func TestADeletionWaitsForAChildWhoseKindIsNotServed(t *testing.T) {
	begins := func(s *stage) {
		s.t.Helper()
		s.Serve(enginetest.Resource{Name: gateways, Kind: "Gateway"})
		s.begin()
	}
	// next is a version of the operator that does not declare the kind.
	next := func(s *stage, adjust ...func(*engine.Settings)) {
		op := dsl.New("op")
		op.Resource(foos, func(foo *dsl.Resource) { foo.OnReconcile("child", succeeds) })
		s.Process = s.Start(op, adjust...)
	}
	stops := func(s *stage) {
		s.t.Helper()
		if err := s.Process.Stop(); err != nil {
			s.t.Error(err)
		}
	}
	waits := func(s *stage, why string) {
		s.t.Helper()
		s.Advance(5 * time.Minute)
		if s.web() == nil {
			s.t.Fatal("the owner is gone before its child")
		}
		held := about(s.Events(), "web", "DeletionHeld")
		if len(held) == 0 || !strings.Contains(held[0].Note, "Deletion is held") || !strings.Contains(held[0].Note, why) {
			s.t.Errorf("Events are %v, want one DeletionHeld that says %q", held, why)
		}
	}
	gone := func(s *stage) {
		s.t.Helper()
		s.Advance(6 * time.Minute) // a pass that could not be finished waits for 5 minutes at most
		if s.web() != nil {
			s.t.Error("the owner is there still")
		}
	}
	childless := func(s *stage) {
		s.t.Helper()
		if gone(s); s.Get(gateways, "default", "web") != nil {
			s.t.Error("the child is left behind")
		}
	}
	operator := func(foo *dsl.Resource, _ *journal) {
		foo.Owns(gateways)
		foo.OnReconcile("child", keepsGateway)
	}
	scenarios(t, map[string]scenario{
		"the kind is declared still": {operator, func(s *stage) {
			begins(s)
			s.Withdraw(gateways)
			s.Advance(time.Minute)
			s.remove()
			waits(s, "deleting Gateway default/web")
			s.Restore(gateways)
			childless(s)
		}},
		"the kind is declared still, and the process is another one": {operator, func(s *stage) {
			begins(s)
			s.Withdraw(gateways)
			s.Process.Restart()
			s.remove()
			waits(s, "gateways.v1.example.org: it is not served")
			s.Restore(gateways)
			childless(s)
		}},
		"its CRD is there": {operator, func(s *stage) {
			begins(s)
			stops(s)
			s.Withdraw(gateways)
			s.remove()
			next(s)
			waits(s, "its CRD gateways.example.org is there")
			s.Restore(gateways)
			childless(s)
		}},
		"its CRD is there, and the register has the kind": {operator, func(s *stage) {
			registers := func(with *engine.Settings) { with.Namespace = "default" }
			s.Serve(enginetest.Resource{Name: gateways, Kind: "Gateway"})
			s.Process = s.Start(s.Operator, registers)
			s.Create(web)
			s.Settle()
			stops(s)
			s.Withdraw(gateways)
			s.remove()
			next(s, registers)
			waits(s, "its CRD gateways.example.org is there")
			s.Restore(gateways)
			childless(s)
		}},
		"CRDs may not be read": {operator, func(s *stage) {
			begins(s)
			stops(s)
			s.Withdraw(gateways)
			s.Forbid("list", crdsResource)
			s.Forbid("watch", crdsResource)
			s.remove()
			next(s)
			waits(s, "forbidden")
			s.Restore(gateways)
			childless(s)
		}},
		"its API is broken": {operator, func(s *stage) {
			begins(s)
			stops(s)
			s.Break("example.org")
			s.remove()
			next(s)
			waits(s, "API example.org/v1 is broken")
			s.Mend("example.org")
			childless(s)
		}},
		"it has moved to another version": {operator, func(s *stage) {
			begins(s)
			stops(s)
			next(s)
			s.Settle()
			s.Update(crdsResource, "", "gateways.example.org", func(o *unstructured.Unstructured) {
				versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
				versions[0].(map[string]any)["name"] = "v2"
				if err := unstructured.SetNestedSlice(o.Object, versions, "spec", "versions"); err != nil {
					t.Error(err)
				}
			})
			s.remove()
			if gone(s); s.Get("gateways.v2.example.org", "default", "web") != nil {
				s.t.Error("the child is left behind")
			}
		}},
		"its CRD is gone": {operator, func(s *stage) {
			begins(s)
			stops(s)
			s.Unserve(gateways)
			s.Advance(2 * time.Second)
			s.remove()
			next(s)
			s.Advance(20 * time.Second)
			if s.web() != nil {
				s.t.Error("the owner is there still")
			}
			if held := about(s.Events(), "web", "DeletionHeld"); len(held) > 0 {
				s.t.Errorf("Events are %v, want no DeletionHeld", held)
			}
		}},
	})
}
