// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// TestItIsNoClusterAsItSays makes what a cluster would heed, for each thing that is said to be missing, and then a Pod that a cluster
// would refuse, or at least could not run.
func TestItIsNoClusterAsItSays(t *testing.T) {
	s := newStage(t)
	s.begin()
	client := s.client(s.kubeconfig())
	s.awaits(`^deployments/home +web +created$`)
	for _, missing := range []struct{ what, object string }{
		{"no network carries traffic", `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: never}, webhooks: [{
			name: never.example.com, admissionReviewVersions: [v1], sideEffects: None, failurePolicy: Ignore, clientConfig: {service: {namespace: default, name: never}},
			rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}]}`},
		{"autoscalers", `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: never, namespace: default}, spec: {
			minReplicas: 5, maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: home}}}`},
		{"no containers run", `{apiVersion: v1, kind: Pod, metadata: {name: nowhere, namespace: default}, spec: {containers: [{name: a, image: "nowhere.invalid/nothing:none"}]}}`},
	} {
		if !strings.Contains(NotACluster, missing.what) {
			t.Errorf("it does not say that it is without %s", missing.what)
		}
		s.makes(client, tree(t, missing.object))
	}
	s.awaits(`^pods/nowhere +workloads +Running, ready$`)
	s.end()
	if text := s.out.String(); strings.Contains(text, "refused") || strings.Contains(text, "horizontalpodautoscalers/never  stages") {
		t.Errorf("it has more than it says:\n%s", text)
	}
}

// makes creates an object.
func (s *stage) makes(client dynamic.Interface, object map[string]any) {
	s.t.Helper()
	o := &unstructured.Unstructured{Object: object}
	plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	if _, err := client.Resource(plural).Namespace(o.GetNamespace()).Create(s.t.Context(), o, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}
