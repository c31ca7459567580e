// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/yaml"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// handedOver is a Deployment whose template drops fields when the value of a Work is "b", and a Pod to which admission adds
// tolerations.
const handedOver = `
web:
  apiVersion: apps/v1
  kind: Deployment
  metadata: {name: "${self.metadata.name}-web"}
  spec:
    replicas: "${self.spec.value == 'a' ? optional.of(3) : optional.none()}"
    strategy: {type: "${self.spec.value == 'a' ? 'RollingUpdate' : 'Recreate'}"}
    selector: {matchLabels: &l {app: "${self.metadata.name}"}}
    template:
      metadata: {labels: *l}
      spec:
        serviceAccountName: "${self.spec.value == 'a' ? optional.of('default') : optional.none()}"
        containers: [{name: c, image: i}]
        volumes: [{name: v, secret: "${self.spec.value == 'a' ? optional.none() : optional.of({'secretName': 's'})}"}]
pod:
  apiVersion: v1
  kind: Pod
  metadata: {name: "${self.metadata.name}-pod"}
  spec: {terminationGracePeriodSeconds: 0, tolerations: [{key: dedicated, value: crawl, effect: NoSchedule}], containers: [{name: c, image: i}]}
`

// TestApplyLeavesReplicasAndTakesDefaultsAlong holds on a real API server that replicas stay when a template drops them, that defaults
// go which it excludes, each with two writes, and that a restart writes nothing, also where admission has extended a list.
func TestApplyLeavesReplicasAndTakesDefaultsAlong(t *testing.T) {
	t.Parallel()
	s := newApplyStage(t, nil, made("", "configmaps"), made("", "pods"), made("apps", "deployments"))
	webs, pods := plane.Objects("deployments.v1.apps", s.ns), plane.Objects("pods.v1", s.ns)
	s.run(t, beside+handedOver)
	s.works.Create(t, work("w", "a"))
	s.applied(t, "w")
	webs.Await(t, "w-web", "the defaults", func(o *unstructured.Unstructured) bool {
		return field(o, "spec", "strategy", "rollingUpdate") != nil && strings.Contains(asJSON(t, field(o, "spec", "template")), "emptyDir")
	})
	s.quiesce(t, "w")

	mark := plane.Mark(t)
	s.works.Patch(t, "w", `{"spec":{"value":"b"}}`)
	web := webs.Await(t, "w-web", "the changed template", func(o *unstructured.Unstructured) bool {
		return field(o, "spec", "strategy", "type") == "Recreate"
	})
	s.applied(t, "w")
	s.quiesce(t, "w")
	text := asJSON(t, field(web, "spec", "template"))
	if field(web, "spec", "replicas") != int64(3) || strings.Contains(text, "emptyDir") || strings.Contains(text, "serviceAccount") {
		t.Errorf("it has %v replicas and %s", field(web, "spec", "replicas"), text)
	}
	if writes := plane.Writes(t, s.user.Name, mark).Of("deployments", "w-web").WithoutConflicts(); len(writes) != 2 {
		t.Errorf("it was written to %d times, want twice:\n%s", len(writes), writes)
	}
	for _, e := range web.GetManagedFields() {
		if strings.Contains(asJSON(t, e), "f:replicas") && e.Subresource == "" {
			t.Errorf("%s still owns the replicas", e.Manager)
		}
	}

	s.running.Stop(t)
	mark = plane.Mark(t)
	s.run(t, beside+handedOver)
	s.quiesce(t, "w")
	all := plane.Writes(t, s.user.Name, mark)
	if writes := append(all.Of("pods", ""), all.Of("deployments", "")...); len(writes) > 0 {
		t.Errorf("a restart wrote:\n%s", writes)
	}
	if pod := pods.Get(t, "w-pod"); len(field(pod, "spec", "tolerations").([]any)) != 3 {
		t.Errorf("the Pod's tolerations are %v", field(pod, "spec", "tolerations"))
	}
}

