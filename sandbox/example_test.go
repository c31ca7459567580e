// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/handwerk-dev/handwerk/sandbox"
	"github.com/handwerk-dev/handwerk/sandbox/workloads"
)

// started starts a sandbox for an example.
func started(o sandbox.Options) (context.Context, *sandbox.Sandbox, kubernetes.Interface) {
	ctx := context.Background()
	s, err := sandbox.Start(ctx, o)
	if err != nil {
		panic(err)
	}
	return ctx, s, kubernetes.NewForConfigOrDie(s.Config())
}

func ExampleNew() {
	_ = func(t *testing.T) { // a test
		s := sandbox.New(t, sandbox.Options{})
		client := kubernetes.NewForConfigOrDie(s.Config())
		if _, err := client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
}

func ExampleStart() {
	ctx := context.Background()
	s, err := sandbox.Start(ctx, sandbox.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Stop()
	namespace, err := kubernetes.NewForConfigOrDie(s.Config()).CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
	fmt.Println(namespace.Name, err)
	// Output: default <nil>
}

// A Deployment whose Pods become ready, but not those of the Deployment "broken".
func ExampleOptions() {
	plan := workloads.NewPlan(
		workloads.Rule{Delay: time.Second},
		workloads.Rule{Kind: "Deployment", Name: "broken", Fail: "CrashLoopBackOff"},
	)
	_, s, _ := started(sandbox.Options{Nodes: 3, Plan: plan})
	defer s.Stop()
}

// Pods follow a Deployment, and become ready.
func ExampleSandbox() {
	ctx, s, client := started(sandbox.Options{})
	defer s.Stop()
	pods, err := client.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pods.Stop()
	if err := s.Load(web()); err != nil {
		fmt.Println(err)
		return
	}
	for event := range pods.ResultChan() {
		if pod := event.Object.(*corev1.Pod); pod.Status.Phase == corev1.PodRunning {
			fmt.Println("a Pod of", pod.Labels["app"], "is", pod.Status.Phase)
			return
		}
	}
	// Output: a Pod of web is Running
}

func ExampleSandbox_Config() {
	ctx, s, _ := started(sandbox.Options{NoWorkloads: true})
	defer s.Stop()
	client := kubernetes.NewForConfigOrDie(s.Config())
	list, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	fmt.Println(len(list.Items), err)
	// Output: 4 <nil>
}

// Programs such as kubectl, and clients in other languages, take the file.
func ExampleSandbox_Kubeconfig() {
	_, s, _ := started(sandbox.Options{NoWorkloads: true})
	defer s.Stop()
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	version, err := kubernetes.NewForConfigOrDie(config).Discovery().ServerVersion()
	fmt.Println(version.Major, err)
	// Output: 1 <nil>
}

// A Pod that somebody has made two days ago, and that has failed since.
func ExampleSandbox_Load() {
	ctx, s, client := started(sandbox.Options{NoWorkloads: true})
	defer s.Stop()
	err := s.Load(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "old", CreationTimestamp: metav1.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "nginx"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodFailed},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	pod, err := client.CoreV1().Pods("default").Get(ctx, "old", metav1.GetOptions{})
	fmt.Println(pod.Status.Phase, pod.CreationTimestamp.Year(), err)
	// Output: Failed 2000 <nil>
}

// Each fault has the file, the line and the object.
func ExampleSandbox_LoadFiles() {
	_, s, _ := started(sandbox.Options{NoWorkloads: true})
	defer s.Stop()
	folder, err := os.MkdirTemp("", "objects")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	const text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n---\napiVersion: example.com/v1\nkind: Widget\nmetadata: {name: one}\n"
	file := filepath.Join(folder, "objects.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.ReplaceAll(s.LoadFiles(file).Error(), folder+"/", ""))
	// Output: loading objects.yaml:5 (document 2): Widget one: the CRD of its kind is missing, which is usually named widgets.example.com: --crds or --load brings it
}

// The second of three updates meets a conflict.
func ExampleSandbox_Fail() {
	ctx, s, client := started(sandbox.Options{NoWorkloads: true})
	defer s.Stop()
	update := func() error {
		_, err := client.CoreV1().Namespaces().Update(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.UpdateOptions{})
		return err
	}
	fmt.Println(update())
	s.Fail(sandbox.Fault{Verb: "update", Resource: "namespaces", Code: http.StatusConflict, Times: 1})
	fmt.Println(apierrors.IsConflict(update()))
	fmt.Println(update())
	// Output:
	// <nil>
	// true
	// <nil>
}

// A server that is down for reads of Secrets until the fault ends.
func ExampleFault() {
	ctx, s, client := started(sandbox.Options{NoWorkloads: true})
	defer s.Stop()
	end := s.Fail(sandbox.Fault{Verb: "list", Resource: "secrets", Code: http.StatusServiceUnavailable})
	_, err := client.CoreV1().Secrets("default").List(ctx, metav1.ListOptions{})
	fmt.Println(apierrors.IsServiceUnavailable(err))
	end()
	_, err = client.CoreV1().Secrets("default").List(ctx, metav1.ListOptions{})
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}

func ExampleSandbox_Requests() {
	ctx, s, client := started(sandbox.Options{NoWorkloads: true, Record: true})
	defer s.Stop()
	_, _ = client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	_ = client.CoreV1().ConfigMaps("default").Delete(ctx, "b", metav1.DeleteOptions{})
	for _, r := range s.Requests() {
		fmt.Println(r.Verb, r.Resource.Resource, r.Name, r.Code)
	}
	// Output:
	// create configmaps  201
	// delete configmaps b 404
}

// A test of a controller that is to be idle counts writes.
func ExampleRequest() {
	_, s, _ := started(sandbox.Options{NoWorkloads: true, Record: true})
	defer s.Stop()
	writes := 0
	for _, r := range s.Requests() {
		if r.Verb != "get" && r.Verb != "list" && r.Verb != "watch" {
			writes++
		}
	}
	fmt.Println(writes)
	// Output: 0
}

// The objects of a sandbox are there when the next one starts.
func ExampleSandbox_Kept() {
	folder, err := os.MkdirTemp("", "kept")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	for range 2 {
		_, s, _ := started(sandbox.Options{NoWorkloads: true, Keep: folder})
		fmt.Println(s.Kept())
		s.Stop()
	}
	// Output:
	// false
	// true
}

func ExampleSandbox_Stop() {
	_, s, _ := started(sandbox.Options{NoWorkloads: true})
	s.Stop()
	_, err := os.Stat(s.Kubeconfig())
	fmt.Println(errors.Is(err, os.ErrNotExist))
	// Output: true
}

// A program that has to exit at once leaves no files.
func ExampleSandbox_Leave() {
	_, s, _ := started(sandbox.Options{NoWorkloads: true})
	s.Leave()
	_, err := os.Stat(s.Kubeconfig())
	fmt.Println(errors.Is(err, os.ErrNotExist))
	s.Stop()
	// Output: true
}

// Two sandboxes cannot keep their objects in one folder.
func Example_errInUse() {
	folder, err := os.MkdirTemp("", "kept")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	ctx, s, _ := started(sandbox.Options{NoWorkloads: true, Keep: folder})
	defer s.Stop()
	_, err = sandbox.Start(ctx, sandbox.Options{Keep: folder})
	fmt.Println(errors.Is(err, sandbox.ErrInUse))
	// Output: true
}

// A client that lists at a version from before Compact has to list anew.
func ExampleSandbox_Compact() {
	ctx := context.Background()
	s, err := sandbox.Start(ctx, sandbox.Options{NoWorkloads: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Stop()
	maps := kubernetes.NewForConfigOrDie(s.Config()).CoreV1().ConfigMaps("default")
	old, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := maps.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	s.Compact()
	at := metav1.ListOptions{ResourceVersion: old.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	_, err = maps.List(ctx, at)
	fmt.Println(apierrors.IsResourceExpired(err))
	// Output: true
}
