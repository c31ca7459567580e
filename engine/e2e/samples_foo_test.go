// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// fooStage is where an operator of Foos is at work.
type fooStage struct {
	ns                string
	user              *cluster.User
	foos, deployments *cluster.Objects
	// lines are the operator's log; nil where no test reads it.
	lines *cluster.Lines
}

// says waits for a line of the log.
func (s *fooStage) says(t *testing.T, line string) {
	t.Helper()
	if s.lines != nil {
		s.lines.Await(t, line)
	}
}

// settled makes a Foo, and returns it when it and its Deployment are as they should be.
func (s *fooStage) settled(t *testing.T, name string, replicas int64) *unstructured.Unstructured {
	t.Helper()
	s.foos.Create(t, foo(name, replicas))
	return s.follows(t, name, replicas)
}

// follows waits until a Foo reports so many available replicas.
func (s *fooStage) follows(t *testing.T, name string, replicas int64) *unstructured.Unstructured {
	t.Helper()
	return s.foos.Await(t, name, "available replicas", func(o *unstructured.Unstructured) bool { return available(o) == replicas })
}

// TestFooSample is kubernetes/sample-controller's behaviour, whichever way its operator is written.
func TestFooSample(t *testing.T) {
	t.Parallel()
	behaviours := map[string]func(*testing.T, *fooStage){
		"a Foo gets a Deployment whose Pods run":                fooIsCreated,
		"a Foo is scaled up and down":                           fooIsScaled,
		"an edit of the Deployment by hand is put back":         fooEditIsPutBack,
		"a Deployment deleted by hand is put back":              fooDeletionIsPutBack,
		"a foreign Deployment of the name is left alone":        fooLeavesForeignAlone,
		"the Deployment of a deleted Foo goes":                  fooIsDeleted,
		"a Foo that the CRD does not allow never gets anywhere": fooIsValidated,
	}
	for name, start := range fooRoutes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, user := plane.Namespace(t), plane.User("foo")
			user.AllowIn(t, ns, fooRules()...)
			lines := start(t, ns, user)
			t.Cleanup(func() { mustLogNoError(t, lines) })
			stage := &fooStage{ns: ns, user: user, foos: plane.Objects(foos, ns), deployments: plane.Objects(deployments, ns), lines: lines}
			for name, behave := range behaviours {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					behave(t, stage)
				})
			}
		})
	}
}

func fooIsCreated(t *testing.T, s *fooStage) {
	mark := plane.Mark(t)
	owner := s.settled(t, "created", 2)
	deployment := s.deployments.Get(t, "created")
	yes := true
	want := []metav1.OwnerReference{{
		APIVersion: "samplecontroller.k8s.io/v1alpha1", Kind: "Foo", Name: "created", UID: owner.GetUID(),
		Controller: &yes, BlockOwnerDeletion: &yes,
	}}
	if diff := cmp.Diff(want, deployment.GetOwnerReferences()); diff != "" {
		t.Errorf("owner references (-want +got):\n%s", diff)
	}
	if got := image(deployment); got != "nginx:latest" {
		t.Errorf("image is %q", got)
	}
	pods, err := plane.Kubernetes().CoreV1().Pods(s.ns).List(t.Context(), metav1.ListOptions{LabelSelector: "controller=created"})
	if err != nil || len(pods.Items) != 2 {
		t.Fatalf("there are %d Pods, want 2 (%v)", len(pods.Items), err)
	}
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodRunning || !podReady(&pod) {
			t.Errorf("Pod %s is %s, ready %t", pod.Name, pod.Status.Phase, podReady(&pod))
		}
	}
	event := awaitEvent(t, s.ns, "created", "Synced", 1)
	if event.Type != corev1.EventTypeNormal || !strings.HasPrefix(event.ReportingController, "foo") || event.InvolvedObject.UID != owner.GetUID() {
		t.Errorf("Event is %s by %q of %v", event.Type, event.ReportingController, event.InvolvedObject)
	}
	if got := plane.Writes(t, s.user.Name, mark).Of("deployments", "created"); len(got) != 1 {
		t.Errorf("writes to the Deployment, want one:\n%v", got)
	}
}

func fooIsScaled(t *testing.T, s *fooStage) {
	before := s.settled(t, "scaled", 1)
	uid := s.deployments.Get(t, "scaled").GetUID()
	s.foos.Patch(t, "scaled", `{"spec":{"replicas":3}}`)
	s.follows(t, "scaled", 3)
	s.foos.Patch(t, "scaled", `{"spec":{"replicas":1}}`)
	after := s.follows(t, "scaled", 1)
	if deployment := s.deployments.Get(t, "scaled"); deployment.GetUID() != uid || replicas(deployment) != 1 {
		t.Errorf("Deployment %s has %d replicas, want the same one (%s) with 1", deployment.GetUID(), replicas(deployment), uid)
	}
	if after.GetUID() != before.GetUID() {
		t.Error("the Foo is another one")
	}
}

