// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestReadinessSaysWhy holds what people read of an object that is not ready.
func TestReadinessSaysWhy(t *testing.T) {
	deployment := func(status string) string {
		return "{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: default, name: web, generation: 2}, spec: {replicas: 2}, status: " + status + "}"
	}
	pod := func(status string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {namespace: default, name: web-0}, status: " + status + "}"
	}
	tests := map[string]struct {
		object string
		want   dsl.Readiness
	}{
		"a Deployment that is ready": {
			deployment("{observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2, conditions: [{type: Available, status: 'True'}]}"),
			dsl.Readiness{Ready: true},
		},
		"its controller is behind": {
			deployment("{observedGeneration: 1}"),
			dsl.Readiness{Reason: "LatestGenerationNotObserved", Message: "Deployment default/web: its controller has not seen the last change yet"},
		},
		"it has no Pods yet": {
			deployment("{}"),
			dsl.Readiness{Reason: "LessReplicas", Message: "Deployment default/web: 0 of 2 created", Stage: "Deployment default/web: not all of 2 are created"},
		},
		"it is rolled out": {
			deployment("{observedGeneration: 2, replicas: 2, updatedReplicas: 0}"),
			dsl.Readiness{Reason: "LessUpdated", Message: "Deployment default/web: 0 of 2 updated", Stage: "Deployment default/web: not all of 2 are updated"},
		},
		"its old Pods are not gone": {
			deployment("{observedGeneration: 2, replicas: 3, updatedReplicas: 2, availableReplicas: 2, readyReplicas: 2}"),
			dsl.Readiness{Reason: "ExtraPods", Message: "Deployment default/web: Pods that are too many are still there"},
		},
		"its Pods are refused": {
			deployment("{observedGeneration: 2, conditions: [{type: ReplicaFailure, status: 'True', reason: FailedCreate, message: 'pods \"web-\" is forbidden: exceeded quota'}]}"),
			dsl.Readiness{Reason: "FailedCreate", Message: `Deployment default/web: pods "web-" is forbidden: exceeded quota`},
		},
		"it is too late": {
			deployment(`{observedGeneration: 2, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded, message: ReplicaSet "web-1" has timed out progressing.}]}`),
			dsl.Readiness{Failed: true, Reason: "ProgressDeadlineExceeded", Message: `Deployment default/web: ReplicaSet "web-1" has timed out progressing.`},
		},
		"a StatefulSet": {
			"{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: default, name: db}, spec: {replicas: 3}, status: {replicas: 3, readyReplicas: 1}}",
			dsl.Readiness{Reason: "LessReady", Message: "StatefulSet default/db: 1 of 3 ready", Stage: "StatefulSet default/db: not all of 3 are ready"},
		},
		"a Pod without a node": {
			pod("{phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: '0/3 nodes are available: 3 Insufficient cpu.'}]}"),
			dsl.Readiness{Failed: true, Reason: "Unschedulable", Message: "Pod default/web-0: 0/3 nodes are available: 3 Insufficient cpu."},
		},
		"a Pod whose image is not there": {
			pod("{phase: Pending, containerStatuses: [{name: side, state: {waiting: {reason: ContainerCreating}}}, {name: app, state: {waiting: {reason: ImagePullBackOff, message: 'Back-off pulling image \"nope\"'}}}]}"),
			dsl.Readiness{Reason: "ImagePullBackOff", Message: `Pod default/web-0: container app: Back-off pulling image "nope"`},
		},
		"a Pod whose container crashes": {
			pod("{phase: Running, containerStatuses: [{name: app, lastState: {terminated: {exitCode: 3}}, state: {waiting: {reason: CrashLoopBackOff, message: back-off 40s restarting}}}]}"),
			dsl.Readiness{Failed: true, Reason: "CrashLoopBackOff", Message: "Pod default/web-0: container app: it ended with exit code 3, and is restarted"},
		},
		"a Pod that starts": {
			pod("{phase: Pending, containerStatuses: [{name: app, state: {waiting: {reason: ContainerCreating}}}]}"),
			dsl.Readiness{Reason: "PodPending", Message: "Pod default/web-0: Pod is in the Pending phase"},
		},
		"a Job that has failed": {
			"{apiVersion: batch/v1, kind: Job, metadata: {namespace: default, name: move}, status: {conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded, message: Job has reached the specified backoff limit}]}}",
			dsl.Readiness{Failed: true, Reason: "BackoffLimitExceeded", Message: "Job default/move: Job has reached the specified backoff limit"},
		},
		"an object of any kind with a condition Ready": {
			"{apiVersion: a.dev/v1, kind: Cert, metadata: {name: web}, status: {conditions: [{type: Ready, status: 'False', reason: Issuing, message: The order is pending.}]}}",
			dsl.Readiness{Reason: "Issuing", Message: "Cert web: The order is pending."},
		},
		"one whose reason is no reason": {
			"{apiVersion: a.dev/v1, kind: Cert, metadata: {name: web}, status: {conditions: [{type: Ready, status: 'False', reason: not yet, message: Wait.}]}}",
			dsl.Readiness{Reason: "NotReady", Message: "Cert web: Wait."},
		},
		"one that says only a reason": {
			"{apiVersion: a.dev/v1, kind: Cafe, metadata: {name: web}, status: {conditions: [{type: Ready, status: 'False', reason: Closed, message: ''}]}}",
			dsl.Readiness{Reason: "Closed", Message: "Cafe web: its reason is Closed"},
		},
		"one that says nothing": {
			"{apiVersion: a.dev/v1, kind: Cert, metadata: {name: web}, status: {conditions: [{type: Ready, status: 'False'}]}}",
			dsl.Readiness{Reason: "NotReady", Message: "Cert web: it does not say why"},
		},
		"one that is being deleted": {
			"{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: web, deletionTimestamp: '2030-01-01T00:00:00Z'}}",
			dsl.Readiness{Reason: "Terminating", Message: "ConfigMap default/web: it is being deleted"},
		},
		"one that is not there": {"{}", dsl.Readiness{Reason: "NotFound"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := read(t, tt.object)
			if tt.want.Stage == "" {
				tt.want.Stage = tt.want.Message
			}
			got, err := dsl.ReadinessOf(o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("readiness (-want +got):\n%s", diff)
			}
		})
	}
}

// read reads an object.
func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o, tree := &unstructured.Unstructured{}, map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &tree); err != nil {
		t.Fatal(err)
	}
	if len(tree) == 0 {
		return o
	}
	data, err := json.Marshal(tree)
	if err == nil {
		err = o.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}
