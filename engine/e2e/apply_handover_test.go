// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// handedOver is a Deployment whose template drops fields when the value of a Work is "b", and a Pod to which admission adds
// tolerations.
const handedOver = `
web:
  apiVersion: apps/v1
  kind: Deployment
  metadata: {name: "${self.metadata.name}-web"}
  spec:
    replicas: "${self.spec.value == 'a' ? optional.of(3) : optional.none()}"
    strategy: {type: "${self.spec.value == 'a' ? 'RollingUpdate' : 'Recreate'}"}
    selector: {matchLabels: &l {app: "${self.metadata.name}"}}
    template:
      metadata: {labels: *l}
      spec:
        serviceAccountName: "${self.spec.value == 'a' ? optional.of('default') : optional.none()}"
        containers: [{name: c, image: i}]
        volumes: [{name: v, secret: "${self.spec.value == 'a' ? optional.none() : optional.of({'secretName': 's'})}"}]
pod:
  apiVersion: v1
  kind: Pod
  metadata: {name: "${self.metadata.name}-pod"}
  spec: {terminationGracePeriodSeconds: 0, tolerations: [{key: dedicated, value: crawl, effect: NoSchedule}], containers: [{name: c, image: i}]}
`

// TestApplyLeavesReplicasAndTakesDefaultsAlong holds on a real API server that replicas stay when a template drops them, that defaults
// go which it excludes, each with two writes, and that a restart writes nothing, also where admission has extended a list.
func TestApplyLeavesReplicasAndTakesDefaultsAlong(t *testing.T) {
	t.Parallel()
	s := newApplyStage(t, nil, made("", "configmaps"), made("", "pods"), made("apps", "deployments"))
	webs, pods := plane.Objects("deployments.v1.apps", s.ns), plane.Objects("pods.v1", s.ns)
	s.run(t, beside+handedOver)
	s.works.Create(t, work("w", "a"))
	s.applied(t, "w")
	webs.Await(t, "w-web", "the defaults", func(o *unstructured.Unstructured) bool {
		return field(o, "spec", "strategy", "rollingUpdate") != nil && strings.Contains(asJSON(t, field(o, "spec", "template")), "emptyDir")
	})
	s.quiesce(t, "w")

	mark := plane.Mark(t)
	s.works.Patch(t, "w", `{"spec":{"value":"b"}}`)
	web := webs.Await(t, "w-web", "the changed template", func(o *unstructured.Unstructured) bool {
		return field(o, "spec", "strategy", "type") == "Recreate"
	})
	s.applied(t, "w")
	s.quiesce(t, "w")
	text := asJSON(t, field(web, "spec", "template"))
	if field(web, "spec", "replicas") != int64(3) || strings.Contains(text, "emptyDir") || strings.Contains(text, "serviceAccount") {
		t.Errorf("it has %v replicas and %s", field(web, "spec", "replicas"), text)
	}
	if writes := plane.Writes(t, s.user.Name, mark).Of("deployments", "w-web").WithoutConflicts(); len(writes) != 2 {
		t.Errorf("it was written to %d times, want twice:\n%s", len(writes), writes)
	}
	for _, e := range web.GetManagedFields() {
		if strings.Contains(asJSON(t, e), "f:replicas") && e.Subresource == "" {
			t.Errorf("%s still owns the replicas", e.Manager)
		}
	}

	s.running.Stop(t)
	mark = plane.Mark(t)
	s.run(t, beside+handedOver)
	s.quiesce(t, "w")
	all := plane.Writes(t, s.user.Name, mark)
	if writes := append(all.Of("pods", ""), all.Of("deployments", "")...); len(writes) > 0 {
		t.Errorf("a restart wrote:\n%s", writes)
	}
	if pod := pods.Get(t, "w-pod"); len(field(pod, "spec", "tolerations").([]any)) != 3 {
		t.Errorf("the Pod's tolerations are %v", field(pod, "spec", "tolerations"))
	}
}
