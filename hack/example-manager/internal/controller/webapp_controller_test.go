// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"net/http"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1 "github.com/handwerk-dev/handwerk/hack/example-manager/api/v1"
	"github.com/handwerk-dev/handwerk/sandbox"
)

func TestMain(m *testing.M) {
	if err := v1.AddToScheme(scheme.Scheme); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// start runs the controller in a sandbox of its own until the test ends.
func start(t *testing.T) (*sandbox.Sandbox, client.WithWatch) {
	t.Helper()
	s := sandbox.New(t, sandbox.Options{CRDs: []string{"../../config/crd/bases"}, Record: true})
	manager, err := ctrl.NewManager(s.Config(), ctrl.Options{
		Metrics:    metrics.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}, // each test has a manager
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := (&WebAppReconciler{manager.GetClient()}).SetupWithManager(manager); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(t.Context()) }()
	t.Cleanup(func() { // the context of the test has ended
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	c, err := client.NewWithWatch(s.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// web is a WebApp of two Pods.
func web() *v1.WebApp {
	return &v1.WebApp{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec:       v1.WebAppSpec{Image: "nginx", Replicas: 2},
	}
}

// untilReady waits until a WebApp says that so many Pods are ready.
func untilReady(t *testing.T, c client.WithWatch, replicas int32) {
	t.Helper()
	watch, err := c.Watch(t.Context(), &v1.WebAppList{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		if app, is := event.Object.(*v1.WebApp); is && app.Status.ReadyReplicas == replicas {
			return
		}
	}
	t.Fatalf("the watch ended before %d Pods were ready", replicas)
}

func TestAWebAppBecomesReadyWithItsPods(t *testing.T) {
	_, c := start(t)
	if err := c.Create(t.Context(), web()); err != nil {
		t.Fatal(err)
	}
	untilReady(t, c, 2)
	var pods corev1.PodList
	if err := c.List(t.Context(), &pods, client.MatchingLabels{"app": "web"}); err != nil || len(pods.Items) != 2 {
		t.Fatalf("%d Pods: %v", len(pods.Items), err)
	}
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodRunning {
			t.Errorf("%s is %s", pod.Name, pod.Status.Phase)
		}
	}
}

func TestTheAPIServerChecksAWebApp(t *testing.T) {
	_, c := start(t)
	app := web()
	app.Spec.Image = ""
	if err := c.Create(t.Context(), app); err == nil || !strings.Contains(err.Error(), "spec.image") {
		t.Errorf("a WebApp without an image: %v", err)
	}
}

func TestARefusedDeploymentIsTriedAgain(t *testing.T) {
	s, c := start(t)
	s.Fail(sandbox.Fault{Verb: "create", Resource: "deployments.apps", Code: http.StatusInternalServerError, Times: 1})
	if err := c.Create(t.Context(), web()); err != nil {
		t.Fatal(err)
	}
	untilReady(t, c, 2)
	var codes []int
	for _, r := range s.Requests() {
		if r.Verb == "create" && r.Resource.Resource == "deployments" {
			codes = append(codes, r.Code)
		}
	}
	if len(codes) != 2 || codes[0] != http.StatusInternalServerError || codes[1] != http.StatusCreated {
		t.Errorf("the answers to the creations of the Deployment are %v, want 500 and 201", codes)
	}
}

// TestThePageHasThisCode holds docs/sandbox.md and this file together.
func TestThePageHasThisCode(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/sandbox.md")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("webapp_controller_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(file), "// start runs the controller")
	code, _, ends := strings.Cut(rest, "\n}\n")
	if !found || !ends || !strings.Contains(string(page), "// start runs the controller"+code+"\n}\n") {
		t.Error("docs/sandbox.md does not have the function start of this file")
	}
}
