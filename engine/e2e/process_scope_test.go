// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// TestNamespacedProgram has rights in its namespaces only, and needs no others.
func TestNamespacedProgram(t *testing.T) {
	t.Parallel()
	tests := map[string]int{"one namespace": 1, "several namespaces": 3}
	for name, number := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			user, args := plane.User("namespaced"), []string{"run", "--config", "samples/foo/operator.yaml"}
			var inside []string
			for range number {
				ns := plane.Namespace(t)
				inside = append(inside, ns)
				args = append(args, "-n", ns)
				user.AllowIn(t, ns, fooRules()...)
			}
			outside := plane.Namespace(t)
			mark := plane.Mark(t)
			plane.Objects(foos, outside).Create(t, foo("a", 1))
			program := plane.Operator(t, cluster.Launch{Config: user.Config(), Args: args, Env: []string{"POD_NAMESPACE=" + inside[0]}})
			for _, ns := range inside {
				stageIn(ns).settled(t, "a", 1)
			}
			plane.Objects(foos, outside).Patch(t, "a", `{"spec":{"replicas":2}}`)
			for _, ns := range inside {
				plane.Objects(foos, ns).Patch(t, "a", `{"spec":{"replicas":2}}`)
				stageIn(ns).follows(t, "a", 2)
			}
			mustBeUntouched(t, user, mark, outside)
			readyz := awaitReadyz(t, program, "[+]started ok")
			if strings.Contains(readyz, "[!]") {
				t.Errorf("/readyz?verbose:\n%s", readyz)
			}
			program.Stop(t)
			if lines := program.With("forbidden"); len(lines) != 0 {
				t.Errorf("the program asked for more:\n%s", strings.Join(lines, "\n"))
			}
			mustLogNoError(t, program.Lines)
		})
	}
}

// TestGlobsAreLive makes and deletes namespaces while the program runs.
func TestGlobsAreLive(t *testing.T) {
	t.Parallel()
	prefix := "team-" + rand.String(5) + "-"
	early, late, taken := prefix+"early", prefix+"late", prefix+"old"
	foreign := plane.Namespace(t)
	named(t, early)
	named(t, taken)
	user := plane.User("globs")
	user.Allow(t, append(fooRules(), cluster.Rule("", "namespaces", "list", "watch"))...)
	mark := plane.Mark(t)
	for _, ns := range []string{early, taken, foreign} {
		plane.Objects(foos, ns).Create(t, foo("a", 1))
	}
	program := plane.Operator(t, cluster.Launch{
		Config: user.Config(), Args: []string{"run", "--config", "samples/foo/operator.yaml", "-n", prefix + "*", "-n", "!" + taken},
		Env: []string{"POD_NAMESPACE=" + early},
	})
	stageIn(early).follows(t, "a", 1)
	// It comes, goes, and comes again. The API server looks after some seconds, and if there are Pods
	// then, once more half of their grace period later: they go first.
	named(t, late)
	stageIn(late).settled(t, "b", 1)
	plane.Objects("namespaces.v1", "").Delete(t, late)
	plane.Objects(foos, late).Delete(t, "b")
	plane.Objects("namespaces.v1", "").AwaitGone(t, late)
	named(t, late)
	stageIn(late).settled(t, "b", 1)
	plane.Objects(foos, early).Patch(t, "a", `{"spec":{"replicas":2}}`)
	stageIn(early).follows(t, "a", 2)
	mustBeUntouched(t, user, mark, taken, foreign)
	readyz := awaitReadyz(t, program, "[+]started ok")
	if strings.Contains(readyz, "[!]") {
		t.Errorf("/readyz?verbose:\n%s", readyz)
	}
	if exit := program.Stop(t); exit.Code != 0 {
		t.Errorf("exit code is %d", exit.Code)
	}
	mustLogNoError(t, program.Lines)
}

// tenants is an operator that works in the namespaces of some tenants, and leaves a finalizer on each of their Foos.
const tenants = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: tenants}
scope:
  namespaces: ["e2e-*"]
  namespaceSelector:
    matchLabels: {suite: %s}
    matchExpressions: [{key: tenant, operator: In, values: [gold, iron]}]
resources:
  - resource: foos.v1alpha1.samplecontroller.k8s.io
    handlers:
      - {id: count, set: {status: {availableReplicas: "${self.spec.replicas}"}}}
      - {id: hold, causes: [delete], log: {message: goes}}
