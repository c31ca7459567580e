// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/access"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// TestAnAccountIsChecked: the program reports the rights that an account lacks, its own or a service
// account's.
func TestAnAccountIsChecked(t *testing.T) {
	t.Parallel()
	ns, user := plane.Namespace(t), plane.User("checked")
	user.AllowIn(t, ns,
		cluster.Rule("samplecontroller.k8s.io", "foos", "get", "list", "watch"),
		cluster.Rule("samplecontroller.k8s.io", "foos/status", "patch"),
		cluster.Rule("events.k8s.io", "events", "create", "patch"),
		cluster.Rule("apps", "deployments", "get", "list", "watch", "patch"),
	)
	user.Allow(t, cluster.Rule("", "configmaps", "get", "create", "update")) // the register, where it would be deployed
	check := func(launch cluster.Launch, args ...string) (string, int) {
		t.Helper()
		launch.Args = append([]string{"rbac", "--config", "samples/foo/operator.yaml", "--check", "-n", ns}, args...)
		program := plane.Operator(t, launch)
		exit := program.Wait(t)
		return strings.Join(program.All(), "\n"), exit.Code
	}
	own := cluster.Launch{Config: user.Config()}
	said, code := check(own)
	if code != 1 || !containsAll(said, "missing: create deployments.apps in namespace "+ns, "for handler foos/deployment", "1 missing") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	if said, code := check(cluster.Launch{}, "--service-account", ns+"/unbound"); code != 1 || !strings.Contains(said, "missing: list foos.samplecontroller.k8s.io in namespace "+ns) {
		t.Errorf("of a service account without rights, exit code %d:\n%s", code, said)
	}
	user.AllowIn(t, ns, rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"create"}})
	said, code = check(own)
	if code != 0 || !containsAll(said, "missing (optional): update foos.samplecontroller.k8s.io/finalizers", ": ok") {
		t.Errorf("with all that is needed, exit code %d:\n%s", code, said)
	}
	if said, code := check(own, "--service-account", ns+"/unbound"); code != 1 || !strings.Contains(said, "subjectaccessreviews") {
		t.Errorf("an account that may not ask about others, exit code %d:\n%s", code, said)
	}
}

// TestGuessesAreRight holds what is known of Kubernetes' own resources, without asking, against a
// cluster: whether they have namespaces, and what a kind is called in the plural.
func TestGuessesAreRight(t *testing.T) {
	t.Parallel()
	lists, err := plane.Kubernetes().Discovery().ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	op := dsl.New("guess")
	guess := rbac.Guess(op)
	lookup, err := access.Lookup(t.Context(), op, plane.Config())
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(gv.Group, "example.com") || gv.Group == "samplecontroller.k8s.io" {
			continue // of CRDs, for tests
		}
		for _, r := range list.APIResources {
			compared++
			name := dsl.ResourceName{Resource: r.Name, Version: gv.Version, Group: gv.Group}
			if got := guess(name, rbac.Kind{}); got.Namespaced != r.Namespaced {
				t.Errorf("%s: guessed that it is namespaced: %t", name, got.Namespaced)
			}
			served := lookup(dsl.ResourceName{}, gv.WithKind(r.Kind))
			if got := guess(dsl.ResourceName{}, gv.WithKind(r.Kind)); got.Resource != r.Name && r.Kind != "SelfSubjectReview" {
				t.Errorf("kind %s: guessed %s, want %s", r.Kind, got.Resource, r.Name)
			} else if served.Resource != r.Name {
				t.Errorf("kind %s: looked up %s, want %s", r.Kind, served.Resource, r.Name)
			}
		}
	}
	if compared < 50 {
		t.Errorf("only %d resources were compared", compared)
	}
}
