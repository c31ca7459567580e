// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/workloads"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// stage is a cluster in memory whose workloads come alive.
type stage struct {
	t      testing.TB
	server *server.Server
	client dynamic.Interface
	plan   *workloads.Plan
	writes *atomic.Int64
	// answered is called for each request of the controllers before they get the answer, once it is set.
	answered *atomic.Pointer[func(server.Request)]
	stop     func()
}

// newStage starts a cluster. It ends with the test.
func newStage(t testing.TB, nodes int, rules ...workloads.Rule) stage {
	t.Helper()
	return newStageOn(t, server.New(server.Settings{}), nodes, rules...)
}

func newStageOn(t testing.TB, memory *server.Server, nodes int, rules ...workloads.Rule) stage {
	t.Helper()
	return newStageWith(t, memory, workloads.Settings{Nodes: nodes, Plan: workloads.NewPlan(rules...)})
}

func newStageWith(t testing.TB, memory *server.Server, settings workloads.Settings) stage {
	t.Helper()
	s := stage{t: t, server: memory, plan: settings.Plan, writes: &atomic.Int64{}, answered: &atomic.Pointer[func(server.Request)]{}}
	s.client = dynamic.NewForConfigOrDie(&rest.Config{Host: "http://cluster", Transport: memory.Admin(), QPS: -1})
	link := memory.Client(func(r server.Request) error {
		if r.Writes() {
			s.writes.Add(1)
		}
		return nil
	}, func(_ context.Context, r server.Request, _ int) error {
		if f := s.answered.Load(); f != nil {
			(*f)(r)
		}
		return nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		config := &rest.Config{Host: "http://cluster", Transport: link, QPS: -1, UserAgent: "stages"}
		if err := workloads.Run(ctx, config, settings); err != nil {
			t.Error(err)
		}
	}()
	s.stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(s.stop)
	return s
}

// run runs a test in a bubble, with a cluster.
func run(t *testing.T, test func(t *testing.T, s stage), rules ...workloads.Rule) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newStage(t, 1, rules...)) })
}

// advance lets time pass, and settles.
func (s stage) advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (s stage) of(kind, apiVersion string) dynamic.ResourceInterface {
	s.t.Helper()
	served, found := s.server.LookupKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	if !found {
		s.t.Fatalf("%s is not served", kind)
	}
	if !served.Namespaced {
		return s.client.Resource(served.GVR)
	}
	return s.client.Resource(served.GVR).Namespace("default")
}

// create creates the objects of a YAML text.
func (s stage) create(text string) {
	s.t.Helper()
	for document := range strings.SplitSeq(text, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
			s.t.Fatal(err)
		}
		u.SetNamespace("")
		if _, err := s.of(u.GetKind(), u.GetAPIVersion()).Create(s.t.Context(), u, metav1.CreateOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// apiVersions are those of the kinds that the tests name.
var apiVersions = map[string]string{
	"Deployment": "apps/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "Job": "batch/v1", "CronJob": "batch/v1",
	"ControllerRevision": "apps/v1", "Event": "v1", "EndpointSlice": "discovery.k8s.io/v1", "Endpoints": "v1",
	"Ingress": "networking.k8s.io/v1", "PodDisruptionBudget": "policy/v1",
	"Pod": "v1", "PersistentVolumeClaim": "v1", "PersistentVolume": "v1", "Service": "v1", "Node": "v1",
}

// patch sends a merge patch.
func (s stage) patch(kind, name, patch string) {
	s.t.Helper()
	if _, err := s.of(kind, apiVersions[kind]).Patch(s.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

func (s stage) delete(kind, name string) {
	s.t.Helper()
	if err := s.of(kind, apiVersions[kind]).Delete(s.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

func (s stage) get(kind, name string) *unstructured.Unstructured {
	s.t.Helper()
	u, err := s.of(kind, apiVersions[kind]).Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return u
}

func (s stage) list(kind string) []unstructured.Unstructured {
	s.t.Helper()
	list, err := s.of(kind, apiVersions[kind]).List(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return list.Items
}

// shows fails the test unless the objects of a kind are these, each as the words of shown.
func (s stage) shows(kind string, want ...string) {
	s.t.Helper()
	synctest.Wait()
	var got []string
	for _, u := range s.list(kind) {
		got = append(got, shown(s.t, &u))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("the objects of kind %s (-want +got):\n%s", kind, diff)
	}
}

// shown says in one line what an object is like.
func shown(t testing.TB, u *unstructured.Unstructured) string {
	t.Helper()
	out := []string{u.GetName()}
	if u.GetGenerateName() != "" {
		out = []string{u.GetGenerateName()}
	}
	for _, path := range []string{
		"spec.replicas", "status.replicas", "status.updatedReplicas", "status.readyReplicas", "status.availableReplicas", "status.desiredNumberScheduled", "status.numberReady",
		"status.phase", "status.active", "status.succeeded", "status.failed", "status.completedIndexes", "status.currentHealthy", "status.disruptionsAllowed",
	} {
		if value, found, _ := unstructured.NestedFieldNoCopy(u.Object, strings.Split(path, ".")...); found {
			short := path[strings.LastIndex(path, ".")+1:]
			if path == "spec.replicas" {
				short = "wanted"
			}
			out = append(out, fmt.Sprint(strings.TrimSuffix(short, "Replicas"), "=", value))
		}
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		c := c.(map[string]any)
		switch c["type"] {
		case "Ready", "Available", "Progressing", "Complete", "Failed", "Suspended":
			text := fmt.Sprint(c["type"], ":", c["status"])
			if reason, found := c["reason"]; found && c["type"] != "Available" {
				text += fmt.Sprint("/", reason)
			}
			out = append(out, text)
		}
	}
	if u.GetDeletionTimestamp() != nil {
		out = append(out, "ending")
	}
	state, err := status.Compute(u)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(append(out, state.Status.String()), " ")
}
