// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// machineRules are what a machine over one of the samples' resources takes, beside what its actions do.
func machineRules(resource string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		cluster.Rule("samples.handwerk.dev", resource, "get", "list", "watch", "patch"),
		cluster.Rule("samples.handwerk.dev", resource+"/status", "patch"),
	}
}

// sample is an object of one of the samples' kinds.
func sample(kind, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "samples.handwerk.dev/v1alpha1", "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

// inState is met by an object that is in a state, whose Enter is done where it has one.
func inState(state string) func(*unstructured.Unstructured) bool {
	return func(o *unstructured.Unstructured) bool { return field(o, "status", "state") == state }
}

// way is the states that an object has been in, by its history.
func way(o *unstructured.Unstructured) (out []string) {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "history")
	for i, entry := range list {
		if i == 0 {
			out = append(out, fmt.Sprint(entry.(map[string]any)["from"]))
		}
		out = append(out, fmt.Sprint(entry.(map[string]any)["to"]))
	}
	return out
}

// mustHaveGone holds that an object went this way.
func mustHaveGone(t *testing.T, o *unstructured.Unstructured, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, way(o)); diff != "" {
		t.Errorf("%s went another way (-want +got):\n%s", o.GetName(), diff)
	}
}

func TestJobMachine(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	runSample(t, "job-machine", []string{ns}, append(machineRules("tasks"), made("batch", "jobs")), "atMost: 10m", "atMost: 15s")
	tasks, jobs := plane.Objects("tasks.v1alpha1.samples.handwerk.dev", ns), plane.Objects("jobs.v1.batch", ns)
	nowhere := map[string]any{"image": "busybox", "nodeSelector": map[string]any{"no": "node"}}

	t.Run("a Job that completes", func(t *testing.T) {
		t.Parallel()
		tasks.Create(t, sample("Task", "good", map[string]any{"image": "busybox", "command": []any{"true"}}))
		task := tasks.Await(t, "good", "the end", func(o *unstructured.Unstructured) bool {
			return inState("Finished")(o) && cluster.Condition(o, "Ready") == "True"
		})
		mustHaveGone(t, task, "Pending", "Running", "Finished")
		if cluster.Condition(task, "Progressing") != "False" {
			t.Errorf("status is %s", asJSON(t, field(task, "status")))
		}
		awaitEvent(t, ns, "good", "Finished", 1)
	})
	t.Run("a Job that fails, and is run once more", func(t *testing.T) {
		t.Parallel()
		tasks.Create(t, sample("Task", "bad", nowhere))
		first := jobs.Await(t, "bad", "its start", func(o *unstructured.Unstructured) bool { return field(o, "status", "startTime") != nil }).GetUID()
		failPods(t, ns, "bad")
		task := tasks.Await(t, "bad", "its failure", inState("Failed"))
		mustHaveGone(t, task, "Pending", "Running", "Failed")
		awaitEvent(t, ns, "bad", "Failed", 1)
		tasks.Patch(t, "bad", `{"spec":{"nodeSelector":null},"metadata":{"annotations":{"job-machine.handwerk.dev/goto":"Retrying"}}}`)
		task = tasks.Await(t, "bad", "the end", inState("Finished"))
		mustHaveGone(t, task, "Pending", "Running", "Failed", "Retrying", "Pending", "Running", "Finished")
		if job := jobs.Get(t, "bad"); job == nil || job.GetUID() == first {
			t.Error("it is the Job of before")
		}
	})
	t.Run("a Job that takes too long, and a wish that cannot be granted", func(t *testing.T) {
		t.Parallel()
		tasks.Create(t, sample("Task", "slow", nowhere))
		task := tasks.Await(t, "slow", "the end of its time", inState("TimedOut"))
		mustHaveGone(t, task, "Pending", "Running", "TimedOut")
		jobs.AwaitGone(t, "slow")
		tasks.Patch(t, "slow", `{"metadata":{"annotations":{"job-machine.handwerk.dev/goto":"Finished"}}}`)
		if note := awaitEvent(t, ns, "slow", "GotoRefused", 1).Message; !strings.Contains(note, "Retrying") {
			t.Errorf("the Event does not say where one can go: %s", note)
		}
		tasks.Await(t, "slow", "that the annotation is taken off", func(o *unstructured.Unstructured) bool {
			return inState("TimedOut")(o) && o.GetAnnotations()["job-machine.handwerk.dev/goto"] == ""
		})
	})
}

