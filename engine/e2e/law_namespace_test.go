// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// TestNamespaceDeletedInMidCycle: the namespace of many children is being deleted while their owners go on trying to make
// them, and then the owners' own is. Few requests are refused, no object is held, and a new namespace is served.
func TestNamespaceDeletedInMidCycle(t *testing.T) {
	t.Parallel()
	const owners, rounds = 20, 4
	s, other := newStage(t), plane.Namespace(t)
	maps, spaces := plane.Objects(configMaps, other), plane.Objects("namespaces.v1", "")
	s.wide(t, other, func(r *dsl.Resource) {
		r.Limits = &dsl.Limits{Deletions: dsl.DeletionLimits{PerMinute: dsl.Unlimited, Share: dsl.Unlimited}}
		r.Owns(configMaps)
		r.OnReconcile("level", s.Note("level", func(ctx context.Context, r *dsl.Request) error {
			child := configMap(r.Object.GetName(), "x")
			child["metadata"] = map[string]any{"name": r.Object.GetName(), "namespace": other}
			_, err := r.Children.Apply(ctx, child, dsl.ChildSpec{Handler: "level", Name: "settings", Ownership: dsl.Labelled})
			return err
		}))
		r.OnDelete("farewell", s.Note("farewell", nil))
	})
	name := func(i int) string { return fmt.Sprintf("w%d", i) }
	for i := range owners {
		s.works.Create(t, work(name(i), "a"))
	}
	for i := range owners {
		maps.Await(t, name(i), "being made", func(*unstructured.Unstructured) bool { return true })
	}
	holder := configMap("holder", "x")
	holder["metadata"] = map[string]any{"name": "holder", "finalizers": []any{"example.com/hold"}}
	maps.Create(t, &unstructured.Unstructured{Object: holder})
	refused := func() int {
		return len(s.proxy.Requests(func(r cluster.Request) bool { return r.Code == http.StatusForbidden && r.Namespace == other }))
	}
	spaces.Delete(t, other)
	for i := range owners {
		s.Await(t, rounds, "level", name(i)) // made, seen to be gone, and tried twice at least
	}
	if n := refused(); n == 0 || n > owners {
		t.Errorf("%d requests were refused by a namespace that is being deleted, want a few", n)
	}
	maps.Patch(t, "holder", `{"metadata":{"finalizers":null}}`)
	spaces.AwaitGone(t, other)
	spaces.Create(t, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": other}}})
	for i := range owners {
		maps.Await(t, name(i), "being made in the new namespace", func(*unstructured.Unstructured) bool { return true })
	}
	spaces.Delete(t, s.ns)
	for i := range owners {
		s.Await(t, 1, "farewell", name(i))
		maps.AwaitGone(t, name(i))
	}
	spaces.AwaitGone(t, s.ns)
}

// TestNamespaceDeletedWithItsOwners: a namespace goes although delete handlers of the objects in it would make something there. Each
// of them is refused once, and the others run.
func TestNamespaceDeletedWithItsOwners(t *testing.T) {
	t.Parallel()
	const owners = 5
	s, spaces := newStage(t), plane.Objects("namespaces.v1", "")
	s.play(t, func(r *dsl.Resource) {
		r.Owns(configMaps)
		r.OnReconcile("level", s.Note("level", func(ctx context.Context, r *dsl.Request) error {
			_, err := r.Children.Apply(ctx, configMap(r.Object.GetName(), "x"), dsl.ChildSpec{Handler: "level", Name: "settings"})
			return err
		}))
		r.OnDelete("backup", s.Note("backup", func(ctx context.Context, r *dsl.Request) error {
			backup := configMap(r.Object.GetName()+"-backup", "x")
			backup["metadata"].(map[string]any)["namespace"] = s.ns
			_, err := r.Client.Create(ctx, backup)
			return err
		}))
		r.OnDelete("farewell", s.Note("farewell", nil))
	})
	for i := range owners {
		s.works.Create(t, work(fmt.Sprintf("w%d", i), "a"))
	}
	for i := range owners {
		s.maps.Await(t, fmt.Sprintf("w%d", i), "being made", func(*unstructured.Unstructured) bool { return true })
	}
	spaces.Delete(t, s.ns)
	spaces.AwaitGone(t, s.ns)
	for i := range owners {
		s.Await(t, 1, "backup", fmt.Sprintf("w%d", i))
		s.Await(t, 1, "farewell", fmt.Sprintf("w%d", i))
	}
	refused := s.proxy.Requests(func(r cluster.Request) bool {
		return r.Code == http.StatusForbidden && r.Verb == "create" && r.Resource == "configmaps"
	})
	if n := len(refused); n == 0 || n > owners {
		t.Errorf("%d creations were refused, want one for each of %d owners at most", n, owners)
	}
}
