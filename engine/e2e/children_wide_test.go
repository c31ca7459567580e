// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// siteOperator keeps two ConfigMaps of an object without a namespace, and reports the content of the first.
const siteOperator = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: apply}
resources:
  - resource: sites.v1.GROUP
    handlers:
      - id: parts
        apply:
          site:
            template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}-site", namespace: HOME}, data: {url: genuine, value: "${self.spec.value}"}}
          more:
            template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}-more", namespace: HOME}}
      - id: note
        causes: [reconcile]
        set: {status: {url: "${children.?site.?data.?url.orValue('none')}", seen: "${children.?site.?data.?value.orValue('none')}"}}
`

const siteCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sites.GROUP}
spec:
  group: GROUP
  scope: Cluster
  names: {kind: Site, plural: sites}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// TestForgedChildOfAnOwnerWithoutNamespace: a tenant who may create ConfigMaps in a watched namespace
// and knows an owner's uid gives it no child by naming it as the controller. The owner's inventory costs
// one request for all of its children, once.
func TestForgedChildOfAnOwnerWithoutNamespace(t *testing.T) {
	t.Parallel()
	group, home, tenant := "g"+rand.String(6)+".example.com", plane.Namespace(t), plane.Namespace(t)
	filled := strings.NewReplacer("GROUP", group, "HOME", home)
	plane.Apply(t, "", filled.Replace(siteCRD))
	t.Cleanup(func() {
		plane.Objects("customresourcedefinitions.v1.apiextensions.k8s.io", "").Delete(t, "sites."+group)
	})
	user, attacker := plane.User("sites"), plane.User("tenant")
	user.Allow(t, cluster.Rule(group, "sites", "get", "list", "watch", "patch"), cluster.Rule(group, "sites/status", "patch"), eventRule())
	for _, in := range []string{home, tenant} {
		user.AllowIn(t, in, made("", "configmaps"))
	}
	attacker.AllowIn(t, tenant, cluster.Rule("", "configmaps", "*"))
	his, err := dynamic.NewForConfig(attacker.Config())
	if err != nil {
		t.Fatal(err)
	}
	mark := plane.Mark(t)
	cluster.Run(t, parsed(t, filled.Replace(siteOperator), home, tenant), engine.Settings{Config: user.Config()}).AwaitReady(t)
	sites, maps := plane.Objects("sites.v1."+group, ""), plane.Objects(configMaps, home)
	sites.Create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "Site", "metadata": map[string]any{"name": "w"}, "spec": map[string]any{"value": "a"},
	}})
	seen := func(value string) func(*unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool { return status(o, "seen") == value }
	}
	owner := sites.Await(t, "w", "its status", seen("a"))
	var got []string
	for _, w := range plane.Writes(t, user.Name, mark).Of("sites", "w") {
		if w.Subresource == "" {
			got = append(got, w.Verb)
		}
	}
	if diff := cmp.Diff([]string{"patch"}, got); diff != "" {
		t.Errorf("writes of the record (-want +got):\n%s", diff)
	}

	forged := &unstructured.Unstructured{Object: configMap("aaa", "forged")}
	forged.Object["data"] = map[string]any{"url": "forged", "value": "forged"}
	forged.SetAnnotations(maps.Get(t, "w-site").GetAnnotations())
	forged.SetFinalizers([]string{"e2e.example.com/hold"})
	forged.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
	theirs := his.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(tenant)
	if _, err := theirs.Create(t.Context(), forged, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"b", "c"} { // when the second is seen, the pass of the first is over
		sites.Patch(t, "w", `{"spec":{"value":"`+value+`"}}`)
		if o := sites.Await(t, "w", "the change", seen(value)); status(o, "url") != "genuine" {
			t.Errorf("the status says %q", status(o, "url"))
		}
	}
	if o := plane.Objects(configMaps, tenant).Get(t, "aaa"); o == nil || going(o) {
		t.Error("what was forged is taken away")
	}
	maps.Delete(t, "w-site") // its owner is notified, though it is in no namespace
	maps.Await(t, "w-site", "being made again", func(o *unstructured.Unstructured) bool { return !going(o) && dataValue(o) == "c" })
}