// failPods says of the Pods of a Job that they have failed.
func failPods(t *testing.T, ns, job string) {
	t.Helper()
	pods := plane.Objects("pods.v1", ns)
	var name string
	eventually(t, "a Pod of "+job, func() (bool, string) {
		list := pods.List(t)
		i := slices.IndexFunc(list, func(o unstructured.Unstructured) bool { return o.GetLabels()["job-name"] == job })
		if i >= 0 {
			name = list[i].GetName()
		}
		return i >= 0, fmt.Sprint(len(list), " Pods")
	})
	pods.Patch(t, name, `{"status":{"phase":"Failed"}}`, "status")
}

func TestApproval(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	runSample(t, "approval", []string{ns}, append(machineRules("changes"), made("", "configmaps")), "atMost: 24h", "atMost: 20s")
	changes, settings := plane.Objects("changes.v1alpha1.samples.handwerk.dev", ns), plane.Objects("configmaps.v1", ns)
	spec := func(colour string) map[string]any {
		return map[string]any{"settings": map[string]any{"colour": colour}}
	}
	wish := func(name, state string) {
		changes.Patch(t, name, `{"metadata":{"annotations":{"approval.handwerk.dev/goto":"`+state+`"}}}`)
	}
	ready := func(o *unstructured.Unstructured) bool {
		return inState("Applied")(o) && cluster.Condition(o, "Ready") == "True"
	}
	colour := func(want string) func(*unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool { return field(o, "data", "colour") == want }
	}

	t.Run("one that is approved, put right, and edited", func(t *testing.T) {
		t.Parallel()
		changes.Create(t, sample("Change", "good", spec("green")))
		changes.Await(t, "good", "a question", func(o *unstructured.Unstructured) bool {
			return inState("Proposed")(o) && cluster.Condition(o, "AwaitingApproval") == "True"
		})
		if settings.Get(t, "good") != nil {
			t.Error("it was made before anybody approved it")
		}
		wish("good", "Approved")
		mustHaveGone(t, changes.Await(t, "good", "its end", ready), "Proposed", "Approved", "Applied")
		settings.Await(t, "good", "the settings", colour("green"))
		settings.Patch(t, "good", `{"data":{"colour":"red"}}`)
		settings.Await(t, "good", "what was approved", colour("green"))

		changes.Patch(t, "good", `{"spec":{"settings":{"colour":"blue"}}}`)
		changes.Await(t, "good", "another question", func(o *unstructured.Unstructured) bool {
			return inState("Proposed")(o) && field(o, "status", "proposed") == o.GetGeneration() // approved before, it is asked again
		})
		if got := settings.Get(t, "good"); !colour("green")(got) {
			t.Errorf("settings are %v, want those that were approved", field(got, "data"))
		}
		wish("good", "Approved")
		changes.Await(t, "good", "its end", ready)
		settings.Await(t, "good", "the new settings", colour("blue"))
	})
	t.Run("one that is rejected", func(t *testing.T) {
		t.Parallel()
		changes.Create(t, sample("Change", "bad", spec("pink")))
		changes.Await(t, "bad", "a question", inState("Proposed"))
		wish("bad", "Rejected")
		mustHaveGone(t, changes.Await(t, "bad", "its end", inState("Rejected")), "Proposed", "Rejected")
		if settings.Get(t, "bad") != nil {
			t.Error("it was made all the same")
		}
	})
	t.Run("one of low risk", func(t *testing.T) {
		t.Parallel()
		changes.Create(t, sample("Change", "low", map[string]any{"settings": map[string]any{"greeting": "hello"}}))
		mustHaveGone(t, changes.Await(t, "low", "its end", ready), "Proposed", "Approved", "Applied")
	})
	t.Run("one that is not looked at", func(t *testing.T) {
		t.Parallel()
		changes.Create(t, sample("Change", "late", spec("black")))
		mustHaveGone(t, changes.Await(t, "late", "the end of its time", inState("Expired")), "Proposed", "Expired")
	})
}

