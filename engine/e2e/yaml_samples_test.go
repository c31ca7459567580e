// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// sampleRun is a sample at work.
type sampleRun struct {
	user    *cluster.User
	program *cluster.Operator
}

// runSample runs a sample as a user who may do what the rules say, in namespaces or, without any, in
// the whole cluster. Each replacement is of an old text in the sample by a new one. The program must
// end without having logged an error.
func runSample(t *testing.T, name string, namespaces []string, rules []rbacv1.PolicyRule, replacements ...string) *sampleRun {
	t.Helper()
	file := sampleFile(t, name, replacements...)
	s := &sampleRun{user: plane.User(name)}
	args := []string{"run", "--config", file}
	if len(namespaces) == 0 {
		s.user.Allow(t, append(rules, eventRule())...)
	}
	for _, ns := range namespaces {
		s.user.AllowIn(t, ns, append(rules, eventRule())...)
		args = append(args, "-n", ns)
	}
	s.program = plane.Operator(t, cluster.Launch{Main: sampleMain(name), Config: s.user.Config(), Args: args})
	t.Cleanup(func() {
		if exit := s.program.Stop(t); exit.Code != 0 {
			t.Errorf("the program ended with exit code %d", exit.Code)
		}
		mustLogNoError(t, s.program.Lines)
	})
	s.program.Await(t, "operator starts")
	return s
}

// sampleMain is the main package of a sample that has functions in Go, and otherwise the operator's.
func sampleMain(name string) string {
	if exists(filepath.Join("../../samples", name, "main.go")) {
		return "samples/" + name
	}
	return "cmd/operator"
}

// sampleFile is a copy of a sample in which each replacement is made of an old text by a new one.
func sampleFile(t *testing.T, name string, replacements ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../samples", name, "operator.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(replacements); i += 2 {
		if !strings.Contains(string(data), replacements[i]) {
			t.Fatalf("the sample %s has no %q", name, replacements[i])
		}
	}
	file := write(t, strings.NewReplacer(replacements...).Replace(string(data)))
	if parts := filepath.Join("../../samples", name, "parts"); exists(parts) {
		if err := os.CopyFS(filepath.Join(filepath.Dir(file), "parts"), os.DirFS(parts)); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

// exists reports whether there is a file.
func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// made are the verbs that apply needs for a kind of children.
func made(group, resources string) rbacv1.PolicyRule {
	return cluster.Rule(group, resources, "get", "list", "watch", "create", "patch", "delete")
}

// field is what a path leads to in an object.
func field(o *unstructured.Unstructured, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
	return value
}

func TestFooInYAMLAloneTakesAwayWhatIsRenamed(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	s := runSample(t, "foo-yaml", []string{ns}, []rbacv1.PolicyRule{
		cluster.Rule("samplecontroller.k8s.io", "foos", "get", "list", "watch"),
		cluster.Rule("samplecontroller.k8s.io", "foos/status", "patch"),
		made("apps", "deployments"),
	})
	stage := &fooStage{ns: ns, user: s.user, foos: plane.Objects(foos, ns), deployments: plane.Objects(deployments, ns), lines: s.program.Lines}
	stage.settled(t, "renamed", 1)
	stage.foos.Patch(t, "renamed", `{"spec":{"deploymentName":"renamed-2"}}`)
	stage.deployments.Await(t, "renamed-2", "a replica", func(o *unstructured.Unstructured) bool { return available(o) == 1 })
	stage.deployments.AwaitGone(t, "renamed")
	if got := cluster.Condition(stage.foos.Get(t, "renamed"), "Applied"); got != "True" {
		t.Errorf("condition Applied is %q", got)
	}
}

func TestWebApp(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	runSample(t, "webapp", []string{ns}, []rbacv1.PolicyRule{
		cluster.Rule("samples.handwerk.dev", "webapps", "get", "list", "watch"),
		cluster.Rule("samples.handwerk.dev", "webapps/status", "patch"),
		made("", "configmaps"), made("", "services"), made("apps", "deployments"),
		made("autoscaling", "horizontalpodautoscalers"), made("networking.k8s.io", "ingresses"),
	})
	apps := plane.Objects("webapps.v1alpha1.samples.handwerk.dev", ns)
	apps.Create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "samples.handwerk.dev/v1alpha1", "kind": "WebApp", "metadata": map[string]any{"name": "shop"},
		"spec": map[string]any{"image": "nginx:latest", "replicas": int64(2), "host": "shop.example.com", "env": map[string]any{"GREETING": "hello"}},
	}})
	ready := func(o *unstructured.Unstructured) bool { return cluster.Condition(o, "Ready") == "True" }
	app := apps.Await(t, "shop", "readiness", func(o *unstructured.Unstructured) bool {
		return ready(o) && field(o, "status", "availableReplicas") == int64(2)
	})
	if got := field(app, "status", "url"); got != "http://shop.example.com" {
		t.Errorf("url is %v", got)
	}
	workloads, ingresses, autoscalers := plane.Objects(deployments, ns), plane.Objects("ingresses.v1.networking.k8s.io", ns), plane.Objects("horizontalpodautoscalers.v2.autoscaling", ns)
	if o := ingresses.Get(t, "shop"); o == nil {
		t.Error("there is no Ingress")
	}
	if o := autoscalers.Get(t, "shop"); o != nil {
		t.Error("there is an autoscaler, which was not asked for")
	}
	config := func(o *unstructured.Unstructured) any {
		return field(o, "spec", "template", "metadata", "annotations", "config")
	}
	before := config(workloads.Get(t, "shop"))

	t.Run("a change of the configuration rolls the Deployment", func(t *testing.T) {
		apps.Patch(t, "shop", `{"spec":{"env":{"GREETING":"good evening"}}}`)
		workloads.Await(t, "shop", "another hash", func(o *unstructured.Unstructured) bool { return config(o) != nil && config(o) != before })
		if got := field(plane.Objects("configmaps.v1", ns).Get(t, "shop"), "data", "GREETING"); got != "good evening" {
			t.Errorf("the ConfigMap says %v", got)
		}
	})
	t.Run("an Ingress that is not wanted any more goes", func(t *testing.T) {
		apps.Patch(t, "shop", `{"spec":{"host":null}}`)
		ingresses.AwaitGone(t, "shop")
		apps.Await(t, "shop", "another url", func(o *unstructured.Unstructured) bool { return field(o, "status", "url") == "http://shop."+ns })
	})
	t.Run("an autoscaler takes the number of replicas over", func(t *testing.T) {
		apps.Patch(t, "shop", `{"spec":{"maxReplicas":5}}`)
		autoscalers.Await(t, "shop", "its limit", func(o *unstructured.Unstructured) bool { return field(o, "spec", "maxReplicas") == int64(5) })
		// Somebody else scales; the operator leaves it alone.
		workloads.Await(t, "shop", "that no manager sets replicas", func(o *unstructured.Unstructured) bool {
			return !strings.Contains(asJSON(t, o.GetManagedFields()), `"f:replicas":{}},"f:selector"`)
		})
	})
	t.Run("a Service deleted by hand is put back", func(t *testing.T) {
		services := plane.Objects("services.v1", ns)
		uid := services.Get(t, "shop").GetUID()
		services.Delete(t, "shop")
		services.Await(t, "shop", "another Service", func(o *unstructured.Unstructured) bool { return o.GetUID() != uid })
	})
}

