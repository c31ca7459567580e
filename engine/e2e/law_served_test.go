// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// thingsIn is a CRD with these versions; the last one is stored.
func thingsIn(group string, versions ...string) string {
	out := fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.%s}
spec:
  group: %s
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions:
`, group, group)
	for i, v := range versions {
		name, unserved := strings.CutPrefix(v, "!")
		out += fmt.Sprintf("    - {name: %s, served: %t, storage: %t, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n",
			name, !unserved, i == len(versions)-1)
	}
	return out
}

// TestAVersionThatIsServedNoMore: a CRD gets a second version and stops serving the first one. The
// objects, what they own, and their finalizers stay as they are.
func TestAVersionThatIsServedNoMore(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		version string
		after   func(t *testing.T, s *stage, running *cluster.Running, group string)
	}{
		"a configuration that names no version follows": {"", func(t *testing.T, s *stage, running *cluster.Running, group string) {
			t.Helper()
			things := plane.Objects("things.v2."+group, s.ns)
			for _, name := range []string{"one", "two", "three"} {
				things.Patch(t, name, `{"spec":{"value":"b"}}`)
				s.Await(t, 2, "level", name)
			}
			running.AwaitReady(t)
		}},
		"one that names it waits": {"v1.", func(t *testing.T, s *stage, running *cluster.Running, group string) {
			t.Helper()
			awaitCheck(t, running, "resource/things.v1."+group, ops.Warn, "version v2")
			s.works.Create(t, work("beside", "a"))
			s.Await(t, 1, "beside", "beside")
			plane.Apply(t, "", thingsIn(group, "v1", "v2"))
			running.AwaitReady(t)
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			group, other := "g"+rand.String(6)+".example.com", plane.Namespace(t)
			s.user.Allow(t, cluster.Rule(group, "things", "*"))
			plane.Apply(t, "", thingsIn(group, "v1"))
			t.Cleanup(func() { plane.Objects(crds, "").Delete(t, "things."+group) })
			op := s.operator(func(r *dsl.Resource) { r.OnReconcile("beside", s.Note("beside", nil)) })
			op.Scope.Namespaces = append(op.Scope.Namespaces, other)
			op.Resource("things."+test.version+group, func(r *dsl.Resource) {
				r.Owns(configMaps)
				r.OnReconcile("level", s.Note("level", func(ctx context.Context, r *dsl.Request) error {
					child := configMap(r.Object.GetName()+"-child", "x")
					child["metadata"].(map[string]any)["namespace"] = other
					_, err := r.Children.Apply(ctx, child, dsl.ChildSpec{Ownership: dsl.Labelled})
					return err
				}))
				r.OnDelete("farewell", s.Note("farewell", nil))
				r.OnDelete("unheld", s.Note("unheld", nil), dsl.NoFinalizer())
			})
			running := s.begin(t, op)
			names := []string{"one", "two", "three"}
			children := plane.Objects(configMaps, other)
			identity := func(version string) (all []string) {
				for _, name := range names {
					o := plane.Objects("things."+version+"."+group, s.ns).Get(t, name)
					c := children.Get(t, name+"-child")
					if o == nil || c == nil {
						t.Fatalf("%s or its child is gone", name)
					}
					all = append(all, fmt.Sprint(name, o.GetUID(), o.GetFinalizers(), o.GetDeletionTimestamp(), c.GetUID(), c.GetDeletionTimestamp()))
				}
				return all
			}
			for _, name := range names {
				o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": "Thing", "spec": map[string]any{"value": "a"}}}
				o.SetName(name)
				plane.Objects("things.v1."+group, s.ns).Create(t, o)
				s.Await(t, 1, "level", name)
				children.Await(t, name+"-child", "being made", func(*unstructured.Unstructured) bool { return true })
			}
			before := identity("v1")
			plane.Apply(t, "", thingsIn(group, "v1", "v2"))
			plane.Apply(t, "", thingsIn(group, "!v1", "v2"))
			s.proxy.Await(t, 1, func(r cluster.Request) bool { // whichever comes first
				return (cluster.On("list", "things")(r) || cluster.On("watch", "things")(r)) && r.Code == http.StatusNotFound
			})
			test.after(t, s, running, group)
			if diff := cmp.Diff(before, identity("v2")); diff != "" {
				t.Errorf("objects and children (-before +after):\n%s", diff)
			}
			for _, name := range names {
				if gone := append(s.Of("farewell", name), s.Of("unheld", name)...); len(gone) > 0 {
					t.Errorf("the living %s was released: %v", name, gone)
				}
			}
			plane.Objects("things.v2."+group, s.ns).Delete(t, "one")
			s.Await(t, 1, "farewell", "one")
			plane.Objects("things.v2."+group, s.ns).AwaitGone(t, "one")
			for _, name := range names {
				plane.Objects("things.v2."+group, s.ns).Delete(t, name)
				plane.Objects("things.v2."+group, s.ns).AwaitGone(t, name)
			}
			running.Stop(t)
		})
	}
}

// TestOneListOfNamespacesIsNotFound: a 404 to the list of namespaces ends none of them.
func TestOneListOfNamespacesIsNotFound(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.user.Allow(t, cluster.Rule("", "namespaces", "get", "list", "watch"))
	prefix := "team-" + rand.String(5) + "-"
	named(t, prefix+"a")
	here := plane.Objects(works, prefix+"a")
	op := s.operator(func(r *dsl.Resource) {
		r.OnReconcile("level", s.Note("level", nil))
		r.OnDelete("farewell", s.Note("farewell", nil))
		r.OnDelete("unheld", s.Note("unheld", nil), dsl.NoFinalizer())
	})
	op.Scope.Namespaces = []string{prefix + "*"}
	here.Create(t, work("w", "a"))
	running := s.begin(t, op)
	s.Await(t, 1, "level", "w")
	watch, list := cluster.On("watch", "namespaces"), cluster.On("list", "namespaces")
	before := len(s.proxy.Requests(watch))
	s.proxy.Inject(cluster.When{Match: watch, Times: 1}, cluster.Answer(apierrors.NewResourceExpired("too old")))
	s.proxy.Inject(cluster.When{Match: watch, Skip: 1, Times: 1}, cluster.Page)
	s.proxy.Inject(cluster.When{Match: list, Times: 1}, cluster.Page)
	s.proxy.CutWatches(watch)
	s.proxy.Await(t, 1, func(r cluster.Request) bool { return list(r) && r.Code == http.StatusNotFound })
	s.proxy.Await(t, before+3, watch)
	named(t, prefix+"b") // what is watched again is followed
	plane.Objects(works, prefix+"b").Create(t, work("x", "a"))
	s.Await(t, 1, "level", "x")
	here.Patch(t, "w", `{"spec":{"value":"b"}}`)
	s.Await(t, 2, "level", "w")
	running.AwaitReady(t)
	want := []string{s.said("level", "w")[0], "level update b"}
	if diff := cmp.Diff(want, s.said("", "w")); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	here.Delete(t, "w")
	s.Await(t, 1, "farewell", "w")
	plane.Objects(works, prefix+"b").Delete(t, "x")
	s.Await(t, 1, "farewell", "x")
	running.Stop(t)
}