func fooEditIsPutBack(t *testing.T, s *fooStage) {
	s.settled(t, "edited", 2)
	edits := map[string]string{
		"replicas": `{"spec":{"replicas":5}}`,
		"image":    `{"spec":{"template":{"spec":{"containers":[{"name":"nginx","image":"nginx:1.0"}]}}}}`,
	}
	fields := map[string]string{"replicas": "spec.replicas", "image": "spec.template.spec.containers"}
	for _, what := range []string{"replicas", "image"} {
		edited := s.deployments.Patch(t, "edited", edits[what])
		if replicas(edited) == 2 && image(edited) == "nginx:latest" {
			t.Fatalf("the edit of the %s changed nothing", what)
		}
		s.says(t, "put back Deployment "+s.ns+"/edited: "+fields[what]+" changed by e2e\"")
		back := s.deployments.Await(t, "edited", "its old "+what, func(o *unstructured.Unstructured) bool {
			return replicas(o) == 2 && image(o) == "nginx:latest"
		})
		if back.GetGeneration() <= edited.GetGeneration() {
			t.Errorf("%s: generation %d was seen, of before the edit (%d)", what, back.GetGeneration(), edited.GetGeneration())
		}
	}
	s.follows(t, "edited", 2)
}

func fooDeletionIsPutBack(t *testing.T, s *fooStage) {
	s.settled(t, "removed", 2)
	uid := s.deployments.Get(t, "removed").GetUID()
	s.deployments.Delete(t, "removed")
	s.deployments.Await(t, "removed", "another Deployment", func(o *unstructured.Unstructured) bool {
		return o.GetUID() != uid && replicas(o) == 2
	})
	s.follows(t, "removed", 2)
	if s.lines != nil {
		s.lines.AwaitTimes(t, 2, "created Deployment "+s.ns+"/removed\"")
	}
}

func fooLeavesForeignAlone(t *testing.T, s *fooStage) {
	mark := plane.Mark(t)
	foreign := plane.Apply(t, s.ns, foreignDeployment)[0]
	untouched := s.deployments.Await(t, "taken", "rest", func(o *unstructured.Unstructured) bool {
		observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
		return available(o) == 1 && observed == o.GetGeneration() && strings.Contains(asJSON(t, o.Object), "NewReplicaSetAvailable")
	})
	s.foos.Create(t, foo("taken", 3))
	event := awaitEvent(t, s.ns, "taken", "ErrResourceExists", 1)
	if want := `Resource "taken" already exists and is not managed by Foo`; event.Type != corev1.EventTypeWarning || event.Message != want {
		t.Errorf("Event is %s %q, want Warning %q", event.Type, event.Message, want)
	}
	now := s.deployments.Get(t, "taken")
	for what, part := range map[string]func(*unstructured.Unstructured) any{
		"spec":          func(o *unstructured.Unstructured) any { return o.Object["spec"] },
		"managedFields": func(o *unstructured.Unstructured) any { return o.GetManagedFields() },
		"labels":        func(o *unstructured.Unstructured) any { return o.GetLabels() },
		"annotations":   func(o *unstructured.Unstructured) any { return o.GetAnnotations() },
	} {
		if diff := cmp.Diff(asJSON(t, part(untouched)), asJSON(t, part(now))); diff != "" {
			t.Errorf("%s of the foreign Deployment (-before +after):\n%s", what, diff)
		}
	}
	if len(now.GetOwnerReferences()) != 0 || now.GetUID() != foreign.GetUID() {
		t.Errorf("Deployment %s has owners %v, want %s without any", now.GetUID(), now.GetOwnerReferences(), foreign.GetUID())
	}
	if got := plane.Writes(t, s.user.Name, mark).Of("deployments", "taken"); len(got) != 0 {
		t.Errorf("writes to the foreign Deployment:\n%v", got)
	}
	status, _, _ := unstructured.NestedMap(s.foos.Get(t, "taken").Object, "status")
	delete(status, "conditions") // from the third failure on there is one that says so
	if len(status) > 0 {
		t.Errorf("the Foo reports the foreign Deployment's state: %v", status)
	}

	// The name is free again.
	s.deployments.Delete(t, "taken")
	s.follows(t, "taken", 3)
}

func fooIsDeleted(t *testing.T, s *fooStage) {
	if made := s.settled(t, "deleted", 1); len(made.GetFinalizers()) > 0 {
		t.Errorf("its finalizers are %v", made.GetFinalizers())
	}
	s.foos.Delete(t, "deleted")
	s.foos.AwaitGone(t, "deleted")
	s.says(t, "Foo is gone, and its Deployment goes with it")
	s.deployments.AwaitGone(t, "deleted")
}

func fooIsValidated(t *testing.T, s *fooStage) {
	client := plane.Dynamic().Resource(foosGVR).Namespace(s.ns)
	for _, replicas := range []int64{0, 11} {
		if _, err := client.Create(t.Context(), foo("invalid", replicas), metav1.CreateOptions{}); err == nil {
			t.Errorf("a Foo with %d replicas was taken", replicas)
		}
	}
}

const foreignDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: taken, labels: {whose: somebody-else}}
spec:
  replicas: 1
  selector: {matchLabels: {app: foreign}}
  template:
    metadata: {labels: {app: foreign}}
    spec: {containers: [{name: main, image: busybox}]}
`

func replicas(o *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
	return n
}

func image(deployment *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	if len(containers) != 1 {
		return ""
	}
	name, _, _ := unstructured.NestedString(containers[0].(map[string]any), "image")
	return name
}

func podReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
