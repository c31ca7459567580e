// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// elsewhere is a child in the namespace that the work names.
const elsewhere = `
elsewhere:
  ownership: labelled
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: "${self.metadata.name}-elsewhere", namespace: "${self.spec.value}"}
`

// makeNamespace makes a namespace of this name until the test ends.
func makeNamespace(t *testing.T, name string) {
	t.Helper()
	spaces := plane.Kubernetes().CoreV1().Namespaces()
	if _, err := spaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := spaces.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

func TestApplyMissesANamespace(t *testing.T) {
	t.Parallel()
	for name, scope := range map[string]func(missing string) string{
		"that the operator's scope names":     func(missing string) string { return missing },
		"that the operator's scope describes": func(missing string) string { return missing[:len(missing)-2] + "*" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, missing := newApplyStage(t, nil, made("", "configmaps")), "later-"+rand.String(8)
			s.user.Allow(t, cluster.Rule("", "namespaces", "get", "list", "watch"))
			s.user.Allow(t, made("", "configmaps"))
			s.run(t, beside+elsewhere, scope(missing))
			s.works.Create(t, work("w", missing))
			words := []string{"ConfigMap", missing + "/w-elsewhere", "there is no namespace " + missing, "create it"}
			s.endsWell(t, "w", trouble{"NamespaceMissing", words, func(t *testing.T) { makeNamespace(t, missing) }})
			plane.Objects(configMaps, missing).Await(t, "w-elsewhere", "being made", there)
			s.works.Delete(t, "w")
			s.works.AwaitGone(t, "w")
			plane.Objects(configMaps, missing).AwaitGone(t, "w-elsewhere")
		})
	}
}

// TestApplyOutlivesANamespace: the namespace of a child is deleted under it. That is said, and does
// not keep the owner.
func TestApplyOutlivesANamespace(t *testing.T) {
	t.Parallel()
	other := "later-" + rand.String(8)
	spaces := plane.Kubernetes().CoreV1().Namespaces()
	makeNamespace(t, other)
	s := newApplyStage(t, nil, made("", "configmaps"))
	s.user.Allow(t, made("", "configmaps")) // a role in the namespace would go with it
	s.run(t, beside+elsewhere, other)
	s.works.Create(t, work("w", other))
	s.applied(t, "w")
	// It is slow to go. A finalizer of what is in it would do, too, but is looked at every eight seconds.
	space := plane.Objects("namespaces.v1", "")
	space.Patch(t, other, `{"metadata":{"finalizers":["e2e.example.com/slow"]}}`)
	if err := spaces.Delete(t.Context(), other, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	words := []string{"ConfigMap", other + "/w-elsewhere", "its namespace is being deleted"}
	s.endsWell(t, "w", trouble{"NamespaceMissing", words, func(t *testing.T) {
		space.Patch(t, other, `{"metadata":{"finalizers":null}}`)
		space.AwaitGone(t, other)
		if _, err := spaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}})
}

// TestApplyMissesARightElsewhere: of two namespaces, the operator may look at one.
func TestApplyMissesARightElsewhere(t *testing.T) {
	t.Parallel()
	s, other := newApplyStage(t, nil, made("", "configmaps")), plane.Namespace(t)
	s.run(t, beside+elsewhere, other)
	s.works.Create(t, work("w", other))
	words := []string{"ConfigMap " + other + "/w-elsewhere", "configmaps is forbidden", "list, watch in namespace " + other, "allow it to the operator"}
	s.endsWell(t, "w", trouble{"Forbidden", words, func(t *testing.T) { s.user.AllowIn(t, other, made("", "configmaps")) }})
}

// TestApplyMayNotDelete: what is wanted no more cannot be taken away. The rest is kept up, and it goes
// when the right is there.
func TestApplyMayNotDelete(t *testing.T) {
	t.Parallel()
	s := newApplyStage(t, nil, cluster.Rule("", "configmaps", "get", "list", "watch", "create", "patch"))
	s.run(t, beside+"gone:\n  includeWhen: self.spec.value != 'none'\n  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: \"${self.metadata.name}-gone\"}}")
	s.works.Create(t, work("w", "a"))
	s.applied(t, "w")
	s.works.Patch(t, "w", `{"spec":{"value":"none"}}`)
	words := []string{"ConfigMap " + s.ns + "/w-gone", `cannot delete resource "configmaps"`, "allow it to the operator"}
	s.endsWell(t, "w", trouble{"Forbidden", words, func(t *testing.T) { s.user.AllowIn(t, s.ns, cluster.Rule("", "configmaps", "delete")) }})
	s.maps.AwaitGone(t, "w-gone")
}

// TestApplyMissesACRD: children of a kind that is not served yet wait for it, and no others do.
func TestApplyMissesACRD(t *testing.T) {
	t.Parallel()
	group := "g" + rand.String(6) + ".example.com"
	s := newApplyStage(t, nil, made("", "configmaps"), made(group, "things"))
	s.user.Allow(t, cluster.Rule("apiextensions.k8s.io", "customresourcedefinitions", "get", "list", "watch"))
	s.run(t, beside+strings.ReplaceAll(`
thing: {apiVersion: GROUP/v1, kind: Thing, metadata: {name: "${self.metadata.name}-thing"}}
after: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${children.thing.metadata.name}-after"}}
besides: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${children.beside.metadata.name}-besides"}}
`, "GROUP", group))
	s.works.Create(t, work("w", "a"))
	words := []string{"Thing", "w-thing", "things.v1." + group, "is its CRD installed?"}
	s.endsWell(t, "w", trouble{"ApplyFailed", words, func(t *testing.T) {
		s.maps.Await(t, "w-beside-besides", "being made", there)
		if s.maps.Get(t, "w-thing-after") != nil {
			t.Error("what needs the Thing is made without it")
		}
		plane.Apply(t, "", strings.ReplaceAll(thingCRD, "GROUP", group))
	}})
	s.maps.Await(t, "w-thing-after", "being made", there)
	things := plane.Objects("things.v1."+group, s.ns)
	uid := things.Await(t, "w-thing", "being made", there).GetUID()

	// The CRD goes, and its objects with it.
	plane.Objects(crds, "").Delete(t, "things."+group)
	plane.Objects(crds, "").AwaitGone(t, "things."+group)
	s.awaitVerdict(t, "w", "ApplyFailed", "is its CRD installed?")
	if s.maps.Get(t, "w-thing-after") == nil {
		t.Error("what needs the Thing is gone with it")
	}
	plane.Apply(t, "", strings.ReplaceAll(thingCRD, "GROUP", group))
	s.applied(t, "w")
	things.Await(t, "w-thing", "being recreated", func(o *unstructured.Unstructured) bool { return o.GetUID() != uid })
	plane.Objects(crds, "").Delete(t, "things."+group)
}
