// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/handwerk-dev/handwerk/sandbox"
)

// A Deployment is held, and makes its Pods when it is released.
func ExampleWorkloads_Hold() {
	ctx := context.Background()
	s, err := sandbox.Start(ctx, sandbox.Options{Clock: sandbox.StoppedClock})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Stop()
	pods := func() int {
		_ = s.Clock().Advance(ctx, 0) // the workloads come to rest
		list, err := kubernetes.NewForConfigOrDie(s.Config()).CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			fmt.Println(err)
		}
		return len(list.Items)
	}
	fmt.Println(s.Workloads().Hold("deployments/web"))
	_, err = kubernetes.NewForConfigOrDie(s.Config()).AppsV1().Deployments("default").Create(ctx, web(), metav1.CreateOptions{})
	fmt.Println(err, pods())
	fmt.Println(s.Workloads().Release("deployments/web"), pods())
	// Output:
	// <nil>
	// <nil> 0
	// <nil> 2
}

// Pods cannot be pulled, and recover when their Deployment is released.
func ExampleWorkloads_Fail() {
	ctx := context.Background()
	s, err := sandbox.Start(ctx, sandbox.Options{Clock: sandbox.StoppedClock})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Stop()
	pod := func() corev1.PodStatus {
		_ = s.Clock().Advance(ctx, 0) // the workloads come to rest
		list, err := kubernetes.NewForConfigOrDie(s.Config()).CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			fmt.Println(err)
		}
		return list.Items[0].Status
	}
	fmt.Println(s.Workloads().Fail("deployments/web", "ImagePullBackOff"))
	_, err = kubernetes.NewForConfigOrDie(s.Config()).AppsV1().Deployments("default").Create(ctx, web(), metav1.CreateOptions{})
	fmt.Println(err, pod().ContainerStatuses[0].State.Waiting.Reason)
	fmt.Println(s.Workloads().Release("deployments/web"), pod().Phase)
	// Output:
	// <nil>
	// <nil> ImagePullBackOff
	// <nil> Running
}

// Pods take 20 s to be ready.
func ExampleWorkloads_Delay() {
	ctx := context.Background()
	s, err := sandbox.Start(ctx, sandbox.Options{Clock: sandbox.StoppedClock})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Stop()
	fmt.Println(s.Workloads().Delay("pods/web-*", 20*time.Second))
	deployments := kubernetes.NewForConfigOrDie(s.Config()).AppsV1().Deployments("default")
	_, err = deployments.Create(ctx, web(), metav1.CreateOptions{})
	fmt.Println(err)
	for range 3 {
		_ = s.Clock().Advance(ctx, 10*time.Second)
		d, err := deployments.Get(ctx, "web", metav1.GetOptions{})
		fmt.Println(d.Status.ReadyReplicas, err)
	}
	// Output:
	// <nil>
	// <nil>
	// 0 <nil>
	// 2 <nil>
	// 2 <nil>
}

func TestWorkloadsAreNamedAsForKubectl(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		name string
		// held: a Deployment web of the namespace default is.
		held bool
		says string
	}{
		"in the namespace default":      {name: "deployments/web", held: true},
		"in another namespace":          {name: "deployments/shop/web"},
		"by a glob":                     {name: "deployments/*/w*", held: true},
		"all of a kind":                 {name: "deployments", held: true},
		"by a short name":               {name: "deploy/web", held: true},
		"by a kind":                     {name: "Deployment/web", held: true},
		"by a plural with its group":    {name: "deployments.apps/web", held: true},
		"a kind that does nothing":      {name: "configmaps/web", says: "holding configmaps/web: configmaps do not come alive; these do: "},
		"a kind that there is not":      {name: "deploymets/web", says: "holding deploymets/web: deploymets do not come alive; these do: "},
		"without a name after a slash":  {name: "deployments/", says: "holding deployments/: want a name as in deployments/web or deployments/team-a/web"},
		"with too many parts":           {name: "a/b/c/d", says: "holding a/b/c/d: want a name as in deployments/web or deployments/team-a/web"},
		"by a glob that is not well":    {name: "deployments/[", says: "holding deployments/[: want a name as in deployments/web or deployments/team-a/web"},
		"a kind that has no namespaces": {name: "nodes/node-0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStopped(t)
			err := s.Workloads().Hold(c.name)
			if got := fmt.Sprint(err); c.says == "" && err != nil || !strings.HasPrefix(got, c.says) {
				t.Errorf("the error is %v, want %s", err, c.says)
			}
			if status := s.deploy(web()); (status().ObservedGeneration == 0) != c.held {
				t.Errorf("the status is %+v, held: %t", status(), c.held)
			}
		})
	}
}

func TestWorkloadsAreReleasedByTheNameByWhichTheyAreHeld(t *testing.T) {
	t.Parallel()
	s := newStopped(t)
	if err := s.Workloads().Hold("deployments/w*"); err != nil {
		t.Fatal(err)
	}
	const want = "releasing deployments/web: it is not held, failed or delayed; these are: deployments/default/w*"
	if err := s.Workloads().Release("deployments/web"); fmt.Sprint(err) != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
	status := s.deploy(web())
	s.Workloads().ReleaseAll()
	if n := status().ReadyReplicas; n != 2 {
		t.Errorf("%d Pods are ready", n)
	}
	if err := s.Workloads().Release("deployments/w*"); fmt.Sprint(err) != "releasing deployments/w*: nothing is held, failed or delayed" {
		t.Errorf("the error is %v", err)
	}
}

func TestWithoutWorkloadsNoneIsHeld(t *testing.T) {
	t.Parallel()
	s := sandbox.New(t, sandbox.Options{NoWorkloads: true})
	s.Workloads().ReleaseAll()
	for name, err := range map[string]error{
		"holding": s.Workloads().Hold("deployments/web"), "failing": s.Workloads().Fail("deployments/web", "Unready"),
		"delaying": s.Workloads().Delay("deployments/web", 1), "releasing": s.Workloads().Release("deployments/web"),
	} {
		if want := name + " deployments/web: no workloads come alive in this sandbox"; fmt.Sprint(err) != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}

// TestTimestampsAreThoseOfTheClock holds that no part of an object has a time of the machine.
func TestTimestampsAreThoseOfTheClock(t *testing.T) {
	t.Parallel()
	s := newStopped(t)
	s.advance(1000 * time.Hour)
	begun := s.Clock().Now().Truncate(time.Second)
	s.deploy(web())()
	d, err := s.AppsV1().Deployments("default").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]metav1.Time{"metadata.creationTimestamp": d.CreationTimestamp}
	for _, c := range d.Status.Conditions {
		times["transition of "+string(c.Type)] = c.LastTransitionTime
		times["update of "+string(c.Type)] = c.LastUpdateTime
	}
	for _, entry := range d.ManagedFields {
		times["entry of "+entry.Manager+" "+entry.Subresource] = *entry.Time
	}
	if len(times) < 7 {
		t.Errorf("there are %d times: %v", len(times), times)
	}
	for name, at := range times {
		if !at.Time.Equal(begun) {
			t.Errorf("%s is %s, and the clock stands at %s", name, at, begun)
		}
	}
}
