// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/handwerk-dev/handwerk/sandbox"
)

// client returns a client by the kubeconfig of a sandbox, as another process has it.
func client(t *testing.T, s *sandbox.Sandbox) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	return kubernetes.NewForConfigOrDie(config)
}

// web is a Deployment of two Pods.
func web() *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
			},
		},
	}
}

func TestPodsOfADeploymentBecomeReady(t *testing.T) {
	t.Parallel()
	deployments := client(t, sandbox.New(t, sandbox.Options{})).AppsV1().Deployments("default")
	watch, err := deployments.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	if _, err := deployments.Create(t.Context(), web(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for event := range watch.ResultChan() {
		if event.Object.(*appsv1.Deployment).Status.ReadyReplicas == 2 {
			return
		}
	}
	t.Error("the watch ended before two Pods were ready")
}

func TestWithoutWorkloadsThereAreNoNodes(t *testing.T) {
	t.Parallel()
	nodes, err := client(t, sandbox.New(t, sandbox.Options{NoWorkloads: true})).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 0 {
		t.Errorf("%d nodes, %v", len(nodes.Items), err)
	}
}

func TestObjectsAreKeptForTheNextStart(t *testing.T) {
	t.Parallel()
	o := sandbox.Options{Keep: t.TempDir(), NoWorkloads: true}
	first := sandbox.New(t, o)
	if _, err := client(t, first).AppsV1().Deployments("default").Create(t.Context(), web(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if first.Kept() {
		t.Error("the first sandbox says that it began with kept objects")
	}
	first.Stop()
	second := sandbox.New(t, o)
	if _, err := client(t, second).AppsV1().Deployments("default").Get(t.Context(), "web", metav1.GetOptions{}); err != nil || !second.Kept() {
		t.Errorf("in the second one: %v, kept: %t", err, second.Kept())
	}
}

func TestTheKubeconfigOfAnotherClusterIsNotTouched(t *testing.T) {
	t.Parallel()
	const others = "apiVersion: v1\nkind: Config\ncurrent-context: kind-dev\n"
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(others), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := sandbox.Start(t.Context(), sandbox.Options{Kubeconfig: file})
	if want := "writing kubeconfig " + file + ": the file is there and belongs to something else"; err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
	if now, err := os.ReadFile(file); string(now) != others {
		t.Errorf("the file is %q: %v", now, err)
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	s := sandbox.New(t, sandbox.Options{})
	folder := filepath.Dir(s.Kubeconfig())
	s.Stop()
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("%s is there: %v", folder, err)
	}
}

// TestClientsEndWithTheirSandbox holds that a client that is left shows itself by errors, as with a real server that is gone.
func TestClientsEndWithTheirSandbox(t *testing.T) {
	t.Parallel()
	s := sandbox.New(t, sandbox.Options{NoWorkloads: true})
	before := kubernetes.NewForConfigOrDie(s.Config())
	watch, err := before.CoreV1().Pods("default").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.Stop()
	if event, open := <-watch.ResultChan(); open {
		t.Errorf("the watch has got %v, want its end", event)
	}
	for name, client := range map[string]kubernetes.Interface{"before": before, "after": kubernetes.NewForConfigOrDie(s.Config())} {
		if _, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}); err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("a client that was made %s the end of the sandbox: %v, want a refused connection", name, err)
		}
	}
}

// TestAFaultThatNoRequestCanMeetPanics holds that a test learns of a name that is wrong.
func TestAFaultThatNoRequestCanMeetPanics(t *testing.T) {
	t.Parallel()
	s := sandbox.New(t, sandbox.Options{NoWorkloads: true})
	for name, tt := range map[string]struct {
		fault sandbox.Fault
		want  string
	}{
		"a short name of kubectl": {sandbox.Fault{Verb: "create", Resource: "deploy"}, ""},
		"everything":              {sandbox.Fault{Code: 503}, ""},
		"an unknown verb":         {sandbox.Fault{Verb: "post", Resource: "pods"}, `no request has the verb "post"`},
		"an unknown resource":     {sandbox.Fault{Resource: "nosuch"}, `the sandbox serves no resource "nosuch"`},
		"a status of success":     {sandbox.Fault{Resource: "pods", Code: 200}, "200 is no status of a failure"},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if got := fmt.Sprint(recover()); tt.want == "" && got != "<nil>" || !strings.Contains(got, tt.want) {
					t.Errorf("panicked with %s, want %q", got, tt.want)
				}
			}()
			defer s.Fail(tt.fault)()
		})
	}
}

func TestRequestsFailAsTheyAreToldTo(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]func(*sandbox.Sandbox) kubernetes.Interface{
		"by the kubeconfig": func(s *sandbox.Sandbox) kubernetes.Interface { return client(t, s) },
		"in the process":    func(s *sandbox.Sandbox) kubernetes.Interface { return kubernetes.NewForConfigOrDie(s.Config()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sandbox.New(t, sandbox.Options{NoWorkloads: true, Record: true})
			deployments := connect(s).AppsV1().Deployments("default")
			s.Fail(sandbox.Fault{Verb: "create", Resource: "deployments", Code: http.StatusConflict, Times: 1})
			end := s.Fail(sandbox.Fault{Verb: "list", Resource: "deployments.apps"})
			_, refused := deployments.Create(t.Context(), web(), metav1.CreateOptions{})
			_, created := deployments.Create(t.Context(), web(), metav1.CreateOptions{})
			if !apierrors.IsConflict(refused) || created != nil {
				t.Errorf("the first create: %v, the second: %v", refused, created)
			}
			_, failed := deployments.List(t.Context(), metav1.ListOptions{})
			end()
			_, listed := deployments.List(t.Context(), metav1.ListOptions{})
			if !apierrors.IsInternalError(failed) || listed != nil {
				t.Errorf("the first list: %v, the second: %v", failed, listed)
			}
			var got []string
			for _, r := range s.Requests() {
				got = append(got, fmt.Sprint(r.Verb, " ", r.Resource.Resource, " ", r.Code))
			}
			want := []string{"create deployments 409", "create deployments 201", "list deployments 500", "list deployments 200"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}
