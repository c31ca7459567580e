// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// inOrder is a Deployment that needs a ConfigMap.
const inOrder = `
settings: {deleteOrder: reverse, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}-settings"}}}
web:
  apiVersion: apps/v1
  kind: Deployment
  metadata: {name: "${self.metadata.name}-web"}
  spec:
    replicas: 1
    selector: {matchLabels: {app: "${self.metadata.name}"}}
    template:
      metadata: {labels: {app: "${self.metadata.name}"}}
      spec: {containers: [{name: web, image: i, envFrom: [{configMapRef: {name: "${children.settings.metadata.name}"}}]}]}
`

// TestApplyDeletesOwnedChildrenInOrder: a Deployment goes with all that it owns, before the ConfigMap that it needs, and that
// before the owner.
func TestApplyDeletesOwnedChildrenInOrder(t *testing.T) {
	t.Parallel()
	s := newApplyStage(t, nil, made("", "configmaps"), made("apps", "deployments"))
	s.run(t, beside+inOrder)
	s.works.Create(t, work("w", "a"))
	s.applied(t, "w")
	sets, webs := plane.Objects("replicasets.v1.apps", s.ns), plane.Objects(deployments, s.ns)
	var set string
	waitFor(t, "the Deployment's ReplicaSet", func() bool {
		for _, one := range sets.List(t) {
			set = one.GetName()
		}
		return set != ""
	})
	sets.Patch(t, set, `{"metadata":{"finalizers":["e2e.example.com/held"]}}`)
	mark := plane.Mark(t)
	s.works.Delete(t, "w")
	ends := func(o *unstructured.Unstructured) bool { return o.GetDeletionTimestamp() != nil }
	webs.Await(t, "w-web", "being deleted", ends)
	sets.Await(t, set, "being deleted", ends)
	if settings := s.maps.Get(t, "w-settings"); settings == nil || ends(settings) {
		t.Error("the ConfigMap goes before what the Deployment owns")
	}
	sets.Patch(t, set, `{"metadata":{"finalizers":null}}`)
	for _, gone := range []struct {
		objects *cluster.Objects
		name    string
	}{{webs, "w-web"}, {s.maps, "w-settings"}, {s.works, "w"}} {
		gone.objects.AwaitGone(t, gone.name)
	}
	if got := plane.Writes(t, s.user.Name, mark).Of("configmaps", "w-settings"); len(got) != 1 {
		t.Errorf("the ConfigMap is written to\n%s", got)
	}
}

// TestApplyLeavesOrderedChildrenBehind: who deletes an owner without its children keeps them.
func TestApplyLeavesOrderedChildrenBehind(t *testing.T) {
	t.Parallel()
	s := newApplyStage(t, nil, made("", "configmaps"), made("apps", "deployments"))
	s.run(t, beside+inOrder)
	s.works.Create(t, work("w", "a"))
	s.applied(t, "w")
	s.works.Delete(t, "w", metav1.DeletePropagationOrphan)
	s.works.AwaitGone(t, "w")
	s.works.Create(t, work("next", "a"))
	s.applied(t, "next")
	if o := s.maps.Get(t, "w-settings"); o == nil || o.GetDeletionTimestamp() != nil {
		t.Error("the ConfigMap is gone")
	}
}