`

// TestLabelsOfNamespacesAreLive changes labels of namespaces while the program runs, and while it does not.
func TestLabelsOfNamespacesAreLive(t *testing.T) {
	t.Parallel()
	suite, a, b := rand.String(8), plane.Namespace(t), plane.Namespace(t)
	label := func(ns, tenant string) {
		t.Helper()
		plane.Objects("namespaces.v1", "").Patch(t, ns, fmt.Sprintf(`{"metadata":{"labels":{"suite":%q,"tenant":%q}}}`, suite, tenant))
	}
	config := filepath.Join(t.TempDir(), "operator.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, tenants, suite), 0o600); err != nil {
		t.Fatal(err)
	}
	user := plane.User("tenants")
	user.Allow(t, cluster.Rule("samplecontroller.k8s.io", "foos", "get", "list", "watch", "patch"), cluster.Rule("samplecontroller.k8s.io", "foos/status", "patch"),
		cluster.Rule("", "namespaces", "list", "watch"), cluster.Rule("", "configmaps", "get", "update"), eventRule())
	counts := func(ns string, replicas int64) {
		t.Helper()
		plane.Objects(foos, ns).Await(t, "a", fmt.Sprintf("being counted as %d", replicas), func(o *unstructured.Unstructured) bool {
			n, _, _ := unstructured.NestedInt64(o.Object, "status", "availableReplicas")
			return n == replicas && len(o.GetFinalizers()) > 0
		})
	}
	leaves := func(ns string) {
		t.Helper()
		label(ns, "none")
		plane.Objects(foos, ns).Await(t, "a", "being let go", func(o *unstructured.Unstructured) bool { return len(o.GetFinalizers()) == 0 })
	}
	start := func() *cluster.Operator {
		return plane.Operator(t, cluster.Launch{Config: user.Config(), Args: []string{"run", "--config", config}, Env: []string{"POD_NAMESPACE=" + a}})
	}
	label(a, "gold")
	label(b, "wood")
	for _, ns := range []string{a, b} {
		plane.Objects(foos, ns).Create(t, foo("a", 1))
	}
	mark := plane.Mark(t)
	program := start()
	counts(a, 1)
	mustBeUntouched(t, user, mark, b)
	label(b, "iron")
	counts(b, 1)
	leaves(b)
	mark = plane.Mark(t)
	plane.Objects(foos, b).Patch(t, "a", `{"spec":{"replicas":2}}`)
	plane.Objects(foos, a).Patch(t, "a", `{"spec":{"replicas":2}}`)
	counts(a, 2)
	for _, w := range plane.Writes(t, user.Name, mark, "events") {
		if w.Namespace == b {
			t.Errorf("out of scope: %v", w)
		}
	}
	if readyz := awaitReadyz(t, program, "[+]started ok"); strings.Contains(readyz, "[!]") {
		t.Errorf("/readyz?verbose:\n%s", readyz)
	}
	program.Stop(t)
	mustLogNoError(t, program.Lines)

	label(b, "gold") // while no process runs
	program = start()
	counts(b, 2)
	leaves(a)
	leaves(b)
	program.Stop(t)
	mustLogNoError(t, program.Lines)
}

// mustBeUntouched holds that the user wrote nothing in these namespaces, whose Foos stay as they
// were made.
func mustBeUntouched(t *testing.T, user *cluster.User, since cluster.Mark, namespaces ...string) {
	t.Helper()
	for _, w := range plane.Writes(t, user.Name, since, "events") {
		for _, ns := range namespaces {
			if w.Namespace == ns {
				t.Errorf("out of scope: %v", w)
			}
		}
	}
	for _, ns := range namespaces {
		if plane.Objects(deployments, ns).Get(t, "a") != nil {
			t.Errorf("there is a Deployment in %s", ns)
		}
		if _, found := plane.Objects(foos, ns).Get(t, "a").Object["status"]; found {
			t.Errorf("the Foo in %s has a status", ns)
		}
	}
}

func stageIn(ns string) *fooStage {
	return &fooStage{ns: ns, foos: plane.Objects(foos, ns), deployments: plane.Objects(deployments, ns)}
}

// named makes a namespace of this name, until the test ends.
func named(t *testing.T, name string) {
	t.Helper()
	spaces := plane.Kubernetes().CoreV1().Namespaces()
	if _, err := spaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatalf("creating namespace: %v", err)
	}
	t.Cleanup(func() { plane.Objects("namespaces.v1", "").Delete(t, name) })
}
