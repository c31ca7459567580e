// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/handlers"
)

// oneOfEach reads one Secret of another namespace, and patches and deletes one ConfigMap each there.
const oneOfEach = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: narrow}
resources:
  - resource: works.v1.e2e.example.com
    related:
      - {name: pull, resource: secrets.v1, namespace: PLATFORM, object: registry-pull}
      - {name: old, resource: configmaps.v1, namespace: PLATFORM, object: old}
    handlers:
      - {id: seen, set: {status: {seen: "${hash(related.pull.?data)}"}}}
      - id: mark
        patch:
          reach: cluster
          template: {apiVersion: v1, kind: ConfigMap, metadata: {name: marked, namespace: PLATFORM}, data: {seen: "${self.spec.value}"}}
      - {id: clean, delete: "${related.old}"}
`

// TestOneObjectOfANamespaceNeedsARoleThere runs an operator with exactly the rights that it is said to need: of the
// namespace of the related objects, those on the named objects.
func TestOneObjectOfANamespaceNeedsARoleThere(t *testing.T) {
	t.Parallel()
	ns, platform := plane.Namespace(t), plane.Namespace(t)
	op, err := config.Parse("operator.yaml", []byte(strings.ReplaceAll(oneOfEach, "PLATFORM", platform)), handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	op.Scope.Namespaces = []string{ns, platform}
	rules := rbac.Of(op, rbac.Settings{Namespace: ns})
	want := []string{
		"get,patch configmaps [marked]", "list,watch,delete configmaps [old]", "list,watch secrets [registry-pull]",
	}
	if diff := cmp.Diff(want, coreRights(rules, platform)); diff != "" {
		t.Fatalf("rights in the namespace of the related objects (-want +got):\n%s", diff)
	}
	secrets, configMaps := plane.Objects("secrets.v1", platform), plane.Objects("configmaps.v1", platform)
	secrets.Create(t, core("Secret", "registry-pull"))
	secrets.Create(t, core("Secret", "other"))
	for _, name := range []string{"old", "marked", "other"} {
		configMaps.Create(t, core("ConfigMap", name))
	}

	user := plane.User("narrow")
	allow(t, user, rules)
	proxy := cluster.NewProxy(t, user.Config())
	running := cluster.Run(t, op, engine.Settings{Config: proxy.Config(), Namespace: ns})
	objects := plane.Objects(works, ns)
	objects.Create(t, work("w", "first"))
	configMaps.AwaitGone(t, "old")
	configMaps.Await(t, "marked", "to be patched", func(o *unstructured.Unstructured) bool { return field(o, "data", "seen") == "first" })
	seen := status(objects.Await(t, "w", "to show the Secret", func(o *unstructured.Unstructured) bool { return status(o, "seen") != "" }), "seen")
	secrets.Patch(t, "registry-pull", `{"stringData":{"token":"second"}}`)
	objects.Await(t, "w", "to show the change of the Secret", func(o *unstructured.Unstructured) bool { return status(o, "seen") != seen })
	running.AwaitReady(t)
	for _, r := range proxy.Requests(cluster.On("*", "*")) {
		if r.Code == http.StatusForbidden {
			t.Errorf("refused: %s %s", r.Verb, r.URI)
		}
	}
	clients, err := kubernetes.NewForConfig(user.Config())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clients.CoreV1().Secrets(platform).Get(t.Context(), "other", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("reading another Secret gives %v, want that it is forbidden", err)
	}
}

// core returns an object of the core group with one entry of data.
func core(kind, name string) *unstructured.Unstructured {
	data := map[string]string{"Secret": "stringData", "ConfigMap": "data"}[kind]
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}, data: map[string]any{"token": "first"},
	}}
}

// coreRights returns the rights on resources of the core group in a namespace, a line for each policy.
func coreRights(rules []rbac.Rule, namespace string) (out []string) {
	for _, role := range rbac.Roles(rules) {
		for _, p := range role.Policies {
			if role.Namespace == namespace && p.Group == "" {
				out = append(out, strings.Join(p.Verbs, ",")+" "+p.Resource+" ["+strings.Join(p.Names, " ")+"]")
			}
		}
	}
	return out
}
