// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/handlers"
)

const (
	foos        = "foos.v1alpha1.samplecontroller.k8s.io"
	deployments = "deployments.v1.apps"
)

var foosGVR = schema.GroupVersionResource{Group: "samplecontroller.k8s.io", Version: "v1alpha1", Resource: "foos"}

func TestAppliedCRDIsServed(t *testing.T) {
	t.Parallel()
	ns, group := plane.Namespace(t), "g"+rand.String(6)+".example.com"
	plane.Apply(t, "", strings.ReplaceAll(thingCRD, "GROUP", group))
	things := plane.Objects("things.v1."+group, ns)
	things.Create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "Thing", "metadata": map[string]any{"name": "one"},
	}})
	got := things.Await(t, "one", "a UID", func(o *unstructured.Unstructured) bool { return o.GetUID() != "" })
	things.Delete(t, got.GetName())
	things.AwaitGone(t, got.GetName())
	if o := things.Get(t, "one"); o != nil {
		t.Errorf("after AwaitGone there is %v", o)
	}
	plane.Objects("customresourcedefinitions.v1.apiextensions.k8s.io", "").Delete(t, "things."+group)
}

const thingCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`

func TestAwaitSeesWhatComesLater(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	objects := plane.Objects(foos, ns)
	objects.Create(t, foo("a", 1))
	looks := 0
	got := objects.Await(t, "a", "status", func(o *unstructured.Unstructured) bool {
		if looks++; looks == 1 {
			objects.Patch(t, "a", `{"status":{"availableReplicas":7}}`, "status")
		}
		return available(o) == 7
	})
	if got.GetNamespace() != ns || looks != 2 {
		t.Errorf("namespace is %q, want %q; seen %d times, want 2", got.GetNamespace(), ns, looks)
	}
}

func TestWritesAreCountedByUser(t *testing.T) {
	t.Parallel()
	ns, user, other := plane.Namespace(t), plane.User("writer"), plane.User("other")
	for _, u := range []*cluster.User{user, other} {
		u.AllowIn(t, ns, cluster.Rule("samplecontroller.k8s.io", "foos", "get", "create"), cluster.Rule("", "events", "create"))
	}
	create(t, user.Config(), ns, foo("before", 1))
	mark := plane.Mark(t)
	create(t, user.Config(), ns, foo("after", 1))
	create(t, other.Config(), ns, foo("another", 1))
	client := dynamic.NewForConfigOrDie(user.Config())
	if err := client.Resource(foosGVR).Namespace(ns).Delete(t.Context(), "after", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("deleting without permission: %v", err)
	}
	event := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Event", "metadata": map[string]any{"name": "x", "namespace": ns},
		"involvedObject": map[string]any{"namespace": ns},
	}}
	if _, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "events"}).Namespace(ns).Create(t.Context(), event, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	want := fmt.Sprintf("create foos %[1]s/after 201\ndelete foos %[1]s/after 403", ns)
	if diff := cmp.Diff(want, plane.Writes(t, user.Name, mark).String()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	want += fmt.Sprintf("\ncreate events %s/x 201", ns)
	if diff := cmp.Diff(want, plane.Writes(t, user.Name, mark, "events").String()); diff != "" {
		t.Errorf("writes with events (-want +got):\n%s", diff)
	}
	if got := plane.Writes(t, "", mark).Of("foos", "another"); len(got) != 1 || got[0].User != other.Name {
		t.Errorf("writes of anybody to another: %+v", got)
	}
}

// TestWritesIncludeWhatIsSeen holds that reading the log waits for answers: a watch is often quicker
// than the end of the request that it reports.
func TestWritesIncludeWhatIsSeen(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	seen, err := plane.Dynamic().Resource(foosGVR).Namespace(ns).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Stop()
	var creating sync.WaitGroup
	defer creating.Wait()
	for i := range 100 {
		name, mark := fmt.Sprint("seen-", i), plane.Mark(t)
		creating.Go(func() { create(t, plane.Config(), ns, foo(name, 1)) })
		if got := nextEvent(t, seen); got != "ADDED "+name {
			t.Fatalf("event is %q, want that of %s", got, name)
		}
		if got := plane.Writes(t, "", mark).Of("foos", name); len(got) != 1 {
			t.Fatalf("writes to %s: %v", name, got)
		}
	}
}

func TestRolesCanBeTakenAway(t *testing.T) {
	t.Parallel()
	ns, user := plane.Namespace(t), plane.User("limited")
	client := dynamic.NewForConfigOrDie(user.Config()).Resource(foosGVR)
	list := func(namespace string) error {
		_, err := client.Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		return err
	}
	forbidden := func(namespace string) {
		t.Helper()
		if err := list(namespace); !apierrors.IsForbidden(err) {
			t.Errorf("listing without permission: %v", err)
		}
	}
	allowed := func(namespace string) {
		t.Helper()
		if err := list(namespace); err != nil {
			t.Errorf("listing with permission: %v", err)
		}
	}
	forbidden(ns)
	local := user.AllowIn(t, ns, cluster.Rule("samplecontroller.k8s.io", "foos", "list"))
	allowed(ns)
	forbidden("default")
	local.Revoke(t)
	forbidden(ns)
	everywhere := user.Allow(t, cluster.Rule("samplecontroller.k8s.io", "foos,foos/status", "list"))
	allowed("default")
	everywhere.Revoke(t)
	forbidden("default")
	everywhere.Grant(t)
	allowed(ns)
}

func TestOperatorInProcess(t *testing.T) {
	t.Parallel()
	ns, user := plane.Namespace(t), plane.User("foo-operator")
	user.Allow(t, operatorRules()...)
	op := handlers.FooOperator()
	op.Scope.Namespaces = []string{ns}
	running := cluster.Run(t, op, engine.Settings{Config: user.Config()})
	running.AwaitReady(t)
	objects, mark := plane.Objects(foos, ns), plane.Mark(t)
	objects.Create(t, foo("a", 2))
	objects.Await(t, "a", "available replicas", func(o *unstructured.Unstructured) bool { return available(o) == 2 })
	if got := plane.Writes(t, user.Name, mark).Of("deployments", "a"); len(got) != 1 {
		t.Errorf("writes to deployments:\n%v", got)
	}

	mark = plane.Mark(t)
	objects.Patch(t, "a", `{"metadata":{"annotations":{"example.com/foreign":"x"}}}`)
	marker := func(name string) *unstructured.Unstructured { return foo(name, 1) }
	objects.Quiesce(t, marker, func(o *unstructured.Unstructured) bool { return available(o) == 1 })
	writes := plane.Writes(t, user.Name, mark)
	if got := writes.Of("foos", "a"); len(got) != 0 {
		t.Errorf("writes to the Foo after a foreign annotation:\n%v", got)
	}
	if len(writes) == 0 {
		t.Error("the markers were handled without writes")
	}
	running.Stop(t)
	if lines := running.Errors(); len(lines) != 0 {
		t.Errorf("errors were logged:\n%s", strings.Join(lines, "\n"))
	}
}

func TestOperatorProcess(t *testing.T) {
	t.Parallel()
	ns, user := plane.Namespace(t), plane.User("foo-process")
	user.Allow(t, operatorRules()...)
	proxy := cluster.NewProxy(t, user.Config())
	launch := cluster.Launch{Config: proxy.Config(), Args: []string{"run", "--config", "samples/foo/operator.yaml", "-n", ns, "--grace-period", grace.String()}}
	operator := plane.Operator(t, launch)
	operator.Await(t, "operator starts")
	plane.Objects(foos, ns).Create(t, foo("a", 1))
	plane.Objects(foos, ns).Await(t, "a", "available replicas", func(o *unstructured.Unstructured) bool { return available(o) == 1 })
	if exit := operator.Stop(t); exit.Code != 0 {
		t.Errorf("operator stopped with code %d", exit.Code)
	}

	killed := plane.Operator(t, launch)
	killed.Await(t, "operator starts")
	crashed := proxy.CrashBefore(1, killed.Kill)
	plane.Objects(foos, ns).Create(t, foo("b", 1))
	<-crashed
	if exit := killed.Wait(t); exit.Code != -1 {
		t.Errorf("killed operator has exit code %d", exit.Code)
	}
	if plane.Objects(deployments, ns).Get(t, "b") != nil {
		t.Error("the write after the crash was handled")
	}
}

func TestLeftGoroutinesAreFound(t *testing.T) {
	t.Parallel()
	ns, end := plane.Namespace(t), make(chan struct{})
	defer close(end)
	op := dsl.New("leak")
	op.Scope.Namespaces = []string{ns}
	op.Resource(foos, func(r *dsl.Resource) {
		r.OnReconcile("leak", func(_ context.Context, r *dsl.Request) error {
			go func() { <-end }()
			r.Patch.SetStatus("availableReplicas", int64(9))
			return nil
		})
	})
	running := cluster.Run(t, op, engine.Settings{Config: plane.Config()})
	plane.Objects(foos, ns).Create(t, foo("a", 1))
	plane.Objects(foos, ns).Await(t, "a", "status", func(o *unstructured.Unstructured) bool { return available(o) == 9 })
	found := &complaints{TB: t}
	running.Lingering = 0
	running.Stop(found)
	if len(found.all) != 1 || !strings.Contains(found.all[0], "e2e.TestLeftGoroutinesAreFound") {
		t.Errorf("a goroutine is left, but the complaints are %q", found.all)
	}
}

// complaints keeps the errors of a test to itself.
type complaints struct {
	testing.TB
	all []string
}

func (c *complaints) Errorf(format string, args ...any) {
	c.all = append(c.all, fmt.Sprintf(format, args...))
}

func create(t testing.TB, config *rest.Config, ns string, object *unstructured.Unstructured) {
	t.Helper()
	client := dynamic.NewForConfigOrDie(config).Resource(foosGVR).Namespace(ns)
	if _, err := client.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Errorf("creating %s: %v", object.GetName(), err)
	}
}

func foo(name string, replicas int64) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo",
		"spec": map[string]any{"deploymentName": name, "replicas": replicas},
	}}
	o.SetName(name)
	return o
}

func available(o *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(o.Object, "status", "availableReplicas")
	return n
}

func operatorRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		cluster.Rule("samplecontroller.k8s.io", "foos,foos/status", "*"),
		cluster.Rule("apps", "deployments", "*"),
		cluster.Rule("", "events,namespaces", "*"),
		cluster.Rule("events.k8s.io", "events", "*"),
	}
}
