// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// fixed are kinds with a field that the API server does not let anybody change. The value is what
// of the work's comes to be in it.
func fixed() map[string]fixedKind {
	return map[string]fixedKind{
		"the selector of a Deployment": {"deployments.v1.apps", `
apiVersion: apps/v1
kind: Deployment
metadata: {name: "${self.metadata.name}-fixed"}
spec: {replicas: 0, selector: {matchLabels: {app: "${self.spec.value}"}}, template: {metadata: {labels: {app: "${self.spec.value}"}}, spec: {containers: [{name: c, image: i}]}}}
`, "spec.selector is immutable"},
		"the template of a Job": {"jobs.v1.batch", `
apiVersion: batch/v1
kind: Job
metadata: {name: "${self.metadata.name}-fixed"}
spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: c, image: "i:${self.spec.value}"}]}}}
`, "spec.template"},
		"the name of a StatefulSet's Service": {"statefulsets.v1.apps", `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: "${self.metadata.name}-fixed"}
spec: {replicas: 0, serviceName: "${self.spec.value}", selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: i}]}}}
`, "spec.serviceName is immutable"},
		"the image of a Pod's container may change, its name not": {"pods.v1", `
apiVersion: v1
kind: Pod
metadata: {name: "${self.metadata.name}-fixed"}
spec: {terminationGracePeriodSeconds: 0, containers: [{name: "${self.spec.value}", image: i}]}
`, "spec"},
		"the address of a Service": {"services.v1", `
apiVersion: v1
kind: Service
metadata: {name: "${self.metadata.name}-fixed"}
spec: {clusterIP: "${self.spec.value == 'a' ? '' : 'None'}", ports: [{port: 80}]}
`, "spec.clusterIP"},
		"the access modes of a PersistentVolumeClaim": {"persistentvolumeclaims.v1", `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: "${self.metadata.name}-fixed"}
spec: {accessModes: ["${self.spec.value == 'a' ? 'ReadWriteOnce' : 'ReadWriteMany'}"], resources: {requests: {storage: 1Gi}}}
`, "spec is immutable"},
		"the role of a RoleBinding": {"rolebindings.v1.rbac.authorization.k8s.io", `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: "${self.metadata.name}-fixed"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: "${self.spec.value}"}
`, "roleRef"},
		"the type of a Secret": {"secrets.v1", `
apiVersion: v1
kind: Secret
metadata: {name: "${self.metadata.name}-fixed"}
type: example.com/${self.spec.value}
`, "type is immutable"},
		"the data of a ConfigMap that says so": {"configmaps.v1", `
apiVersion: v1
kind: ConfigMap
metadata: {name: "${self.metadata.name}-fixed"}
immutable: true
data: {value: "${self.spec.value}"}
`, "data"},
	}
}

type fixedKind struct{ resource, child, words string }

// TestApplyMeetsWhatCannotBeChanged: it is said that the child has to be deleted, unless it holds data, and when it is, it
// is recreated.
func TestApplyMeetsWhatCannotBeChanged(t *testing.T) {
	t.Parallel()
	for name, kind := range fixed() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := plane.Objects(kind.resource, "")
			rules := []rbacv1.PolicyRule{made("", "configmaps")}
			if objects.Name.Resource != "configmaps" {
				rules = append(rules, made(objects.Name.Group, objects.Name.Resource))
			}
			if objects.Name.Resource == "rolebindings" {
				rules = append(rules, cluster.Rule(objects.Name.Group, "roles", "bind"))
			}
			s := newApplyStage(t, nil, rules...)
			objects = plane.Objects(kind.resource, s.ns)
			s.run(t, beside+"fixed:"+indented(kind.child, 2))
			s.works.Create(t, work("w", "a"))
			s.applied(t, "w")
			before := objects.Await(t, "w-fixed", "its controller, whose word would hurry the next attempt", func(o *unstructured.Unstructured) bool {
				switch o.GetKind() {
				case "Deployment", "StatefulSet":
					return field(o, "status", "observedGeneration") == int64(1)
				case "Job":
					return cluster.Condition(o, "Suspended") == "True"
				case "Pod":
					return cluster.Condition(o, "Ready") == "True"
				}
				return true
			})
			s.works.Patch(t, "w", `{"spec":{"value":"b"}}`)
			advice := "delete it"
			if before.GetKind() == "PersistentVolumeClaim" || before.GetKind() == "Secret" {
				advice = "take the change back"
			}
			words := []string{fmt.Sprintf("%s %s/w-fixed", before.GetKind(), s.ns), kind.words, advice}
			s.endsWell(t, "w", trouble{"Immutable", words, func(t *testing.T) { objects.Delete(t, "w-fixed") }})
			objects.Await(t, "w-fixed", "being recreated", func(o *unstructured.Unstructured) bool { return o.GetUID() != before.GetUID() })
		})
	}
}
