// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// patching is an operator that adds to the secrets of a ServiceAccount of the work's namespace, which server-side apply merges by name,
// owns its pull secrets, which belong to one owner as a whole or to several that want the same, and labels a node.
const patching = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: patching}
resources:
  - resource: WORKS
    handlers:
      - id: pull
        backoff: {initial: 100ms}
        patch:
          apiVersion: v1
          kind: ServiceAccount
          metadata: {name: robot}
          secrets: [{name: "${self.spec.value}"}]
          imagePullSecrets: [{name: pull}]
      - id: node
        backoff: {initial: 100ms, max: 500ms}
        patch:
          reach: cluster
          template:
            apiVersion: v1
            kind: Node
            metadata: {name: NODE, labels: {"KEY/${self.metadata.name}": "${self.spec.value}"}}
`

// TestFieldsOfOthersObjectsAreOwnedAndGivenBack holds on a real API server that a handler owns its fields alone, that a restart writes
// nothing, that fields of others are a conflict, and that its own are given back when the owner is deleted.
func TestFieldsOfOthersObjectsAreOwnedAndGivenBack(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	nodes, accounts, mine := plane.Objects("nodes.v1", ""), plane.Objects("serviceaccounts.v1", ns), plane.Objects(works, ns)
	node, key := nodes.List(t)[0].GetName(), "p"+rand.String(6)+".example.com"
	accounts.Create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "robot"}, "secrets": []any{map[string]any{"name": "theirs"}},
	}})
	user := plane.User("patching")
	user.AllowIn(t, ns, cluster.Rule("e2e.example.com", "works", "get", "list", "watch", "patch"), cluster.Rule("e2e.example.com", "works/status", "patch"), eventRule(), cluster.Rule("", "serviceaccounts", "get", "patch"))
	user.Allow(t, cluster.Rule("", "nodes", "get", "patch"))
	op := func() *cluster.Running {
		text := strings.NewReplacer("WORKS", works, "NODE", node, "KEY", key).Replace(patching)
		return cluster.Run(t, parsed(t, text, ns), engine.Settings{Config: user.Config()})
	}
	label := func(want any) func(*unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool { return field(o, "metadata", "labels", key+"/w") == want }
	}
	secrets := func(want ...any) func(*unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool { return cmp.Equal(want, field(o, "secrets")) }
	}
	ours, theirs := map[string]any{"name": "a"}, map[string]any{"name": "theirs"}
	running := op()
	mine.Create(t, work("w", "a"))
	accounts.Await(t, "robot", "both secrets", secrets(theirs, ours))
	nodes.Await(t, node, "the label", label("a"))

	running.Stop(t)
	mark := plane.Mark(t)
	running = op()
	running.AwaitReady(t)
	mine.Create(t, work("second", "b")) // so that there is something to wait for
	accounts.Await(t, "robot", "three secrets", secrets(theirs, ours, map[string]any{"name": "b"}))
	for _, w := range plane.Writes(t, user.Name, mark) {
		if w.Name == "w" {
			t.Errorf("a restart wrote %s", w)
		}
	}
	if got := len(plane.Writes(t, user.Name, mark).Of("serviceaccounts", "robot")); got != 1 {
		t.Errorf("the ServiceAccount was written %d times, want once for the second work", got)
	}

	nodes.By("somebody").Patch(t, node, `{"metadata":{"labels":{"`+key+`/w":"edited"}}}`)
	mine.Patch(t, "w", `{"spec":{"value":"c"}}`)
	running.Await(t, "patching Node "+node+": .metadata.labels."+key+"/w belongs to field manager")
	accounts.Await(t, "robot", "the changed secret", func(o *unstructured.Unstructured) bool {
		return strings.Contains(asJSON(t, field(o, "secrets")), `"c"`) && !strings.Contains(asJSON(t, field(o, "secrets")), `"a"`)
	})
	mine.Delete(t, "w")
	mine.AwaitGone(t, "w")
	mine.Delete(t, "second")
	mine.AwaitGone(t, "second")
	o := accounts.Get(t, "robot")
	if !secrets(theirs)(o) || field(o, "imagePullSecrets") != nil {
		t.Errorf("the secrets are %v, and to pull %v", field(o, "secrets"), field(o, "imagePullSecrets"))
	}
	if o = nodes.Get(t, node); !label("edited")(o) || field(o, "metadata", "labels", key+"/second") != nil {
		t.Errorf("the labels are %v", o.GetLabels())
	}
	for _, e := range o.GetManagedFields() {
		if strings.HasPrefix(e.Manager, "patching/") && strings.Contains(asJSON(t, e), key) {
			t.Errorf("managedFields still has %s", e.Manager)
		}
	}
	nodes.Patch(t, node, `{"metadata":{"labels":{"`+key+`/w":null}}}`)
}

// TestAnApplyWithAUIDCreatesNothing holds what the patches rely on: the API server refuses to apply to an object that does not exist, or
// that is another one, if the request has a uid.
func TestAnApplyWithAUIDCreatesNothing(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	maps := plane.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(ns)
	apply := func() error {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "b"}}}
		o.SetName("a")
		o.SetUID("of-another")
		_, err := maps.Apply(t.Context(), "a", o, metav1.ApplyOptions{FieldManager: "m", Force: true})
		return err
	}
	if err := apply(); !apierrors.IsConflict(err) {
		t.Errorf("without an object: %v", err)
	}
	plane.Objects(configMaps, ns).Create(t, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}})
	if err := apply(); !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) {
		t.Errorf("with another object: %v", err)
	}
	if got := plane.Objects(configMaps, ns).Get(t, "a"); field(got, "data") != nil {
		t.Errorf("it was changed: %v", got.Object)
	}
}