func TestTenant(t *testing.T) {
	t.Parallel()
	s := runSample(t, "tenant", nil, []rbacv1.PolicyRule{
		cluster.Rule("", "namespaces", "get", "list", "watch"), // and no patch: what is in a namespace is near to it
		made("", "resourcequotas"), made("networking.k8s.io", "networkpolicies"), made("rbac.authorization.k8s.io", "rolebindings"),
		cluster.Rule("rbac.authorization.k8s.io", "clusterroles", "bind"),
	})
	_ = s
	name := plane.Namespace(t)
	namespaces := plane.Objects("namespaces.v1", "")
	quotas, bindings := plane.Objects("resourcequotas.v1", name), plane.Objects("rolebindings.v1.rbac.authorization.k8s.io", name)
	pods := func(want string) func(*unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool { return field(o, "spec", "hard", "pods") == want }
	}
	namespaces.Patch(t, name, `{"metadata":{"labels":{"tenant.example.com/size":"small"},"annotations":{"tenant.example.com/admins":"alice,bob"}}}`)
	quotas.Await(t, "tenant", "the small quota", pods("10"))
	subjects := func() []string {
		var out []string
		for _, o := range bindings.List(t) {
			list, _, _ := unstructured.NestedSlice(o.Object, "subjects")
			for _, one := range list {
				out = append(out, one.(map[string]any)["name"].(string))
			}
		}
		return out
	}
	eventually(t, "two bindings", func() (bool, string) { return len(subjects()) == 2, strings.Join(subjects(), ",") })

	namespaces.Patch(t, name, `{"metadata":{"labels":{"tenant.example.com/size":"large"},"annotations":{"tenant.example.com/admins":"bob"}}}`)
	quotas.Await(t, "tenant", "the large quota", pods("100"))
	eventually(t, "one binding", func() (bool, string) {
		return cmp.Equal(subjects(), []string{"bob"}), strings.Join(subjects(), ",")
	})

	namespaces.Patch(t, name, `{"metadata":{"labels":{"tenant.example.com/size":null}}}`)
	quotas.AwaitGone(t, "tenant")
	plane.Objects("networkpolicies.v1.networking.k8s.io", name).AwaitGone(t, "tenant")
	eventually(t, "no binding", func() (bool, string) { return len(subjects()) == 0, strings.Join(subjects(), ",") })
}

