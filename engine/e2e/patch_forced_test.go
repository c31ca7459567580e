// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// forcing is an operator that takes fields by force while the value of its work is "on".
const forcing = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: forcing}
resources:
  - resource: WORKS
    handlers:
      - id: text
        includeWhen: self.spec.value == "on"
        patch: {force: true, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {v: forced}}}
      - id: image
        includeWhen: self.spec.value == "on"
        patch:
          force: true
          template:
            apiVersion: apps/v1
            kind: Deployment
            metadata: {name: web}
            spec: {replicas: 0, template: {spec: {containers: [{name: web, image: forced}]}}}
      - id: selector
        includeWhen: self.spec.value == "on"
        patch: {force: true, template: {apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: forced}}}}
      - id: cpu
        includeWhen: self.spec.value == "on"
        patch: {force: true, template: {apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: {maxReplicas: 9, targetCPUUtilizationPercentage: 50}}}
`

// forcedObjects are patched by forcing. A Service's selector is one field as a whole, and the HorizontalPodAutoscaler is made in
// another version than the one that patches it.
const forcedObjects = `
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {v: before}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {replicas: 2, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: before}]}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web, tier: front}, ports: [{port: 80}]}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  maxReplicas: 3
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: nothing}
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]
`

// TestForcedValuesComeBackEachTime holds on a real API server that values which a handler has taken by force come back each time, also
// when nobody owns them any more.
func TestForcedValuesComeBackEachTime(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	mine := plane.Objects(works, ns)
	plane.Apply(t, ns, forcedObjects)
	user := plane.User("forcing")
	user.AllowIn(t, ns, cluster.Rule("e2e.example.com", "works", "get", "list", "watch", "patch"), cluster.Rule("e2e.example.com", "works/status", "patch"), eventRule(),
		cluster.Rule("", "configmaps", "get", "patch"), cluster.Rule("", "services", "get", "patch"), cluster.Rule("apps", "deployments", "get", "patch"),
		cluster.Rule("autoscaling", "horizontalpodautoscalers", "get", "patch"))
	cluster.Run(t, parsed(t, strings.ReplaceAll(forcing, "WORKS", works), ns), engine.Settings{Config: user.Config()})

	values := map[string]func(o *unstructured.Unstructured) any{
		"configmaps.v1": func(o *unstructured.Unstructured) any { return field(o, "data", "v") },
		"deployments.v1.apps": func(o *unstructured.Unstructured) any {
			containers, _ := field(o, "spec", "template", "spec", "containers").([]any)
			return []any{field(o, "spec", "replicas"), containers[0].(map[string]any)["image"]}
		},
		"services.v1": func(o *unstructured.Unstructured) any { return field(o, "spec", "selector") },
		"horizontalpodautoscalers.v1.autoscaling": func(o *unstructured.Unstructured) any {
			return []any{field(o, "spec", "maxReplicas"), field(o, "spec", "targetCPUUtilizationPercentage")}
		},
	}
	before := map[string]any{}
	for resource, value := range values {
		before[resource] = value(plane.Objects(resource, ns).Get(t, "web"))
	}
	are := func(forced bool) {
		t.Helper()
		for resource, value := range values {
			plane.Objects(resource, ns).Await(t, "web", "the values", func(o *unstructured.Unstructured) bool {
				noted := strings.Contains(asJSON(t, o.GetAnnotations()), "forcing.handwerk.dev/replaced-")
				return noted == forced && cmp.Equal(before[resource], value(o)) != forced
			})
		}
	}
	mine.Create(t, work("w", "on"))
	are(true)
	for range 2 {
		mine.Patch(t, "w", `{"spec":{"value":"off"}}`)
		are(false)
		mine.Patch(t, "w", `{"spec":{"value":"on"}}`)
		are(true)
	}
	mine.Delete(t, "w")
	mine.AwaitGone(t, "w")
	are(false)
}
