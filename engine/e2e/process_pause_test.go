// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// pauseRule is the right of deploy's role to see that the operator foo is paused.
func pauseRule() rbacv1.PolicyRule {
	r := cluster.Rule("", "configmaps", "list", "watch")
	r.ResourceNames = []string{"foo-paused"}
	return r
}

// TestAPauseOfTheOperator types pause and resume while two processes run, each with the rights that operator rbac prints.
func TestAPauseOfTheOperator(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	all := contenders(t, ns, byLease, 2)
	for _, c := range all {
		c.user.AllowIn(t, ns, pauseRule())
		c.start(t)
	}
	leader, others, _ := awaitLeader(t, ns, all...)
	others[0].awaitStandby(t)
	stage := stageIn(ns)
	stage.settled(t, "a", 1)

	obeyed := func(line string, command ...string) {
		t.Helper()
		mustRun(t, append(command, "--operator=foo", "--operator-namespace="+ns)...)
		begun := time.Now()
		for _, c := range all {
			c.Await(t, line)
		}
		took := time.Since(begun)
		if t.Logf("all obey %s after %s: %s", command[0], took, line); took > 10*time.Second { // a second, if the machine has nothing else to do
			t.Errorf("%s is obeyed after %s", command[0], took)
		}
	}
	obeyed("operator is paused; no handler runs", "pause", "-m", "looking", "--for", "1h")
	for _, c := range all {
		_, readyz, err := ask(t, addressesOf(t, c.Operator).Health, "/readyz?verbose")
		if err != nil || !strings.Contains(readyz, "[+]paused ok: the operator is paused by ") || !strings.Contains(readyz, ": looking") {
			t.Errorf("/readyz?verbose (%v):\n%s", err, readyz)
		}
	}
	mark := plane.Mark(t)
	stage.foos.Patch(t, "a", `{"spec":{"replicas":2}}`)
	leader.Stop(t)
	awaitLeader(t, ns, others...)
	leader.start(t) // obeys from its start
	leader.awaitStandby(t)
	leader.Await(t, "operator is paused; no handler runs")
	for _, c := range all {
		for _, w := range plane.Writes(t, c.user.Name, mark) {
			t.Errorf("%s wrote while the operator was paused: %v", c.pod, w)
		}
	}
	obeyed("operator is no longer paused", "resume")
	stage.follows(t, "a", 2)
	if printed := mustRun(t, "resume", "--operator=foo", "--operator-namespace="+ns); !strings.Contains(printed, "operator foo is not paused") {
		t.Errorf("the second time resume says %q", printed)
	}
	for _, c := range all {
		mustLogNoError(t, c.Lines)
	}
}

// stubborn is an operator with a handler that fails, and is tried again in an hour.
const stubborn = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: stubborn}
scope: {namespaces: [%[1]s]}
resources:
  - resource: configmaps.v1
    selector: {matchLabels: {stubborn: %[1]s}}
    handlers:
      - id: hold
        causes: [create]
        field: data
        backoff: {initial: 1h, max: 1h}
        log: {message: "mended ${self.metadata.annotations.mended}"}
`

// TestRetryOfAHandler types retry for a handler that fails, when the reason is mended where it does not look.
func TestRetryOfAHandler(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	config := filepath.Join(t.TempDir(), "operator.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, stubborn, ns), 0o600); err != nil {
		t.Fatal(err)
	}
	program := plane.Operator(t, cluster.Launch{Args: []string{"run", "--config", config}, Env: []string{"POD_NAMESPACE=" + ns}})
	configMaps := plane.Objects("configmaps.v1", ns)
	configMaps.Create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "labels": map[string]any{"stubborn": ns}}, "data": map[string]any{"b": "c"},
	}})
	program.Await(t, "handler will be tried again")
	configMaps.Patch(t, "a", `{"metadata":{"annotations":{"mended":"by hand"}}}`)
	printed := mustRun(t, "retry", "cm/a", "-n", ns, "--config="+config, "--handler=hold")
	if printed != "cm/a: operator stubborn has taken up the retry\n" {
		t.Errorf("retry says %q", printed)
	}
	program.Await(t, `"msg":"mended by hand"`)
	if notes := configMaps.Get(t, "a").GetAnnotations(); notes["stubborn.handwerk.dev/retry"] != "" {
		t.Errorf("annotations %v", notes)
	}
}

// mustRun types a command of the operator that must succeed, and returns what it said.
func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	code, printed := runs(t, args...)
	if code != 0 {
		t.Fatalf("operator %s: exit code %d\n%s", strings.Join(args, " "), code, printed)
	}
	return printed
}