func TestRollout(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	runSample(t, "rollout", []string{ns}, append(machineRules("releases"), made("apps", "deployments")))
	releases, workloads := plane.Objects("releases.v1alpha1.samples.handwerk.dev", ns), plane.Objects(deployments, ns)
	pods := plane.Objects("pods.v1", ns)
	image := func(want string) func(*unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool {
			return strings.Contains(fmt.Sprint(field(o, "spec", "template")), "image:"+want)
		}
	}
	wish := func(state string) {
		releases.Patch(t, "shop", `{"metadata":{"annotations":{"rollout.handwerk.dev/goto":"`+state+`"}}}`)
	}
	releases.Create(t, sample("Release", "shop", map[string]any{"image": "nginx:1", "replicas": int64(4)}))
	releases.Await(t, "shop", "the first image", func(o *unstructured.Unstructured) bool {
		return inState("Stable")(o) && field(o, "status", "stable") == "nginx:1" && cluster.Condition(o, "Ready") == "True"
	})
	workloads.Await(t, "shop", "all Pods", func(o *unstructured.Unstructured) bool { return available(o) == 4 })

	releases.Patch(t, "shop", `{"spec":{"image":"nginx:2"}}`)
	releases.Await(t, "shop", "the pause", inState("Paused"))
	if canary := workloads.Get(t, "shop-canary"); canary == nil || !image("nginx:2")(canary) || available(canary) != 1 {
		t.Errorf("the canary is %s", asJSON(t, canary))
	}
	workloads.Await(t, "shop", "room for the canary", func(o *unstructured.Unstructured) bool {
		return image("nginx:1")(o) && field(o, "spec", "replicas") == int64(3)
	})
	wish("Half")
	release := releases.Await(t, "shop", "the new image", func(o *unstructured.Unstructured) bool {
		return inState("Stable")(o) && field(o, "status", "stable") == "nginx:2"
	})
	mustHaveGone(t, release, "Stable", "Canary", "Paused", "Half", "Promoting", "Stable")
	workloads.Await(t, "shop", "all Pods", func(o *unstructured.Unstructured) bool { return image("nginx:2")(o) && available(o) == 4 })
	workloads.AwaitGone(t, "shop-canary")

	releases.Patch(t, "shop", `{"spec":{"image":"nginx:3"}}`)
	releases.Await(t, "shop", "the pause", inState("Paused"))
	for _, pod := range pods.List(t) {
		if pod.GetLabels()["track"] == "canary" && pod.GetDeletionTimestamp() == nil && strings.Contains(fmt.Sprint(field(&pod, "spec", "containers")), "nginx:3") {
			pods.Patch(t, pod.GetName(), `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`, "status")
		}
	}
	release = releases.Await(t, "shop", "the way back", func(o *unstructured.Unstructured) bool {
		return inState("RolledBack")(o) && field(o, "status", "canary") == int64(0)
	})
	if got := way(release); !slices.Equal(got[len(got)-3:], []string{"Canary", "Paused", "RolledBack"}) || field(release, "status", "stable") != "nginx:2" {
		t.Errorf("it went %v, and is %s", got, asJSON(t, field(release, "status")))
	}
	workloads.AwaitGone(t, "shop-canary")
	workloads.Await(t, "shop", "all Pods of the image before", func(o *unstructured.Unstructured) bool { return image("nginx:2")(o) && available(o) == 4 })
}

