// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// readyOperator has a CRD of its own and no handler that sets Ready.
const readyOperator = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: ready}
resources:
- resource: apps.v1.%s
  schema: {kind: App, spec: {replicas: integer, image: string}, status: {observedGeneration: integer}}
  handlers:
  - id: web
    apply:
      web:
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: "${self.metadata.name}"}
        spec:
          replicas: ${self.spec.replicas}
          selector: {matchLabels: {app: "${self.metadata.name}"}}
          template:
            metadata: {labels: {app: "${self.metadata.name}"}}
            spec: {containers: [{name: app, image: "${self.spec.image}"}]}
`

// TestKubectlWaitsForReady holds that the condition Ready which the engine keeps by itself is true for kubectl wait when the children
// are ready, and false with the server's words when they cannot be made. kstatus finds the same.
func TestKubectlWaitsForReady(t *testing.T) {
	t.Parallel()
	ns, group, dir := plane.Namespace(t), ownGroup("ready"), t.TempDir()
	t.Cleanup(func() { plane.Objects(crds, "").Delete(t, "apps."+group) })
	if err := os.WriteFile(filepath.Join(dir, "operator.yaml"), fmt.Appendf(nil, readyOperator, group), 0o600); err != nil {
		t.Fatal(err)
	}
	program := plane.Operator(t, cluster.Launch{Args: []string{"run", "--config", dir, "-n", ns, "--install-crds"}})
	program.Await(t, `"msg":"operator starts"`)
	commands(t, dir, "kubectl", "wait", "--for=create", "crd/apps."+group, "--timeout=2m")
	commands(t, dir, "kubectl", "wait", "--for=condition=Established", "crd/apps."+group, "--timeout=2m")
	app := fmt.Sprintf("apiVersion: %s/v1\nkind: App\nmetadata: {name: web, namespace: %s}\nspec: {replicas: 2, image: nginx}\n", group, ns)
	if err := os.WriteFile(filepath.Join(dir, "app.yaml"), []byte(app), 0o600); err != nil {
		t.Fatal(err)
	}
	commands(t, dir, "kubectl", "apply", "-f", "app.yaml")
	apps := plane.Objects("apps.v1."+group, ns)
	finds := func(want kstatus.Status, beside string) {
		t.Helper()
		web := apps.Get(t, "web")
		got, err := kstatus.Compute(web)
		if err != nil || got.Status != want {
			t.Errorf("kstatus finds %+v (%v), want %s", got, err, want)
		}
		for _, kind := range []string{"Reconciling", "Stalled"} {
			if stands := cluster.Condition(web, kind) == "True"; stands != (kind == beside) {
				t.Errorf("condition %s stands: %t, in %v", kind, stands, web.Object["status"])
			}
		}
	}
	patch := func(spec, ready string) {
		t.Helper()
		commands(t, dir, "kubectl", "patch", "apps."+group+"/web", "-n", ns, "--type=merge", "-p", `{"spec":`+spec+`}`)
		commands(t, dir, "kubectl", "wait", "--for=condition=Ready="+ready, "apps."+group+"/web", "-n", ns, "--timeout=2m")
	}
	commands(t, dir, "kubectl", "wait", "--for=condition=Ready", "apps."+group+"/web", "-n", ns, "--timeout=2m")
	finds(kstatus.CurrentStatus, "")
	patch(`{"replicas":-1}`, "False")
	commands(t, dir, "kubectl", "wait", "--for=condition=Stalled", "apps."+group+"/web", "-n", ns, "--timeout=2m")
	finds(kstatus.FailedStatus, "Stalled")
	said := commands(t, dir, "kubectl", "get", "apps."+group+"/web", "-n", ns, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].message}`)
	if !strings.Contains(said, "must be greater than or equal to 0") {
		t.Errorf("Ready says %q, without the server's words", said)
	}
	patch(`{"replicas":3}`, "True")
	finds(kstatus.CurrentStatus, "")
	reconciling := apps.Patch(t, "web", `{"spec":{"image":"missing.invalid/image"}}`).GetGeneration()
	apps.Await(t, "web", "the generation to be handled", func(o *unstructured.Unstructured) bool {
		seen, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
		return seen == reconciling
	})
	apps.Await(t, "web", "the end of the roll-out", func(o *unstructured.Unstructured) bool { return cluster.Condition(o, "Ready") == "True" })
	finds(kstatus.CurrentStatus, "")
	if exit := program.Stop(t); exit.Code != 0 {
		t.Errorf("exit code is %d", exit.Code)
	}
}
