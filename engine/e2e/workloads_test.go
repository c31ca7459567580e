// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/workloads"
)

// living workloads are complete for the server in memory, too, which has no defaults here.
const living = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {by: hand}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: "db:1"}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: "agent:1"}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: work}
spec:
  completions: 2
  template:
    spec: {restartPolicy: Never, containers: [{name: work, image: work}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: later}
spec:
  suspend: true
  completions: 1
  template:
    spec: {restartPolicy: Never, containers: [{name: work, image: work}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}`

// TestWorkloadsComeAliveAsInARealCluster compares what becomes of workloads in memory with what the controllers of a
// cluster make of them.
func TestWorkloadsComeAliveAsInARealCluster(t *testing.T) {
	t.Parallel()
	var inMemory course
	synctest.Test(t, func(t *testing.T) {
		config := &rest.Config{Host: "http://cluster", Transport: server.New(server.Settings{}).Admin(), QPS: -1}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- workloads.Run(ctx, config, workloads.Settings{}) }()
		inMemory = lives(t, config, "default", course{})
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if diff := cmp.Diff(lives(t, plane.Config(), plane.Namespace(t), inMemory), inMemory); diff != "" {
		t.Errorf("what differs in memory (-real +in memory):\n%s", diff)
	}
}

// course is what becomes of workloads: after they are created, and after the Deployment has changed.
type course [2]map[string]string

// lived are the resources whose objects are compared.
var lived = []schema.GroupVersionResource{
	{Group: "apps", Version: "v1", Resource: "deployments"}, {Group: "apps", Version: "v1", Resource: "replicasets"},
	{Group: "apps", Version: "v1", Resource: "statefulsets"}, {Group: "apps", Version: "v1", Resource: "daemonsets"},
	{Group: "batch", Version: "v1", Resource: "jobs"}, {Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	{Version: "v1", Resource: "pods"},
}

// lives creates the workloads, rolls the Deployment out once more, and returns what has become of them; see atRest about want.
func lives(t *testing.T, config *rest.Config, namespace string, want course) (out course) {
	t.Helper()
	client := dynamic.NewForConfigOrDie(config)
	for document := range strings.SplitSeq(living, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
			t.Fatal(err)
		}
		for _, r := range lived {
			if r.Resource != strings.ToLower(u.GetKind())+"s" {
				continue
			}
			if _, err := client.Resource(r).Namespace(namespace).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	out[0] = atRest(t, client, namespace, want[0])
	patch := []byte(`{"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}`)
	if _, err := client.Resource(lived[0]).Namespace(namespace).Patch(t.Context(), "web", "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	out[1] = atRest(t, client, namespace, want[1])
	return out
}

// atRest waits until all is as wanted, or at most for a minute: the controllers of a busy machine pause now and then. If nothing is
// wanted, it waits until nothing has changed for three seconds.
func atRest(t *testing.T, client dynamic.Interface, namespace string, want map[string]string) map[string]string {
	t.Helper()
	before, since := map[string]string{}, time.Now()
	for start := time.Now(); time.Since(start) < time.Minute; time.Sleep(200 * time.Millisecond) {
		now := map[string]string{}
		for _, r := range lived {
			list, err := client.Resource(r).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range list.Items {
				name := fmt.Sprint(u.GetKind(), " ", u.GetName(), " ", u.GetAnnotations()["deployment.kubernetes.io/revision"])
				now[changeless(name)] = lifeOf(t, &u)
			}
		}
		if !maps.Equal(before, now) {
			before, since = now, time.Now()
		} else if maps.Equal(now, want) || want == nil && time.Since(since) > 3*time.Second {
			return now
		}
	}
	return before
}

// lifeOf is what has become of an object, without what differs from one cluster to another.
func lifeOf(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	out := map[string]any{"labels": slices.Sorted(maps.Keys(u.GetLabels())), "status": u.Object["status"], "replicas": u.Object["spec"].(map[string]any)["replicas"]}
	annotations := u.GetAnnotations()
	delete(annotations, "deprecated.daemonset.template.generation") // the API server's
	if len(annotations) > 0 {
		out["annotations"] = annotations
	}
	var managers []string
	for _, m := range u.GetManagedFields() {
		if m.Manager == "kube-controller-manager" {
			managers = append(managers, fmt.Sprint(m.Manager, " ", m.Operation, " ", m.Subresource))
		}
	}
	out["managers"] = managers
	for _, owner := range u.GetOwnerReferences() {
		out["owner"] = fmt.Sprint(owner.APIVersion, " ", owner.Kind, " ", *owner.Controller, " ", *owner.BlockOwnerDeletion)
	}
	switch u.GetKind() {
	case "Pod":
		out["status"], _, _ = unstructured.NestedString(u.Object, "status", "phase")
	case "ReplicaSet": // how many steps a rollout takes depends on who is quicker
		unstructured.RemoveNestedField(u.Object, "status", "observedGeneration")
	case "Job":
		delete(out, "labels") // the API server's
	}
	text, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return changeless(string(text))
}

var (
	times  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	hashes = regexp.MustCompile(`(web|db|agent|work)-[a-z0-9]{5,10}(-[a-z0-9]{5})?`)
)

// changeless replaces times, and names that the controllers make.
func changeless(text string) string {
	return hashes.ReplaceAllString(times.ReplaceAllString(text, "TIME"), "$1-HASH")
}
