// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/sandbox/workloads"
)

func TestWhatIsHeldStaysAsItIs(t *testing.T) {
	run(t, func(t *testing.T, s stage) {
		s.create(web)
		s.create(pod("loose"))
		s.create(claim)
		s.advance(time.Hour)
		s.shows("Deployment", "web wanted=2 InProgress")
		s.shows("ReplicaSet")
		s.shows("Pod", "loose phase=Pending InProgress")
		s.shows("PersistentVolumeClaim", "data phase=Pending InProgress")
		s.plan.Set(workloads.Rule{Kind: "deployments", Name: "web"})
		s.shows("Deployment", done)
		s.plan.Drop(workloads.Rule{})
		s.shows("PersistentVolumeClaim", "data phase=Bound Current")
		s.plan.Set(workloads.Rule{Kind: "pods", Hold: true})
		s.delete("Pod", "loose")
		s.advance(time.Hour)
		if s.get("Pod", "loose").GetDeletionTimestamp() == nil {
			t.Error("a held Pod that is deleted does not end")
		}
	}, workloads.Rule{Hold: true})
}

func TestAStatusThatAClientWritesOfAHeldPodStays(t *testing.T) {
	run(t, func(t *testing.T, s stage) {
		s.create(pod("loose"))
		s.shows("Pod", "loose phase=Pending InProgress")
		status := []byte(`{"status":{"phase":null,"qosClass":"BestEffort"}}`)
		if _, err := s.of("Pod", "v1").Patch(t.Context(), "loose", types.MergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
		s.advance(time.Hour)
		if phase, found, _ := unstructured.NestedString(s.get("Pod", "loose").Object, "status", "phase"); found {
			t.Errorf("the Pod has the phase %s", phase)
		}
	}, workloads.Rule{Hold: true})
}

func TestTheLastRuleThatMatchesApplies(t *testing.T) {
	run(t, func(t *testing.T, s stage) {
		for _, name := range []string{"web-a", "web-b", "db"} {
			s.create(pod(name))
		}
		s.shows("Pod", "db phase=Running Ready:True Current", "web-a phase=Pending Ready:False/ContainersNotReady InProgress", "web-b phase=Running Ready:False/ContainersNotReady Failed")
	}, workloads.Rule{Kind: "Pod", Name: "web-*", Fail: "ImagePullBackOff"},
		workloads.Rule{Kind: "Pod", Namespace: "def*", Name: "web-b", Fail: "CrashLoopBackOff"},
		workloads.Rule{Kind: "Pod", Namespace: "other", Fail: "Unschedulable"})
}

func TestHowPodsFail(t *testing.T) {
	for reason, want := range map[string]string{
		"CrashLoopBackOff": "one phase=Running Ready:False/ContainersNotReady Failed",
		"ImagePullBackOff": "one phase=Pending Ready:False/ContainersNotReady InProgress",
		"Unready":          "one phase=Running Ready:False/ContainersNotReady InProgress",
		"Unschedulable":    "one phase=Pending InProgress",
	} {
		t.Run(reason, func(t *testing.T) {
			run(t, func(t *testing.T, s stage) {
				s.create(pod("one"))
				s.shows("Pod", want)
				s.plan.Set(workloads.Rule{Kind: "Pod"})
				s.shows("Pod", "one phase=Running Ready:True Current")
				s.plan.Set(workloads.Rule{Kind: "Pod", Fail: "CrashLoopBackOff"})
				s.shows("Pod", "one phase=Running Ready:False/ContainersNotReady Failed")
			}, workloads.Rule{Kind: "Pod", Fail: reason})
		})
	}
}

func TestAPodGoesThroughItsPhases(t *testing.T) {
	run(t, func(t *testing.T, s stage) {
		s.create(pod("one"))
		s.shows("Pod", "one phase=Pending Ready:False/ContainersNotReady InProgress")
		s.advance(9 * time.Second)
		s.plan.Set(workloads.Rule{Kind: "Pod", Delay: 20 * time.Second})
		s.advance(10 * time.Second)
		s.shows("Pod", "one phase=Pending Ready:False/ContainersNotReady InProgress")
		s.advance(time.Second)
		s.shows("Pod", "one phase=Running Ready:True Current")
		s.delete("Pod", "one")
		s.advance(19 * time.Second)
		s.shows("Pod", "one phase=Running Ready:True ending Terminating")
		s.advance(time.Second)
		s.shows("Pod")
	}, workloads.Rule{Kind: "Pod", Delay: 10 * time.Second})
}
