// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
)

// drifting are children of kinds whose generation does not show a change, and one that a label
// ties to its owner.
const drifting = `
map: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}-map", labels: {a: b}}, data: {value: x}}
secret: {apiVersion: v1, kind: Secret, metadata: {name: "${self.metadata.name}-secret"}, stringData: {value: x}}
service: {apiVersion: v1, kind: Service, metadata: {name: "${self.metadata.name}-service"}, spec: {selector: {app: w}, ports: [{name: http, port: 80, targetPort: http}]}}
autoscaler:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: "${self.metadata.name}-autoscaler"}
  spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: w}, minReplicas: 1, maxReplicas: 3}
claim:
  apiVersion: v1
  kind: PersistentVolumeClaim
  metadata: {name: "${self.metadata.name}-claim", labels: {a: b}}
  spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
account: {apiVersion: v1, kind: ServiceAccount, metadata: {name: "${self.metadata.name}-account", annotations: {a: b}}}
tied:
  ownership: labelled
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}-tied"}, data: {value: x}}
loose:
  ownership: none
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}-loose"}, data: {value: x}}
kept:
  onDelete: retain
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}-kept"}, data: {value: x}}
`

// TestApplyPutsBack: what somebody changes of a child, or of what ties it to its owner, is put back
// by one request.
func TestApplyPutsBack(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ resource, child, edit string }{
		"the data of a ConfigMap":                   {configMaps, "map", `{"data":{"value":"y"}}`},
		"a key of a ConfigMap that was taken away":  {configMaps, "map", `{"data":null}`},
		"a label of a ConfigMap":                    {configMaps, "map", `{"metadata":{"labels":{"a":"c"}}}`},
		"the data of a Secret":                      {"secrets.v1", "secret", `{"data":{"value":"eQ=="}}`},
		"the selector of a Service":                 {"services.v1", "service", `{"spec":{"selector":{"app":"x"}}}`},
		"a port of a Service":                       {"services.v1", "service", `{"spec":{"ports":[{"name":"http","port":80,"targetPort":8080}]}}`},
		"the most replicas of an autoscaler":        {"horizontalpodautoscalers.v2.autoscaling", "autoscaler", `{"spec":{"maxReplicas":9}}`},
		"a label of a PersistentVolumeClaim":        {"persistentvolumeclaims.v1", "claim", `{"metadata":{"labels":{"a":null}}}`},
		"an annotation of a ServiceAccount":         {"serviceaccounts.v1", "account", `{"metadata":{"annotations":{"a":"c"}}}`},
		"the owner reference":                       {configMaps, "map", `{"metadata":{"ownerReferences":null}}`},
		"the owner reference of a Secret":           {"secrets.v1", "secret", `{"metadata":{"ownerReferences":null}}`},
		"the owner reference that does not control": {configMaps, "map", `{"metadata":{"ownerReferences":[{"apiVersion":"e2e.example.com/v1","kind":"Work","name":"NAME","uid":"UID"}]}}`},
		"the annotation of what it was made from":   {configMaps, "map", `{"metadata":{"annotations":{"apply.handwerk.dev/applied":null}}}`},
		"the annotation with the child's name":      {configMaps, "map", `{"metadata":{"annotations":{"apply.handwerk.dev/child":null}}}`},
		"all annotations":                           {"secrets.v1", "secret", `{"metadata":{"annotations":null}}`},
		"the label that ties it":                    {configMaps, "tied", `{"metadata":{"labels":null}}`},
		"the annotation of whose it is":             {configMaps, "tied", `{"metadata":{"annotations":{"apply.handwerk.dev/owner":null}}}`},
		"the annotations of one that a label ties":  {configMaps, "tied", `{"metadata":{"annotations":null}}`},
		"the label of one that is retained":         {configMaps, "kept", `{"metadata":{"labels":null}}`},
	}
	s := newApplyStage(t, nil, made("", "configmaps,secrets,services,persistentvolumeclaims,serviceaccounts"), made("autoscaling", "horizontalpodautoscalers"))
	s.run(t, beside+drifting)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := "w-" + rand.String(8)
			owner := s.works.Create(t, work(w, "a"))
			s.applied(t, w)
			child := w + "-" + test.child
			objects, mark := plane.Objects(test.resource, s.ns), plane.Mark(t)
			before := objects.Get(t, child)
			drifted := objects.Patch(t, child, strings.NewReplacer("UID", string(owner.GetUID()), "NAME", w).Replace(test.edit))
			if drifted.GetResourceVersion() == before.GetResourceVersion() {
				t.Fatal("the edit changed nothing")
			}
			objects.Await(t, child, "what it was", func(o *unstructured.Unstructured) bool { return cmp.Equal(wantedOf(o), wantedOf(before)) })
			s.quiesce(t, w)
			if got := plane.Writes(t, s.user.Name, mark).Of(objects.Name.Resource, child); len(got) != 1 {
				t.Errorf("%d writes:\n%s", len(got), got)
			}
			s.applied(t, w)
		})
	}
}

// wantedOf is what of an object does not change by itself.
func wantedOf(o *unstructured.Unstructured) map[string]any {
	out := o.DeepCopy().Object
	delete(out, "status")
	for _, key := range []string{"resourceVersion", "managedFields", "generation"} {
		unstructured.RemoveNestedField(out, "metadata", key)
	}
	return out
}
