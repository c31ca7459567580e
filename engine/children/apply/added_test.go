// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
)

// objectOf reads an object of a kind, as in "apps/v1/Deployment", from the JSON of what it has besides.
func objectOf(t *testing.T, version, kind, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	u.SetName("c")
	return u
}

const (
	podTemplate = `{"spec":{"template":{"metadata":{"labels":{"app":"w"}},"spec":{"containers":[{"name":"web","image":"i","ports":[{"containerPort":80}]}]}}}}`
	podLive     = `{"spec":{"replicas":1,"template":{"metadata":{"labels":{"app":"w"}},"spec":{"hostNetwork":true,
		"containers":[{"name":"web","image":"i","ports":[{"containerPort":80,"protocol":"TCP"}]},{"name":"more","image":"m"}]}}}}`
)

// TestAdded holds what is taken away of what hands have set, as a server writes it down.
func TestAdded(t *testing.T) {
	type spec struct{ version, kind, template, live string }
	deployment := spec{"apps/v1", "Deployment", podTemplate, podLive}
	data := spec{"v1", "ConfigMap", `{"data":{"a":"x"}}`, `{"data":{"a":"x","b":"y"}}`}
	bare := spec{"v1", "ConfigMap", `{}`, `{"data":{"b":"y"},"metadata":{"annotations":{"n":"x"}}}`}
	service := spec{"v1", "Service", `{"spec":{"selector":{"app":"w"},"ports":[{"port":80}]}}`,
		`{"spec":{"selector":{"app":"w","more":"x"},"ports":[{"port":80,"protocol":"TCP"},{"port":80,"protocol":"UDP"}]}}`}
	custom := spec{"example.com/v1", "Foo", `{"spec":{"options":{"a":"x"},"items":[{"name":"a"}],"args":["a"]}}`,
		`{"spec":{"options":{"a":"x","b":"y"},"items":[{"name":"a"},{"name":"b"}],"args":["a","b"]}}`}
	pod := func(fields string) string { return `{"f:spec":{"f:template":{"f:spec":` + fields + `}}}` }
	tests := map[string]struct {
		of              spec
		drift           dsl.DriftPolicy
		manager, fields string
		want            []string
	}{
		"a key of a map of free keys":                    {data, "", "kubectl-edit", `{"f:data":{"f:b":{}}}`, []string{"data.b"}},
		"a key that the template has is none":            {data, "", "kubectl-edit", `{"f:data":{"f:a":{}}}`, nil},
		"a map that the template does not have":          {bare, "", "kubectl-edit", `{"f:data":{".":{},"f:b":{}}}`, nil},
		"and where drift is strict":                      {bare, dsl.DriftStrict, "kubectl-edit", `{"f:data":{".":{},"f:b":{}}}`, []string{"data"}},
		"nothing where drift is ignored":                 {data, dsl.DriftIgnore, "kubectl-edit", `{"f:data":{"f:b":{}}}`, nil},
		"what another manager set":                       {data, "", "injector", `{"f:data":{"f:b":{}}}`, nil},
		"what another manager set where drift is strict": {data, dsl.DriftStrict, "injector", `{"f:data":{"f:b":{}}}`, []string{"data.b"}},
		"and where that manager is allowed":              {data, dsl.DriftStrict, "allowed", `{"f:data":{"f:b":{}}}`, nil},
		"what the operator set itself":                   {data, dsl.DriftStrict, "op", `{"f:data":{"f:b":{}}}`, nil},
		"what Kubernetes set itself":                     {data, dsl.DriftStrict, "kube-controller-manager", `{"f:data":{"f:b":{}}}`, nil},
		"what was there before it was adopted":           {data, "", "handwerk-adopted", `{"f:data":{"f:b":{}}}`, nil},
		"and where drift is strict, before":              {data, dsl.DriftStrict, "handwerk-adopted", `{"f:data":{"f:b":{}}}`, []string{"data.b"}},
		"a label that the command label set":             {data, "", "kubectl-label", `{"f:metadata":{"f:labels":{"f:b":{}}}}`, nil},
		"annotations, for a template without any":        {bare, "", "kubectl-edit", `{"f:metadata":{"f:annotations":{"f:n":{}}}}`, nil},
		"an annotation where drift is strict":            {bare, dsl.DriftStrict, "kubectl-annotate", `{"f:metadata":{"f:annotations":{"f:n":{}}}}`, []string{"metadata.annotations.n"}},
		"the book of kubectl":                            {bare, dsl.DriftStrict, "kubectl-client-side-apply", `{"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}`, nil},
		"what ties it to its owner, and finalizers":      {bare, dsl.DriftStrict, "kubectl-edit", `{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"u\"}":{}},"f:finalizers":{"v:\"x\"":{}},"f:labels":{"f:op.handwerk.dev/owner":{}}}}`, nil},
		"a status":    {data, dsl.DriftStrict, "kubectl-edit", `{"f:status":{"f:x":{}}}`, nil},
		"a container": {deployment, "", "kubectl-patch", pod(`{"f:containers":{"k:{\"name\":\"more\"}":{".":{},"f:image":{},"f:name":{}}}}`), []string{"spec.template.spec.containers[name=more]"}},
		"a field of a container that somebody else added":     {deployment, dsl.DriftStrict, "kubectl-patch", pod(`{"f:containers":{"k:{\"name\":\"more\"}":{"f:image":{}}}}`), nil},
		"a field of a container of the template":              {deployment, "", "kubectl-patch", pod(`{"f:containers":{"k:{\"name\":\"web\"}":{"f:tty":{}}}}`), nil},
		"and where it is strict":                              {deployment, dsl.DriftStrict, "kubectl-patch", pod(`{"f:containers":{"k:{\"name\":\"web\"}":{"f:tty":{}}}}`), []string{"spec.template.spec.containers[name=web].tty"}},
		"the port of the template, whose protocol is left":    {deployment, "", "kubectl-patch", pod(`{"f:containers":{"k:{\"name\":\"web\"}":{"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}}}`), nil},
		"its port for another protocol":                       {deployment, "", "kubectl-patch", pod(`{"f:containers":{"k:{\"name\":\"web\"}":{"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"UDP\"}":{".":{},"f:containerPort":{}}}}}}`), []string{"spec.template.spec.containers[name=web].ports[containerPort=80]"}},
		"a field that the template does not have":             {deployment, "", "kubectl-edit", pod(`{"f:hostNetwork":{}}`), nil},
		"and where it is strict, a field":                     {deployment, dsl.DriftStrict, "kubectl-edit", pod(`{"f:hostNetwork":{}}`), []string{"spec.template.spec.hostNetwork"}},
		"a list that somebody has but made":                   {deployment, "", "kubectl-edit", pod(`{"f:containers":{}}`), nil},
		"a label of the pods":                                 {deployment, "", "kubectl-edit", `{"f:spec":{"f:template":{"f:metadata":{"f:labels":{"f:b":{}}}}}}`, []string{"spec.template.metadata.labels.b"}},
		"a key in what is replaced as a whole":                {service, "", "kubectl-patch", `{"f:spec":{"f:selector":{}}}`, []string{"spec.selector"}},
		"a port of a Service":                                 {service, "", "kubectl-patch", `{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"UDP\"}":{".":{},"f:port":{}}}}}`, []string{"spec.ports[port=80]"}},
		"an entry of a list of a CRD's kind":                  {custom, "", "kubectl-edit", `{"f:spec":{"f:items":{"k:{\"name\":\"b\"}":{".":{},"f:name":{}}}}}`, []string{"spec.items[name=b]"}},
		"a value of one":                                      {custom, "", "kubectl-edit", `{"f:spec":{"f:args":{"v:\"b\"":{}}}}`, []string{"spec.args[b]"}},
		"a list of one that is replaced as a whole":           {custom, "", "kubectl-edit", `{"f:spec":{"f:items":{}}}`, []string{"spec.items"}},
		"a key of a map of one, which may have fields":        {custom, "", "kubectl-edit", `{"f:spec":{"f:options":{"f:b":{}}}}`, nil},
		"an entry of another version, which may be otherwise": {data, "", "kubectl-edit v2", `{"f:data":{"f:b":{}}}`, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := Applier{Manager: "op", Drift: tt.drift, Allow: []string{"allowed"}, Owner: ownership.Owner{Keys: ownership.KeysOf(&dsl.Operator{Name: "op"})}}
			live := objectOf(t, tt.of.version, tt.of.kind, tt.of.live)
			entry := metav1.ManagedFieldsEntry{Manager: tt.manager, Operation: "Update", APIVersion: tt.of.version, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(tt.fields)}
			if tt.manager == "kubectl-edit v2" {
				entry.Manager, entry.APIVersion = "kubectl-edit", "v2"
			}
			live.SetManagedFields([]metav1.ManagedFieldsEntry{entry})
			found := a.added(objectOf(t, tt.of.version, tt.of.kind, tt.of.template), live, tt.drift == dsl.DriftStrict)
			if diff := cmp.Diff(tt.want, append(found.Paths, found.Whole...)); diff != "" {
				t.Errorf("added (-want +got):\n%s", diff)
			}
		})
	}
}