// TestRolloutGoesByItself holds what the sample rollout does where no person does anything.
func TestRolloutGoesByItself(t *testing.T) {
	t.Parallel()
	rolling := func(t *testing.T, replacements ...string) (ns string, releases *cluster.Objects) {
		t.Helper()
		ns = plane.Namespace(t)
		runSample(t, "rollout", []string{ns}, append(machineRules("releases"), made("apps", "deployments")), replacements...)
		releases = plane.Objects("releases.v1alpha1.samples.handwerk.dev", ns)
		releases.Create(t, sample("Release", "shop", map[string]any{"image": "nginx:1", "replicas": int64(4)}))
		releases.Await(t, "shop", "the first image", inState("Stable"))
		plane.Objects(deployments, ns).Await(t, "shop", "all Pods", func(o *unstructured.Unstructured) bool { return available(o) == 4 })
		return ns, releases
	}
	t.Run("an image that holds in the pause comes out to all", func(t *testing.T) {
		t.Parallel()
		_, releases := rolling(t, "atMost: 10m", "atMost: 2s")
		releases.Patch(t, "shop", `{"spec":{"image":"nginx:2"}}`)
		release := releases.Await(t, "shop", "the new image", func(o *unstructured.Unstructured) bool {
			return inState("Stable")(o) && field(o, "status", "stable") == "nginx:2"
		})
		mustHaveGone(t, release, "Stable", "Canary", "Paused", "Half", "Promoting", "Stable")
	})
	t.Run("an image whose first Pod is not ready in time is taken back", func(t *testing.T) {
		t.Parallel()
		ns, releases := rolling(t, "atMost: 5m", "atMost: 2s")
		quotas := plane.Objects("resourcequotas.v1", ns)
		quotas.Create(t, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ResourceQuota", "metadata": map[string]any{"name": "full"},
			"spec": map[string]any{"hard": map[string]any{"pods": "1"}},
		}})
		quotas.Await(t, "full", "that it counts", func(o *unstructured.Unstructured) bool { return field(o, "status", "hard", "pods") == "1" })
		releases.Patch(t, "shop", `{"spec":{"image":"nginx:2"}}`)
		release := releases.Await(t, "shop", "the way back", func(o *unstructured.Unstructured) bool {
			return inState("RolledBack")(o) && field(o, "status", "canary") == int64(0) && cluster.Condition(o, "Degraded") == "True"
		})
		mustHaveGone(t, release, "Stable", "Canary", "RolledBack")
		if field(release, "status", "stable") != "nginx:1" || cluster.Condition(release, "Ready") != "False" {
			t.Errorf("status is %s", asJSON(t, field(release, "status")))
		}
		plane.Objects(deployments, ns).AwaitGone(t, "shop-canary")
	})
}

// TestCanary holds that another image goes to the canary of the sample canary first, and to the other Pods when it has held.
func TestCanary(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	runSample(t, "canary", []string{ns}, append(machineRules("podsets"), made("", "pods")))
	podsets, pods := plane.Objects("podsets.v1alpha1.samples.handwerk.dev", ns), plane.Objects("pods.v1", ns)
	has := func(updated, ready int64) func(*unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool {
			return field(o, "status", "updated") == updated && field(o, "status", "ready") == ready
		}
	}
	podsets.Create(t, sample("PodSet", "shop", map[string]any{"image": "nginx:1", "replicas": int64(3), "canaries": int64(1), "soak": "1h"}))
	podsets.Await(t, "shop", "all Pods", has(3, 3))
	first := map[string]string{}
	for _, pod := range pods.List(t) {
		first[pod.GetName()] = string(pod.GetUID())
	}

	podsets.Patch(t, "shop", `{"spec":{"image":"nginx:2"}}`)
	podsets.Await(t, "shop", "the canary", has(1, 3))
	for name, uid := range first {
		if now := pods.Get(t, name); (string(now.GetUID()) != uid) != (name == "shop-0") {
			t.Errorf("while the canary holds, Pod %s is %s", name, asJSON(t, now))
		}
	}
	podsets.Patch(t, "shop", `{"spec":{"soak":"1s"}}`)
	podsets.Await(t, "shop", "the new image", has(3, 3))
	podsets.Delete(t, "shop")
	for name := range first {
		pods.AwaitGone(t, name)
	}
}
