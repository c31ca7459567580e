// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/sandbox/server"
)

// Workloads says what becomes of workloads in the twin.
type Workloads string

const (
	// WorkloadsRollout keeps the status of workloads, and makes a changed one ready after its roll-out. No Pods appear for it.
	WorkloadsRollout Workloads = "rollout"
	// WorkloadsAlive lets all workloads live, as in operator sandbox: Pods appear for a Deployment.
	WorkloadsAlive Workloads = "alive"
	// WorkloadsFrozen keeps the status of all workloads.
	WorkloadsFrozen Workloads = "frozen"
)

// rollout makes workloads ready that the operator has changed.
type rollout struct {
	server *server.Server
	admin  *server.Client
	read   func(place) []byte
	wake   chan struct{}

	mu      sync.Mutex
	pending map[place]bool
}

func newRollout(s *server.Server, read func(place) []byte) *rollout {
	return &rollout{server: s, admin: s.Admin(), read: read, wake: make(chan struct{}, 1), pending: map[place]bool{}}
}

// rollsOut reports whether a resource is one of workloads.
func rollsOut(resource schema.GroupResource) bool {
	switch resource.String() {
	case "deployments.apps", "statefulsets.apps", "daemonsets.apps", "replicasets.apps", "jobs.batch", "pods", "persistentvolumeclaims":
		return true
	}
	return false
}

// changed is called when an object was written.
func (r *rollout) changed(at place) {
	if !rollsOut(at.resource) {
		return
	}
	r.mu.Lock()
	r.pending[at] = true
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// takes is how long a roll-out takes: long enough that the operator sees a workload that is not ready.
const takes = time.Second

// run rolls out changed workloads until the context ends.
func (r *rollout) run(ctx context.Context) {
	for {
		select {
		case <-r.wake:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return
		}
		for at := range r.take() {
			r.one(ctx, at)
		}
	}
}

// take returns what is pending, and forgets it.
func (r *rollout) take() map[place]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.pending
	r.pending = map[place]bool{}
	return out
}

// one rolls out a workload.
func (r *rollout) one(ctx context.Context, at place) {
	o := decoded(r.read(at))
	if o == nil {
		return
	}
	if isDeleting(o) {
		r.end(ctx, at, o)
		return
	}
	if status := rolledOut(o, time.Now()); status != nil {
		r.send(ctx, http.MethodPatch, at, "/status", map[string]any{"status": status})
	}
}

// protection is the finalizer of claims that Pods may use.
const protection = "kubernetes.io/pvc-protection"

// end ends an object that is being deleted, as the kubelet ends a Pod, and the controller of claims a claim that no Pod uses.
func (r *rollout) end(ctx context.Context, at place, o *unstructured.Unstructured) {
	switch finalizers := o.GetFinalizers(); {
	case at.resource.Resource == "pods":
		r.send(ctx, http.MethodDelete, at, "", map[string]any{"gracePeriodSeconds": 0})
	case at.resource.Resource == "persistentvolumeclaims" && slices.Contains(finalizers, protection):
		rest := slices.DeleteFunc(finalizers, func(f string) bool { return f == protection })
		r.send(ctx, http.MethodPatch, at, "", map[string]any{"metadata": map[string]any{"finalizers": rest}})
	}
}

// send sends a request with all rights. One that fails leaves the workload as it is.
func (r *rollout) send(ctx context.Context, method string, at place, sub string, body map[string]any) {
	served, found := r.server.Lookup(at.resource.WithVersion(""))
	data, err := json.Marshal(body)
	if !found || err != nil {
		return
	}
	h, err := http.NewRequestWithContext(ctx, method, "http://twin"+pathOf(served.GVR, at)+sub, bytes.NewReader(data))
	if err != nil {
		return
	}
	h.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		h.Header.Set("Content-Type", "application/merge-patch+json")
	}
	if response, err := r.admin.RoundTrip(h); err == nil {
		_ = response.Body.Close()
	}
}

