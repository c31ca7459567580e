// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// publisher keeps a ConfigMap beside its object and one in the tenant's namespace, and reports in the
// status what is in the first.
const publisher = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: apply}
resources:
  - resource: works.v1.e2e.example.com
    handlers:
      - id: parts
        apply:
          site:
            template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}-site"}, data: {url: genuine, value: "${self.spec.other}"}}
          far:
            ownership: labelled
            template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}-far", namespace: TENANT}}
      - id: note
        causes: [reconcile]
        set: {status: {url: "${children.?site.?data.?url.orValue('none')}"}}
`

// TestForgedChild: a tenant who may create ConfigMaps in a namespace of his own gives an object in
// another one no child, whatever he writes onto them.
func TestForgedChild(t *testing.T) {
	t.Parallel()
	both := []string{plane.Namespace(t), plane.Namespace(t)}
	slices.Sort(both)
	tenant, ns := both[0], both[1] // what is his comes first
	s := &applyStage{ns: ns, user: plane.User("apply"), works: plane.Objects(works, ns), maps: plane.Objects(configMaps, ns)}
	for _, in := range both {
		s.user.AllowIn(t, in, cluster.Rule("e2e.example.com", "works", "get", "list", "watch", "patch"),
			cluster.Rule("e2e.example.com", "works/status", "patch"), eventRule(), made("", "configmaps"))
	}
	attacker := plane.User("tenant")
	attacker.AllowIn(t, tenant, cluster.Rule("", "configmaps", "*"))
	his, err := dynamic.NewForConfig(attacker.Config())
	if err != nil {
		t.Fatal(err)
	}
	maps := his.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(tenant)
	op := parsed(t, strings.ReplaceAll(publisher, "TENANT", tenant), both...)
	running := cluster.Run(t, op, engine.Settings{Config: s.user.Config()})
	running.AwaitReady(t)

	s.works.Create(t, work("w", "a"))
	s.works.Await(t, "w", "its status", func(o *unstructured.Unstructured) bool { return status(o, "url") == "genuine" })
	genuine, err := maps.Get(t.Context(), "w-far", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owner, yes := s.works.Get(t, "w"), true
	for name, tie := range map[string]func(*unstructured.Unstructured){
		"by-label": func(o *unstructured.Unstructured) { o.SetLabels(genuine.GetLabels()) },
		"by-reference": func(o *unstructured.Unstructured) {
			o.SetOwnerReferences([]metav1.OwnerReference{{
				APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(), Controller: &yes,
			}})
		},
	} {
		forged := &unstructured.Unstructured{Object: configMap(name, "forged")}
		forged.Object["data"] = map[string]any{"url": "forged"}
		forged.SetAnnotations(genuine.GetAnnotations())
		notes := forged.GetAnnotations()
		notes["apply.handwerk.dev/child"] = "parts/site"
		forged.SetAnnotations(notes)
		forged.SetFinalizers([]string{"e2e.example.com/hold"})
		tie(forged)
		if _, err := maps.Create(t.Context(), forged, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, value := range []string{"b", "c"} { // when the second is seen, the pass of the first is over
		s.works.Patch(t, "w", `{"spec":{"other":"`+value+`"}}`)
		s.maps.Await(t, "w-site", "the change", func(o *unstructured.Unstructured) bool { return dataValue(o) == value })
		if url := status(s.works.Get(t, "w"), "url"); url != "genuine" {
			t.Errorf("the status says %q", url)
		}
	}
	s.works.Delete(t, "w")
	s.works.AwaitGone(t, "w")
	plane.Objects(configMaps, tenant).AwaitGone(t, "w-far")
	if o := plane.Objects(configMaps, tenant).Get(t, "by-label"); o == nil || going(o) {
		t.Error("what was forged is taken away")
	}
}

// TestChildrenOfALostRecord: labelled children of an owner that has lost its inventory are entered again when the operator
// starts, and are the same objects.
func TestChildrenOfALostRecord(t *testing.T) {
	t.Parallel()
	other := plane.Namespace(t)
	s := newApplyStage(t, []string{other}, made("", "configmaps"))
	children := strings.ReplaceAll(beside+chain, "OTHER", other)
	s.run(t, children, other)
	s.works.Create(t, work("w", "a"))
	s.applied(t, "w")
	far := plane.Objects(configMaps, other)
	before := far.Get(t, "w-a")
	s.running.Stop(t)
	s.works.Patch(t, "w", `{"metadata":{"annotations":{"apply.handwerk.dev/children":null}}}`)
	s.run(t, children, other)
	s.works.Await(t, "w", "its record", func(o *unstructured.Unstructured) bool {
		text := o.GetAnnotations()["apply.handwerk.dev/children"]
		return containsAll(text, "w-a", "w-b", "w-c", string(o.GetUID()))
	})
	s.applied(t, "w")
	if after := far.Get(t, "w-a"); after.GetUID() != before.GetUID() || after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("the child was written to: %v", after.Object["metadata"])
	}
	s.works.Delete(t, "w")
	s.works.AwaitGone(t, "w")
	for _, name := range []string{"w-a", "w-c"} {
		far.AwaitGone(t, name)
	}
}

// TestChildOfAnEarlierOwner: an object that is made again under its name waits until the garbage
// collector has taken the children of the one before, and goes on then.
func TestChildOfAnEarlierOwner(t *testing.T) {
	t.Parallel()
	s := newApplyStage(t, nil, made("", "configmaps"))
	s.run(t, beside)
	s.works.Create(t, work("w", "a"))
	s.applied(t, "w")
	before := s.maps.Patch(t, "w-beside", `{"metadata":{"finalizers":["e2e.example.com/slow"]}}`)
	s.works.Delete(t, "w")
	s.works.AwaitGone(t, "w")
	s.works.Create(t, work("w", "b"))
	s.awaitVerdict(t, "w", "Waiting", "Waiting for ConfigMap "+s.ns+"/w-beside of an earlier Work "+s.ns+"/w to be collected.")
	s.maps.Await(t, "w-beside", "its deletion", going)
	s.maps.Patch(t, "w-beside", `{"metadata":{"finalizers":null}}`)
	s.maps.Await(t, "w-beside", "being made again", func(o *unstructured.Unstructured) bool { return o.GetUID() != before.GetUID() })
	s.applied(t, "w")
}