func TestSecretCopier(t *testing.T) {
	t.Parallel()
	s := runSample(t, "secret-copier", nil, []rbacv1.PolicyRule{
		cluster.Rule("", "namespaces", "get", "list", "watch"), made("", "secrets"),
	})
	source, elsewhere, here, there := plane.Namespace(t), plane.Namespace(t), plane.Namespace(t), plane.Namespace(t)
	namespaces := plane.Objects("namespaces.v1", "")
	receive := func(ns, value string) {
		namespaces.Patch(t, ns, `{"metadata":{"labels":{"secrets.example.com/receive-from":`+value+`}}}`)
	}
	receive(here, `"`+source+`"`)
	secrets, copies, more := plane.Objects("secrets.v1", source), plane.Objects("secrets.v1", here), plane.Objects("secrets.v1", there)
	plane.Apply(t, source, "apiVersion: v1\nkind: Secret\nmetadata: {name: registry, labels: {secrets.example.com/copy: \"true\"}}\ndata: {password: b25l}")
	says := func(want string) func(*unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool { return field(o, "data", "password") == want }
	}
	copies.Await(t, "registry", "the password", says("b25l"))

	receive(there, `"`+elsewhere+`"`)
	plane.Apply(t, elsewhere, "apiVersion: v1\nkind: Secret\nmetadata: {name: other, labels: {secrets.example.com/copy: \"true\"}}")
	more.Await(t, "other", "the copy", func(*unstructured.Unstructured) bool { return true })
	if copies.Get(t, "other") != nil {
		t.Error("a namespace has received from one that its label does not name")
	}
	receive(there, `"`+source+`"`)
	more.AwaitGone(t, "other")
	more.Await(t, "registry", "the password", says("b25l"))
	secrets.Patch(t, "registry", `{"data":{"password":"dHdv"}}`)
	copies.Await(t, "registry", "the new password", says("dHdv"))
	more.Await(t, "registry", "the new password", says("dHdv"))

	copies.Patch(t, "registry", `{"data":{"password":"ZWRpdA=="}}`)
	copies.Await(t, "registry", "the password that was put back", says("dHdv"))

	receive(there, "null")
	more.AwaitGone(t, "registry")

	mark := plane.Mark(t)
	secrets.Delete(t, "registry")
	secrets.AwaitGone(t, "registry")
	copies.AwaitGone(t, "registry")
	if got := plane.Writes(t, s.user.Name, mark); strings.Contains(got.String(), "there/") {
		t.Errorf("writes after the end:\n%v", got)
	}
}

func TestCleanup(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	jobs := plane.Objects("jobs.v1.batch", ns)
	for name, keep := range map[string]string{"done": "", "kept": `cleanup.example.com/keep: "yes"`} {
		plane.Apply(t, ns, strings.NewReplacer("NAME", name, "KEEP", keep).Replace(finishedJob))
		jobs.Patch(t, name, `{"status":{"startTime":"2026-01-01T00:00:00Z","completionTime":"2026-01-01T00:01:00Z","succeeded":1,`+
			`"conditions":[{"type":"SuccessCriteriaMet","status":"True","lastTransitionTime":"2026-01-01T00:01:00Z"},{"type":"Complete","status":"True","lastTransitionTime":"2026-01-01T00:01:00Z"}]}}`, "status")
	}
	plane.Apply(t, ns, strings.NewReplacer("NAME", "running", "KEEP", "").Replace(finishedJob))
	runSample(t, "cleanup", []string{ns}, []rbacv1.PolicyRule{cluster.Rule("batch", "jobs", "get", "list", "watch", "delete")},
		"cron: 0 3 * * *\n        timeZone: Europe/Berlin", "every: 1s")
	jobs.AwaitGone(t, "done")
	for _, name := range []string{"kept", "running"} {
		if jobs.Get(t, name) == nil {
			t.Errorf("the Job %s is gone", name)
		}
	}
}

// finishedJob is suspended, so that only the test says how it ends.
const finishedJob = `
apiVersion: batch/v1
kind: Job
metadata: {name: NAME, annotations: {KEEP}}
spec:
  suspend: true
  template:
    spec: {restartPolicy: Never, containers: [{name: work, image: busybox}]}
`
