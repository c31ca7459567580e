// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/cmd"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/handlers"
)

// askedWhy has a handler that does not run, one that fails and is tried again, one that sends an Event, and a child by record.
const askedWhy = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: asked}
resources:
  - resource: works.v1.e2e.example.com
    handlers:
      - id: config
        when: self.spec.value == "go"
        apply:
          config:
            onDelete: orphan
            template:
              apiVersion: v1
              kind: ConfigMap
              metadata: {name: "${self.metadata.name}"}
      - id: hold
        causes: [create]
        backoff: {initial: 1h, max: 1h}
        log: {message: "mended ${self.metadata.annotations.mended}"}
      - id: say
        causes: [create]
        event: {reason: Greeting, message: good day}
`

// TestWhyOfARunningOperator holds that operator why says of an object in a cluster why a handler does not run, and what happened in
// order; that operator tree finds its child by record, and the child of that; and that why reads what the API server has, with the rights of the user, once the operator has stopped.
func TestWhyOfARunningOperator(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	config := filepath.Join(t.TempDir(), "operator.yaml")
	if err := os.WriteFile(config, []byte(askedWhy), 0o600); err != nil {
		t.Fatal(err)
	}
	program := plane.Operator(t, cluster.Launch{Args: []string{"run", "--config", config, "-n", ns}})
	works := plane.Objects("works.v1.e2e.example.com", ns)
	works.Create(t, work("a", "1"))
	user := plane.User("asker")
	kubeconfig := cluster.WriteKubeconfig(t, user.Config())
	address := addressesOf(t, program).Debug
	says := func(wanted ...string) {
		t.Helper()
		eventually(t, "the answer "+strings.Join(wanted, " … "), func() (bool, string) {
			var out bytes.Buffer
			streams := cmd.Streams{Out: &out, Err: &out, Env: []string{"KUBECONFIG=" + kubeconfig}}
			cmd.Run(t.Context(), []string{"why", "works/a", "-n", ns, "--address", address, "--history"}, streams, handlers.Standard())
			rest, all := out.String(), true
			for _, want := range wanted {
				_, after, found := strings.Cut(rest, want)
				rest, all = after, all && found
			}
			return all, out.String()
		})
	}
	says("Work "+ns+"/a of operator asked", "failing: handler hold failed, and is tried again: ", "handler config does not run: its when is false: self.spec.value == \"go\" ("+config+":9), where self.spec.value is \"1\"")
	works.Patch(t, "a", `{"spec":{"value":"go"}}`)
	says("handler config ", "ran last ", "child ConfigMap "+ns+"/a of handler config (by its label, and listed on the object): ready",
		"handler config does not run: its when is false", `spec.value: from "1" to "go"`, "handler config ran ")
	maps := plane.Objects("configmaps.v1", ns)
	child := maps.Get(t, "a")
	below := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "below"}}}
	below.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(child, child.GroupVersionKind())})
	maps.Create(t, below)
	draws(t, ns, "Work "+ns+"/a ", "└─ ConfigMap "+ns+"/a ", "inventory of operator asked", "   └─ ConfigMap "+ns+"/below ", "reference")
	program.Stop(t)
	says("no operator listens there", `User "`+user.Name+`" cannot get resource "works"`)
	user.AllowIn(t, ns, cluster.Rule("e2e.example.com", "works", "get"))
	says("Work "+ns+"/a\n", "the operator does not answer, so this is from the API server alone: ", "no operator listens there",
		"operator asked: handler hold failed, and is tried again: ", "(1 attempt, next try in ", "operator asked: handler say had finished when the operator last stored its progress",
		"child ConfigMap "+ns+"/a of handler config (by its label, and listed on the object): unseen",
		"not read: child ConfigMap "+ns+"/a: you may not get configmaps in namespace "+ns, "not read: Events about the object: you may not list events in namespace "+ns)
	user.AllowIn(t, ns, cluster.Rule("", "configmaps", "get"), cluster.Rule("", "events", "list"))
	says("child ConfigMap "+ns+"/a of handler config (by its label, and listed on the object): ready", "Event Greeting, ", " ago: good day")
}

// draws checks that the tree of an object shows these texts in order, to somebody who may read all.
func draws(t *testing.T, ns string, wanted ...string) {
	t.Helper()
	var out bytes.Buffer
	streams := cmd.Streams{Out: &out, Err: &out, Env: []string{"KUBECONFIG=" + cluster.WriteKubeconfig(t, plane.Config())}}
	if code := cmd.Run(t.Context(), []string{"tree", "works/a", "-n", ns}, streams, handlers.Standard()); code != 0 {
		t.Errorf("operator tree exits with %d", code)
	}
	rest := out.String()
	for _, want := range wanted {
		_, after, found := strings.Cut(rest, want)
		if rest = after; !found {
			t.Fatalf("the tree lacks %q in its place:\n%s", want, out.String())
		}
	}
}
