// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAConditionSaysWhatIsNotReady holds that a condition whose status asks ready() has the reason and the message of the object
// that is not, as far as the author gives none.
func TestAConditionSaysWhatIsNotReady(t *testing.T) {
	const object = `
metadata: {name: f, namespace: ns, uid: u-1}
status:
  config: {apiVersion: v1, kind: ConfigMap, metadata: {namespace: ns, name: web}}
  web: {apiVersion: apps/v1, kind: Deployment, metadata: {namespace: ns, name: web}, spec: {replicas: 2}, status: {replicas: 2}}
  pod:
    apiVersion: v1
    kind: Pod
    metadata: {namespace: ns, name: web-0}
    status: {phase: Pending, containerStatuses: [{name: app, state: {waiting: {reason: ImagePullBackOff, message: no such image}}}]}
`
	const rollout = "Deployment ns/web: 0 of 2 updated"
	tests := map[string]struct {
		status, more string
		want         metav1.Condition
	}{
		"one that is not ready speaks": {
			"ready(self.status.web)", "", metav1.Condition{Status: "False", Reason: "LessUpdated", Message: rollout},
		},
		"of several the first that is not ready": {
			"ready(self.status.config) && ready(self.status.pod) && ready(self.status.web)", "",
			metav1.Condition{Status: "False", Reason: "ImagePullBackOff", Message: "Pod ns/web-0: container app: no such image"},
		},
		"of a list, too": {
			"[self.status.config, self.status.web].all(o, ready(o))", "", metav1.Condition{Status: "False", Reason: "LessUpdated", Message: rollout},
		},
		"what is not there is named as it is written": {
			"ready(self.status.?none.orValue({}))", "",
			metav1.Condition{Status: "False", Reason: "NotFound", Message: "self.status.?none.orValue({}) is not there"},
		},
		"the author's reason counts more": {
			"ready(self.status.web)", ", reason: Rollout", metav1.Condition{Status: "False", Reason: "Rollout", Message: rollout},
		},
		"the author's message counts more": {
			"ready(self.status.web)", ", message: Wait.", metav1.Condition{Status: "False", Reason: "LessUpdated", Message: "Wait."},
		},
		"one that is true says nothing of what is not ready": {
			"ready(self.status.web) || ready(self.status.config)", "", metav1.Condition{Status: "True", Reason: "Ready"},
		},
		"one that is false for another reason says nothing of it": {
			"ready(self.status.config) && self.metadata.name == 'g'", "", metav1.Condition{Status: "False", Reason: "NotReady"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := prepared(t, "set:\n  conditions:\n  - {type: Ready, status: \"${"+tt.status+"}\""+tt.more+"}", object)
			if err := a.run(t); err != nil {
				t.Fatal(err)
			}
			tt.want.Type = "Ready"
			if diff := cmp.Diff([]metav1.Condition{tt.want}, a.request.Patch.Conditions); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}