// rolledOut returns the status of a workload after its roll-out; nil if it has been rolled out.
func rolledOut(o *unstructured.Unstructured, now time.Time) map[string]any {
	generation := o.GetGeneration()
	observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	n, found, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
	if !found {
		n = 1
	}
	at := now.UTC().Format(time.RFC3339)
	switch kind := o.GetKind(); {
	case kind == "Pod" && (phase == "" || phase == "Pending") && field(o, "status", "conditions") == nil: // no kubelet has it
		return podRuns(o, at)
	case kind == "PersistentVolumeClaim" && phase != "Bound":
		request, _, _ := unstructured.NestedMap(o.Object, "spec", "resources", "requests")
		return map[string]any{"phase": "Bound", "capacity": request, "accessModes": field(o, "spec", "accessModes")}
	case kind == "Job" && field(o, "status", "conditions") == nil:
		return jobEnds(o, at)
	case observed == generation:
		return nil
	case kind == "Deployment":
		return map[string]any{"observedGeneration": generation, "replicas": n, "updatedReplicas": n, "readyReplicas": n, "availableReplicas": n, "unavailableReplicas": nil,
			"conditions": []any{condition("Available", "MinimumReplicasAvailable", at), condition("Progressing", "NewReplicaSetAvailable", at)}}
	case kind == "StatefulSet":
		return map[string]any{"observedGeneration": generation, "replicas": n, "currentReplicas": n, "updatedReplicas": n, "readyReplicas": n, "availableReplicas": n,
			"currentRevision": o.GetName() + "-planned", "updateRevision": o.GetName() + "-planned"}
	case kind == "ReplicaSet":
		return map[string]any{"observedGeneration": generation, "replicas": n, "readyReplicas": n, "availableReplicas": n, "fullyLabeledReplicas": n}
	case kind == "DaemonSet":
		nodes, _, _ := unstructured.NestedInt64(o.Object, "status", "desiredNumberScheduled")
		nodes = max(nodes, 1)
		return map[string]any{"observedGeneration": generation, "desiredNumberScheduled": nodes, "currentNumberScheduled": nodes,
			"numberReady": nodes, "updatedNumberScheduled": nodes, "numberAvailable": nodes, "numberMisscheduled": int64(0), "numberUnavailable": nil}
	}
	return nil
}

// jobEnds returns the status of a Job that has succeeded; nil if it is suspended.
func jobEnds(o *unstructured.Unstructured, at string) map[string]any {
	if suspended, _, _ := unstructured.NestedBool(o.Object, "spec", "suspend"); suspended {
		return nil
	}
	n, found, _ := unstructured.NestedInt64(o.Object, "spec", "completions")
	if !found {
		n = 1
	}
	return map[string]any{"succeeded": n, "startTime": at, "completionTime": at,
		"conditions": []any{condition("SuccessCriteriaMet", "CompletionsReached", at), condition("Complete", "CompletionsReached", at)}}
}

// podRuns returns the status of a Pod that is ready.
func podRuns(o *unstructured.Unstructured, at string) map[string]any {
	var statuses []any
	containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "containers")
	for _, c := range containers {
		tree, _ := c.(map[string]any)
		statuses = append(statuses, map[string]any{"name": tree["name"], "image": tree["image"], "imageID": tree["image"], "ready": true, "started": true,
			"restartCount": int64(0), "state": map[string]any{"running": map[string]any{"startedAt": at}}})
	}
	return map[string]any{"phase": "Running", "startTime": at, "containerStatuses": statuses, "conditions": []any{
		condition("PodScheduled", "", at), condition("Initialized", "", at), condition("ContainersReady", "", at), condition("Ready", "", at)}}
}

func condition(kind, reason, at string) map[string]any {
	out := map[string]any{"type": kind, "status": "True", "lastTransitionTime": at}
	if reason != "" {
		out["reason"], out["message"] = reason, "as in a plan"
	}
	return out
}

// field returns a field of an object, or nil.
func field(o *unstructured.Unstructured, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
	return value
}
