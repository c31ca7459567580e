// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/handlers"
)

// sameInYAML and sameInGo are one operator, written twice.
const sameInYAML = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: same}
resources:
  - resource: foos.v1alpha1.samplecontroller.k8s.io
    handlers:
      - id: parts
        apply:
          settings:
            apiVersion: v1
            kind: ConfigMap
            metadata: {name: "${self.metadata.name}"}
            data: {replicas: "${string(self.spec.replicas)}"}
          workload:
            apiVersion: apps/v1
            kind: Deployment
            metadata: {name: "${self.spec.deploymentName}"}
            spec:
              replicas: ${self.spec.replicas}
              selector: {matchLabels: {app: "${self.metadata.name}"}}
              template:
                metadata:
                  labels: {app: "${self.metadata.name}"}
                  annotations: {replicas: "${children.settings.data.replicas}"}
                spec: {containers: [{name: main, image: nginx}]}
      - id: status
        set:
          status: {availableReplicas: "${children.workload.?status.?availableReplicas.orValue(0)}"}
`

func sameInGo() *dsl.Operator {
	op := dsl.New("same")
	op.Resource(foos, func(foo *dsl.Resource) {
		foo.Owns("configmaps.v1", "deployments.v1.apps")
		foo.OnReconcile("parts", sameParts)
		foo.OnReconcile("status", func(_ context.Context, r *dsl.Request) error {
			workload, err := r.Children.Get(deployments, deploymentName(r.Object))
			if err != nil || workload == nil {
				return err
			}
			r.Patch.SetStatus("availableReplicas", available(workload))
			return nil
		})
	})
	return op
}

func sameParts(ctx context.Context, r *dsl.Request) error {
	name := r.Object.GetName()
	settings, err := r.Children.Apply(ctx, map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name},
		"data": map[string]any{"replicas": fmt.Sprint(replicas(r.Object))},
	}, dsl.ChildSpec{Handler: "parts", Name: "settings"})
	if err != nil {
		return err
	}
	app := map[string]any{"app": name}
	_, err = r.Children.Apply(ctx, map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": deploymentName(r.Object)},
		"spec": map[string]any{
			"replicas": replicas(r.Object), "selector": map[string]any{"matchLabels": app},
			"template": map[string]any{
				"metadata": map[string]any{"labels": app, "annotations": map[string]any{"replicas": field(settings, "data", "replicas")}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": "nginx"}}},
			},
		},
	}, dsl.ChildSpec{Handler: "parts", Name: "workload"})
	if err == nil {
		r.Patch.OfferCondition("Applied", metav1.ConditionTrue, "AllApplied", "")
	}
	return err
}

func deploymentName(foo *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(foo.Object, "spec", "deploymentName")
	return name
}

// TestGoAndYAMLMakeTheSameRequests holds that it is the same operator, whichever way it is written:
// for the same that happens, the API server sees the same requests, and has the same objects then.
func TestGoAndYAMLMakeTheSameRequests(t *testing.T) {
	t.Parallel()
	inYAML, err := config.Parse("same.yaml", []byte(sameInYAML), handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	requests, objects := map[string]string{}, map[string]string{}
	for name, op := range map[string]*dsl.Operator{"Go": sameInGo(), "YAML": inYAML} {
		ns, user := plane.Namespace(t), plane.User("same")
		user.AllowIn(t, ns, []rbacv1.PolicyRule{
			cluster.Rule("samplecontroller.k8s.io", "foos", "get", "list", "watch"),
			cluster.Rule("samplecontroller.k8s.io", "foos/status", "patch"),
			made("apps", "deployments"), made("", "configmaps"), eventRule(),
		}...)
		op.Scope.Namespaces = []string{ns}
		mark := plane.Mark(t)
		running := cluster.Run(t, op, engine.Settings{Config: user.Config()})
		stage := &fooStage{ns: ns, user: user, foos: plane.Objects(foos, ns), deployments: plane.Objects(deployments, ns)}
		stage.settled(t, "one", 2)
		stage.foos.Patch(t, "one", `{"spec":{"replicas":3}}`)
		stage.follows(t, "one", 3)
		stage.deployments.Patch(t, "one", `{"spec":{"replicas":1}}`)
		stage.deployments.Await(t, "one", "its replicas again", func(o *unstructured.Unstructured) bool { return replicas(o) == 3 && available(o) == 3 })
		stage.follows(t, "one", 3)
		running.Stop(t)
		again := cluster.Run(t, op, engine.Settings{Config: user.Config()})
		again.AwaitReady(t)
		again.Stop(t)
		requests[name] = requestsOf(plane.Writes(t, user.Name, mark), ns)
		objects[name] = untimed(t, ns, stage.deployments.Get(t, "one"), plane.Objects("configmaps.v1", ns).Get(t, "one"))
	}
	if diff := cmp.Diff(requests["Go"], requests["YAML"]); diff != "" {
		t.Errorf("requests (-Go +YAML):\n%s", diff)
	}
	if diff := cmp.Diff(objects["Go"], objects["YAML"]); diff != "" {
		t.Errorf("children (-Go +YAML):\n%s", diff)
	}
}

// requestsOf is every write to a child with its parameters, but not when statuses were written:
// how often that is depends on how quickly Pods become ready.
func requestsOf(writes cluster.Writes, ns string) string {
	var out []string
	for _, w := range writes {
		if w.Resource != "foos" {
			out = append(out, w.String()+" "+w.URI)
		}
	}
	return strings.ReplaceAll(strings.Join(out, "\n"), ns, "NS")
}

// untimed is what objects say, without what is of one run alone.
func untimed(t *testing.T, ns string, objects ...*unstructured.Unstructured) string {
	t.Helper()
	var out strings.Builder
	for _, o := range objects {
		delete(o.Object, "status")
		for _, key := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "ownerReferences"} {
			unstructured.RemoveNestedField(o.Object, "metadata", key)
		}
		unstructured.RemoveNestedField(o.Object, "metadata", "annotations", "same.handwerk.dev/applied") // it has the namespace and the owner in it
		text, err := json.MarshalIndent(o.Object, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		out.Write(text)
	}
	return strings.ReplaceAll(out.String(), ns, "NS")
}
