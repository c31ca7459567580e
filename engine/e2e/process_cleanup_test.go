// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/cmd"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/handlers"
)

// leaver is an operator that leaves a finalizer, progress, a condition and children. What is in the namespaces %[1]s is its own.
const leaver = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: leaver}
scope: {namespaces: [%[1]s]}
settings: {leaderElection: {mode: lease, namespace: %[1]s}}
resources:
  - resource: leavers.v1.cleanup.handwerk.dev
    schema: {kind: Leaver, spec: {text: string}, status: {text: string}}
    handlers:
      - id: keep
        apply:
          config:
            apiVersion: v1
            kind: ConfigMap
            metadata: {name: "${self.metadata.name}"}
            data: {text: "${self.spec.text}"}
      - {id: mark, patch: {apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, labels: {mark: "${self.metadata.name}"}}}}
      - {id: changed, causes: [update], log: {message: changed}}
      - {id: hold, causes: [delete], log: {message: goes}}
`

// TestCleanupLeavesNothing runs an operator, stops it, and cleans up after it: no object bears anything of it, and what others
// have put on objects stays.
func TestCleanupLeavesNothing(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	config := filepath.Join(t.TempDir(), "operator.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, leaver, ns), 0o600); err != nil {
		t.Fatal(err)
	}
	program := plane.Operator(t, cluster.Launch{Args: []string{"run", "--config", config, "--install-crds"}, Env: []string{"POD_NAMESPACE=" + ns}})
	awaitReadyz(t, program, "[+]started ok")
	leavers, configMaps := plane.Objects("leavers.v1.cleanup.handwerk.dev", ns), plane.Objects("configmaps.v1", ns)
	plane.Apply(t, ns, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs, labels: {theirs: x}}")
	leavers.Create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cleanup.handwerk.dev/v1", "kind": "Leaver", "metadata": map[string]any{"name": "a", "labels": map[string]any{"theirs": "x"}}, "spec": map[string]any{"text": "b"},
	}})
	leavers.Await(t, "a", "being handled", func(o *unstructured.Unstructured) bool { return len(conditionsOf(o)) > 0 && len(o.GetFinalizers()) > 0 })
	leavers.Patch(t, "a", `{"status":{"conditions":[{"type":"Theirs","status":"True","reason":"Theirs","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, "status")
	configMaps.Await(t, "a", "being made", func(*unstructured.Unstructured) bool { return true })
	configMaps.Await(t, "theirs", "being patched", func(o *unstructured.Unstructured) bool { return o.GetLabels()["mark"] == "a" })
	if code, printed := runs(t, "cleanup", "--config="+config, "--namespace="+ns, "--yes"); code != 1 || !strings.Contains(printed, "it runs: ") {
		t.Errorf("while the operator runs: exit code %d\n%s", code, printed)
	}
	if exit := program.Stop(t); exit.Code != 0 {
		t.Errorf("exit code is %d", exit.Code)
	}
	before := leavers.Get(t, "a").GetResourceVersion()
	if code, printed := runs(t, "cleanup", "--config="+config, "--namespace="+ns, "--dry-run"); code != 0 || !strings.Contains(printed, "children (1): they stay, without its marks\n    ConfigMap "+ns+"/a\n") {
		t.Errorf("a look: exit code %d\n%s", code, printed)
	}
	if after := leavers.Get(t, "a").GetResourceVersion(); after != before {
		t.Error("a look has changed the object")
	}
	if code, printed := runs(t, "cleanup", "--config="+config, "--namespace="+ns, "--yes"); code != 0 {
		t.Errorf("cleaning up: exit code %d\n%s", code, printed)
	}
	o := leavers.Get(t, "a")
	if text := fmt.Sprint(o.GetAnnotations(), o.GetFinalizers(), o.GetLabels()); text != "map[] [] map[theirs:x]" {
		t.Errorf("the object bears %s", text)
	}
	if left := conditionsOf(o); len(left) > 1 || len(left) == 1 && left[0] != "Theirs True Theirs" {
		t.Errorf("the object has the conditions %v", left)
	}
	if child := configMaps.Get(t, "a"); len(child.GetAnnotations()) > 0 || len(child.GetOwnerReferences()) != 1 {
		t.Errorf("the child bears %v", child.Object["metadata"])
	}
	if o := configMaps.Get(t, "theirs"); fmt.Sprint(o.GetLabels()) != "map[theirs:x]" {
		t.Errorf("what a handler has patched bears %v", o.GetLabels())
	}
	if code, printed := runs(t, "cleanup", "--config="+config, "--namespace="+ns, "--yes"); code != 0 || !strings.HasSuffix(printed, "\noperator leaver has left nothing that can be seen\n") {
		t.Errorf("once more: exit code %d\n%s", code, printed)
	}
	leavers.Delete(t, "a")
	leavers.AwaitGone(t, "a")
}

// runs types a command of the operator, and returns its exit code and what it said.
func runs(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var printed bytes.Buffer
	streams := cmd.Streams{Out: &printed, Err: &printed, Env: []string{"KUBECONFIG=" + cluster.WriteKubeconfig(t, plane.Config())}}
	code := cmd.Run(context.WithoutCancel(t.Context()), args, streams, handlers.Standard())
	return code, printed.String()
}
