// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

const (
	kustomize = "deploy/kustomize/"
	system    = "handwerk-system"
)

// TestDeployHasTheRights runs the program as the Deployment does, as its service account with the
// roles of the manifests. It is not parallel, as this operator works in the whole cluster.
func TestDeployHasTheRights(t *testing.T) {
	var granted []*unstructured.Unstructured
	for _, file := range []string{
		"namespace.yaml", "service-account.yaml", "rbac.yaml",
	} {
		granted = append(granted, plane.Apply(t, "", kustomize+file)...)
	}
	t.Cleanup(func() { withdraw(t, granted) })
	config := serviceAccount()
	awaitAllowed(t, config, "samplecontroller.k8s.io", "foos", "watch", "", "")
	awaitAllowed(t, config, "events.k8s.io", "events", "create", "", "")
	awaitAllowed(t, config, "coordination.k8s.io", "leases", "watch", system, lock)
	awaitAllowed(t, config, "authorization.k8s.io", "subjectaccessreviews", "create", "", "")
	if allowed(t, config, "coordination.k8s.io", "leases", "update", system, "another") {
		t.Error("the operator may update any Lease")
	}

	program := plane.Operator(t, cluster.Launch{
		Config: config, Args: deployedArgs(t), Env: []string{"POD_NAME=operator-0", "POD_NAMESPACE=" + system},
	})
	awaitReadyz(t, program, "[+]started ok")
	ns := plane.Namespace(t)
	stage := stageIn(ns)
	stage.settled(t, "a", 1)
	stage.foos.Patch(t, "a", `{"spec":{"replicas":2}}`)
	stage.follows(t, "a", 2)
	awaitEvent(t, ns, "a", "Synced", 1)
	stage.foos.Delete(t, "a")
	stage.foos.AwaitGone(t, "a")
	protectsMetrics(t, program)
	got := awaitReadyz(t, program, "[+]started ok")
	for line := range strings.Lines(strings.TrimSuffix(got, "readyz check passed\n")) {
		if !strings.HasPrefix(line, "[+]") {
			t.Errorf("/readyz?verbose says %s", line)
		}
	}
	if holder := plane.Objects(leases, system).Get(t, lock); !strings.Contains(asJSON(t, holder), `"holderIdentity":"operator-0_`) {
		t.Errorf("the lock is %s", asJSON(t, holder))
	}
	if exit := program.Stop(t); exit.Code != 0 {
		t.Errorf("exit code is %d", exit.Code)
	}
	lines := slices.DeleteFunc(program.With("forbidden"), func(line string) bool {
		return strings.Contains(line, "because it is being terminated") // the namespace of another test
	})
	if len(lines) != 0 {
		t.Errorf("rights are missing:\n%s", strings.Join(lines, "\n"))
	}
	mustLogNoError(t, program.Lines)
}

// serviceAccount is the access of the deployed operator.
func serviceAccount() *rest.Config {
	config := plane.Config()
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + system + ":handwerk-foo",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + system, "system:authenticated"},
	}
	return config
}

// deployedContainer is the container of the Deployment.
func deployedContainer(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile("../../" + kustomize + "deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := cluster.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	containers, _, _ := unstructured.NestedSlice(objects[0].Object, "spec", "template", "spec", "containers")
	return containers[0].(map[string]any)
}

// deployedMemory is the memory that the Deployment gives the container, in bytes, and what it sets for Go's runtime.
func deployedMemory(t *testing.T) (limit int, runtime string) {
	t.Helper()
	container := deployedContainer(t)
	text, _, _ := unstructured.NestedString(container, "resources", "limits", "memory")
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		t.Fatalf("reading the limit of memory: %v", err)
	}
	for _, variable := range container["env"].([]any) {
		if variable := variable.(map[string]any); variable["name"] == "GOMEMLIMIT" {
			runtime, _ = variable["value"].(string)
		}
	}
	return int(quantity.Value()), runtime
}

// deployedArgs are the arguments of the Deployment's container, with the configuration of
// the sample instead of the mounted one.
func deployedArgs(t *testing.T) []string {
	t.Helper()
	args, _, err := unstructured.NestedStringSlice(deployedContainer(t), "args")
	i := slices.Index(args, "/etc/handwerk")
	if err != nil || i < 0 {
		t.Fatalf("no configuration in arguments %q (%v)", args, err)
	}
	args[i] = "samples/foo/operator.yaml"
	return args
}

// awaitAllowed waits until a right is in force: the API server learns of roles a little later.
func awaitAllowed(t *testing.T, config *rest.Config, group, resource, verb, namespace, name string) {
	t.Helper()
	eventually(t, fmt.Sprintf("permission to %s %s", verb, resource), func() (bool, string) {
		return allowed(t, config, group, resource, verb, namespace, name), "it is not allowed"
	})
}

func allowed(t *testing.T, config *rest.Config, group, resource, verb, namespace, name string) bool {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: config.Impersonate.UserName, Groups: config.Impersonate.Groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: group, Resource: resource, Name: name},
	}}
	got, err := plane.Kubernetes().AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got.Status.Allowed
}

// withdraw deletes what was applied.
func withdraw(t *testing.T, applied []*unstructured.Unstructured) {
	for _, o := range slices.Backward(applied) {
		resource := strings.ToLower(o.GetKind()) + "s.v1"
		if group := o.GroupVersionKind().Group; group != "" {
			resource += "." + group
		}
		plane.Objects(resource, o.GetNamespace()).Delete(t, o.GetName())
	}
}
