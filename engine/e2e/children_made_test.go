// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

const podOfOne = `{"metadata":{"labels":{"app":"w"}},"spec":{"restartPolicy":%q,"containers":[{"name":"c","image":"i"}]}}`

// manyKinds are children by their resource: of kinds whose registries do more than store them, too.
var manyKinds = map[string]string{
	"configmaps.v1":             `{"kind":"ConfigMap","data":{"a":"b"}}`,
	"secrets.v1":                `{"kind":"Secret","stringData":{"a":"b"}}`,
	"services.v1":               `{"kind":"Service","spec":{"ports":[{"port":80}]}}`,
	"serviceaccounts.v1":        `{"kind":"ServiceAccount"}`,
	"persistentvolumeclaims.v1": `{"kind":"PersistentVolumeClaim","spec":{"accessModes":["ReadWriteOnce"],"storageClassName":"none","resources":{"requests":{"storage":"1Gi"}}}}`,
	"deployments.v1.apps":       `{"kind":"Deployment","spec":{"replicas":0,"selector":{"matchLabels":{"app":"w"}},"template":` + fmt.Sprintf(podOfOne, "Always") + `}}`,
	"statefulsets.v1.apps":      `{"kind":"StatefulSet","spec":{"replicas":0,"serviceName":"w","selector":{"matchLabels":{"app":"w"}},"template":` + fmt.Sprintf(podOfOne, "Always") + `}}`,
	"cronjobs.v1.batch":         `{"kind":"CronJob","spec":{"suspend":true,"schedule":"@hourly","jobTemplate":{"spec":{"template":` + fmt.Sprintf(podOfOne, "Never") + `}}}}`,
	"jobs.v1.batch":             `{"kind":"Job","spec":{"suspend":true,"template":` + fmt.Sprintf(podOfOne, "Never") + `}}`,

	"ingresses.v1.networking.k8s.io":            `{"kind":"Ingress","spec":{"defaultBackend":{"service":{"name":"w","port":{"number":80}}}}}`,
	"networkpolicies.v1.networking.k8s.io":      `{"kind":"NetworkPolicy","spec":{"podSelector":{}}}`,
	"horizontalpodautoscalers.v2.autoscaling":   `{"kind":"HorizontalPodAutoscaler","spec":{"maxReplicas":2,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"w"}}}`,
	"poddisruptionbudgets.v1.policy":            `{"kind":"PodDisruptionBudget","spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"w"}}}}`,
	"roles.v1.rbac.authorization.k8s.io":        `{"kind":"Role","rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`,
	"clusterroles.v1.rbac.authorization.k8s.io": `{"kind":"ClusterRole","rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`,
	"foos.v1.example.com":                       `{"kind":"Foo","spec":{"a":"b"}}`,
}

// childOf is a child of one of these kinds.
func childOf(t *testing.T, resource, name string) *unstructured.Unstructured {
	t.Helper()
	text, of := manyKinds[resource], plane.Objects(resource, "").Name
	version := strings.TrimPrefix(of.Group+"/"+of.Version, "/")
	return parse(t, `{"apiVersion":"`+version+`","metadata":{"name":"`+name+`"},`+text[1:])
}

// TestAChildIsMadeByOneRequest: whatever its kind, a child is made and recreated without being read, by an apply, and a new
// process neither reads nor writes it.
func TestAChildIsMadeByOneRequest(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.proxy = cluster.NewProxy(t, plane.Config()) // what the operator may do is no matter here
	kinds, name := slices.Sorted(maps.Keys(manyKinds)), "made-"+s.ns
	children := map[string]*unstructured.Unstructured{}
	for _, kind := range kinds {
		children[kind] = childOf(t, kind, name)
	}
	op := s.operator(func(r *dsl.Resource) {
		r.Owns(kinds...)
		noted := s.Note("level")
		r.OnReconcile("level", func(ctx context.Context, r *dsl.Request) error {
			var errs []error
			for _, kind := range kinds {
				spec := dsl.ChildSpec{Handler: "level", Name: kind}
				if children[kind].GetKind() == "ClusterRole" {
					spec.Ownership = dsl.Labelled
				}
				_, err := r.Children.Apply(ctx, children[kind], spec)
				errs = append(errs, err)
			}
			if err := errors.Join(errs...); err != nil {
				return err
			}
			return noted(ctx, r)
		})
	})
	running := cluster.Run(t, op, engine.Settings{Config: s.proxy.Config()})
	running.AwaitReady(t)
	requests := func(kind string) (all []string) {
		of := plane.Objects(kind, s.ns).Name
		for _, r := range s.proxy.Requests(func(r cluster.Request) bool {
			return r.Resource == of.Resource && r.Group == of.Group && r.Name == name
		}) {
			all = append(all, fmt.Sprint(r.Verb, " ", r.Code))
		}
		return all
	}
	check := func(when string, want ...string) {
		t.Helper()
		for _, kind := range kinds {
			if diff := cmp.Diff(want, requests(kind)); diff != "" {
				t.Errorf("requests for the child of %s %s (-want +got):\n%s", kind, when, diff)
			}
		}
	}
	s.works.Create(t, work("w", "a"))
	s.Await(t, 1, "level", "w")
	check("when it was made", "patch 201")
	for _, kind := range kinds {
		namespace := s.ns
		if children[kind].GetKind() == "ClusterRole" {
			namespace = ""
		}
		objects := plane.Objects(kind, namespace)
		made := objects.Get(t, name)
		t.Cleanup(func() { objects.Delete(t, name) })
		for _, e := range made.GetManagedFields() {
			if e.Manager == "law" && e.Operation != metav1.ManagedFieldsOperationApply {
				t.Errorf("fields of the child of %s are managed by %s", kind, e.Operation)
			}
		}
	}
	running.Stop(t)
	before := len(s.Of("level", "w"))
	again := cluster.Run(t, op, engine.Settings{Config: s.proxy.Config()})
	again.AwaitReady(t)
	s.Await(t, before+1, "level", "w")
	check("after a restart", "patch 201")
	again.Stop(t)
}
