// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/yaml"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

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

// createGadgets creates the CRD with the versions v1alpha1, which is stored, and v1.
func createGadgets(t *testing.T, group string) {
	t.Helper()
	all := plane.Objects(crds, "")
	crd := gadgets(t, group, "[{name: v1alpha1, served: true, storage: true, schema: SCHEMA}, {name: v1, served: true, storage: false, schema: SCHEMA}]")
	all.Create(t, crd)
	t.Cleanup(func() { all.Delete(t, crd.GetName()) })
}

// dropVersion has these gadgets stored in v1, drops v1alpha1 from the CRD, and returns the gadgets in v1.
func dropVersion(t *testing.T, group, ns string, names ...string) *cluster.Objects {
	t.Helper()
	all, now := plane.Objects(crds, ""), plane.Objects("gadgets.v1."+group, ns)
	next := gadgets(t, group, "[{name: v1alpha1, served: false, storage: false, schema: SCHEMA}, {name: v1, served: true, storage: true, schema: SCHEMA}]")
	all.Patch(t, next.GetName(), asJSON(t, map[string]any{"spec": next.Object["spec"]}))
	// The server takes the storage version in a moment after the change: a write before it would store the version that is to go.
	old := plane.Objects("gadgets.v1alpha1."+group, ns)
	waitFor(t, "the old version to be served no more", func() bool { return old.Get(t, names[0]) == nil })
	for _, times := range []string{"once", "twice"} {
		for _, name := range names {
			now.By("migration").Patch(t, name, `{"metadata":{"labels":{"stored":"`+times+`"}}}`)
			now.Await(t, name, "the migration", func(o *unstructured.Unstructured) bool { return o.GetLabels()["stored"] == times })
		}
	}
	all.Patch(t, next.GetName(), `{"status":{"storedVersions":["v1"]}}`, "status")
	next = gadgets(t, group, "[{name: v1, served: true, storage: true, schema: SCHEMA}]")
	all.Patch(t, next.GetName(), asJSON(t, map[string]any{"spec": next.Object["spec"]}))
	now.Await(t, names[0], "the new version", there)
	return now
}

// TestApplyRenewsEntriesOfADroppedVersion holds that a child is applied after its CRD has dropped the version in which the operator has
// applied it before, and that the message names the entries of others which stand in the way, and a command that helps.
func TestApplyRenewsEntriesOfADroppedVersion(t *testing.T) {
	t.Parallel()
	group := "e" + rand.String(6) + ".example.com"
	createGadgets(t, group)
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

	now := dropVersion(t, group, s.ns, "w", "x")

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

// TestOwnersEntriesOfADroppedVersionAreRenewed holds that an operator renews what it left on the objects that it handles before their CRD
// dropped a version, so that others can apply them, and what its client has applied.
func TestOwnersEntriesOfADroppedVersionAreRenewed(t *testing.T) {
	t.Parallel()
	group := "e" + rand.String(6) + ".example.com"
	createGadgets(t, group)
	s := newStage(t)
	s.user.Allow(t, cluster.Rule(group, "gadgets", "*"), cluster.Rule("apiextensions.k8s.io", "customresourcedefinitions", "get", "list", "watch"))
	run := func(version string) *cluster.Running {
		op := dsl.New("law")
		op.Scope.Namespaces = []string{s.ns}
		op.Resource("gadgets."+version+"."+group, func(r *dsl.Resource) {
			r.On([]dsl.Cause{dsl.Create, dsl.Update}, version, s.Note(version, func(ctx context.Context, r *dsl.Request) error {
				made := gadget(group+"/"+version, s.ns, "made", spec(r.Object, "value"))
				_, err := r.Client.Apply(ctx, made)
				return err
			}), dsl.When(func(r *dsl.Subject) (bool, error) { return r.Object.GetName() == "w", nil }))
		})
		return s.begin(t, op)
	}
	first := run("v1alpha1")
	before := plane.Objects("gadgets.v1."+group, s.ns) // whoever makes it has moved on already
	before.Create(t, gadget(group+"/v1", s.ns, "w", "a"))
	before.Await(t, "w", "the mark of its handler", func(o *unstructured.Unstructured) bool { return len(o.GetAnnotations()) > 0 })
	before.Await(t, "made", "being made", there)
	first.Stop(t)
	now := dropVersion(t, group, s.ns, "w", "made")

	run("v1")
	own := func(o *unstructured.Unstructured) (versions []string) {
		for _, e := range o.GetManagedFields() {
			if e.Manager == "law" {
				versions = append(versions, e.APIVersion)
			}
		}
		return versions
	}
	now.Await(t, "w", "the renewed entry", func(o *unstructured.Unstructured) bool {
		return slices.Equal(own(o), []string{group + "/v1"})
	})
	now.By("flux").Send(t, "w", types.ApplyPatchType, asJSON(t, map[string]any{
		"apiVersion": group + "/v1", "kind": "Gadget", "metadata": map[string]any{"name": "w", "labels": map[string]any{"by": "flux"}},
	}))
	now.Patch(t, "w", `{"spec":{"value":"b"}}`)
	now.Await(t, "made", "the changed value", func(o *unstructured.Unstructured) bool { return spec(o, "value") == "b" })
}

// gadget is a Gadget with a spec.value.
func gadget(apiVersion, ns, name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": "Gadget", "metadata": map[string]any{"name": name, "namespace": ns}, "spec": map[string]any{"value": value},
	}}
}