// gadgets is a CRD with versions.
func gadgets(t *testing.T, group, versions string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	text := strings.NewReplacer("GROUP", group, "SCHEMA", "{openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {value: {type: string}, more: {type: string}}}}}}").Replace(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: gadgets, kind: Gadget}
  versions: ` + versions)
	if err := yaml.Unmarshal([]byte(text), &out.Object); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestApplyRenewsEntriesOfADroppedVersion holds that a child is applied after its CRD has dropped the version in which the operator has
// applied it before, and that the message names the entries of others which stand in the way, and a command that helps.
func TestApplyRenewsEntriesOfADroppedVersion(t *testing.T) {
	t.Parallel()
	group := "e" + rand.String(6) + ".example.com"
	crds := plane.Objects("customresourcedefinitions.v1.apiextensions.k8s.io", "")
	crd := gadgets(t, group, "[{name: v1alpha1, served: true, storage: true, schema: SCHEMA}, {name: v1, served: true, storage: false, schema: SCHEMA}]")
	crds.Create(t, crd)
	t.Cleanup(func() { crds.Delete(t, crd.GetName()) })
	s := newApplyStage(t, nil, made("", "configmaps"), cluster.Rule(group, "gadgets", "*"))
	s.user.Allow(t, cluster.Rule("apiextensions.k8s.io", "customresourcedefinitions", "get", "list", "watch"))
	child := func(version string) string {
		return beside + `
gadget: {apiVersion: ` + group + "/" + version + `, kind: Gadget, metadata: {name: "${self.metadata.name}"}, spec: {value: "${self.spec.value}"}}
`
	}
	s.run(t, child("v1alpha1"))
	s.works.Create(t, work("w", "a"))
	s.works.Create(t, work("x", "a"))
	s.applied(t, "w")
	s.applied(t, "x")
	plane.Objects("gadgets.v1alpha1."+group, s.ns).By("somebody").Patch(t, "x", `{"spec":{"more":"y"}}`)
	s.running.Stop(t)

	next := gadgets(t, group, "[{name: v1alpha1, served: false, storage: false, schema: SCHEMA}, {name: v1, served: true, storage: true, schema: SCHEMA}]")
	crds.Patch(t, crd.GetName(), asJSON(t, map[string]any{"spec": next.Object["spec"]}))
	now := plane.Objects("gadgets.v1."+group, s.ns)
	plane.Objects("gadgets.v1."+group, s.ns).By("migration").Patch(t, "w", `{"metadata":{"labels":{"stored":"v1"}}}`)
	plane.Objects("gadgets.v1."+group, s.ns).By("migration").Patch(t, "x", `{"metadata":{"labels":{"stored":"v1"}}}`)
	crds.Patch(t, crd.GetName(), `{"status":{"storedVersions":["v1"]}}`, "status")
	next = gadgets(t, group, "[{name: v1, served: true, storage: true, schema: SCHEMA}]")
	crds.Patch(t, crd.GetName(), asJSON(t, map[string]any{"spec": next.Object["spec"]}))
	now.Await(t, "w", "the new version", there)

	s.run(t, child("v1"))
	s.works.Patch(t, "w", `{"spec":{"value":"b"}}`)
	s.works.Patch(t, "x", `{"spec":{"value":"b"}}`)
	now.Await(t, "w", "the changed value", func(o *unstructured.Unstructured) bool { return field(o, "spec", "value") == "b" })
	s.applied(t, "w")
	for _, e := range now.Get(t, "w").GetManagedFields() {
		if e.APIVersion != group+"/v1" {
			t.Errorf("the entry of %s has version %s", e.Manager, e.APIVersion)
		}
	}
	s.awaitVerdict(t, "x", "ApplyFailed", `remove that of "somebody" (Update, version `+group+`/v1alpha1)`, "kubectl patch gadgets."+group+" x -n "+s.ns+" --type=json")
	_, message := verdictOf(s.works.Get(t, "x"))
	_, patch, _ := strings.Cut(message, "--type=json -p '")
	patch, _, _ = strings.Cut(patch, "'")
	now.Send(t, "x", types.JSONPatchType, patch)
	s.works.Patch(t, "x", `{"spec":{"other":"now"}}`)
	now.Await(t, "x", "the changed value", func(o *unstructured.Unstructured) bool { return field(o, "spec", "value") == "b" })
	s.applied(t, "x")
}
