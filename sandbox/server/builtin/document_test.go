// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-openapi/pkg/spec3"
)

// document returns an OpenAPI document.
func (s endpoint) document(t *testing.T, path string, into any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://memory"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := s.Admin().RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		t.Fatalf("decoding %s, code %d: %v", path, response.StatusCode, err)
	}
}

// TestKindsAreDescribed holds what kubectl finds in the OpenAPI documents: a kind by its path, the schema of the kind
// with its texts, and that writes are validated by the server.
func TestKindsAreDescribed(t *testing.T) {
	s := newServer(t)
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	s.document(t, "/openapi/v3", &index)
	if got := index.Paths["apis/apps/v1"].ServerRelativeURL; !strings.HasPrefix(got, "/openapi/v3/apis/apps/v1") || index.Paths["api/v1"].ServerRelativeURL == "" {
		t.Fatalf("the document of apps is at %q", got)
	}
	var document spec3.OpenAPI
	s.document(t, "/openapi/v3/apis/apps/v1", &document)
	patch := document.Paths.Paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"].Patch
	var names []string
	for _, p := range patch.Parameters {
		names = append(names, p.Name)
	}
	if got := strings.Join(names, " "); got != "dryRun fieldManager fieldValidation force" {
		t.Errorf("a patch takes %s", got)
	}
	deployment := document.Components.Schemas["io.k8s.api.apps.v1.Deployment"]
	data, err := json.Marshal(deployment.Extensions)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(data); got != `{"x-kubernetes-group-version-kind":[{"group":"apps","kind":"Deployment","version":"v1"}]}` {
		t.Errorf("the schema is of the kind %s", got)
	}
	containers := document.Components.Schemas["io.k8s.api.core.v1.PodSpec"].Properties["containers"]
	if containers.Extensions["x-kubernetes-patch-merge-key"] != "name" || !strings.HasPrefix(containers.Description, "List of containers") {
		t.Errorf("the schema of containers has the extensions %v and the text %q", containers.Extensions, containers.Description)
	}
}

// TestEnumerationsHaveTheirValues holds what kubectl explain shows of a field that has one of some values.
func TestEnumerationsHaveTheirValues(t *testing.T) {
	s := newServer(t)
	var apps, core spec3.OpenAPI
	s.document(t, "/openapi/v3/apis/apps/v1", &apps)
	s.document(t, "/openapi/v3/api/v1", &core)
	strategy := apps.Components.Schemas["io.k8s.api.apps.v1.DeploymentStrategy"].Properties["type"]
	if got := fmt.Sprint(strategy.Enum); got != "[Recreate RollingUpdate]" {
		t.Errorf("the strategy of a Deployment is one of %s", got)
	}
	const text = "Type of deployment. Can be \"Recreate\" or \"RollingUpdate\". Default is RollingUpdate.\n\nPossible enum values:\n - `\"Recreate\"` Kill all"
	if !strings.HasPrefix(strategy.Description, text) {
		t.Errorf("its text is %q", strategy.Description)
	}
	modes := core.Components.Schemas["io.k8s.api.core.v1.PersistentVolumeClaimSpec"].Properties["accessModes"]
	if got := fmt.Sprint(modes.Items.Schema.Enum); got != "[ReadOnlyMany ReadWriteMany ReadWriteOnce ReadWriteOncePod]" {
		t.Errorf("an access mode is one of %s", got)
	}
	policy := core.Components.Schemas["io.k8s.api.core.v1.PodSpec"].Properties["restartPolicy"]
	if got := fmt.Sprint(policy.Enum); got != "[Always Never OnFailure]" {
		t.Errorf("the policy of restarts is one of %s", got)
	}
	if image := core.Components.Schemas["io.k8s.api.core.v1.Container"].Properties["image"]; image.Enum != nil || strings.Contains(image.Description, "enum") {
		t.Errorf("an image is %v", image)
	}
}

// TestListsAreMergedByTheirKeys holds that two appliers share a list: each has its own items, found by their keys.
func TestListsAreMergedByTheirKeys(t *testing.T) {
	s := newServer(t)
	apply := func(manager, text string) *unstructured.Unstructured {
		t.Helper()
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		out, err := s.reach(t, o).Apply(t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: manager})
		if err != nil {
			t.Fatalf("applying as %s: %v", manager, err)
		}
		return out
	}
	apply("one", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"ports":[{"port":80,"protocol":"TCP","name":"web"}]}}`)
	service := apply("two", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"ports":[{"port":80,"protocol":"UDP","name":"other"}]}}`)
	if ports, _, _ := unstructured.NestedSlice(service.Object, "spec", "ports"); len(ports) != 2 {
		t.Errorf("the Service has the ports %v", ports)
	}
	apply("one", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"selector":{"matchLabels":{"k":"v"}},
		"template":{"metadata":{"labels":{"k":"v"}},"spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":80}]}]}}}}`)
	deployment := apply("two", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{
		"template":{"spec":{"containers":[{"name":"c","env":[{"name":"A","value":"b"}]},{"name":"d","image":"j"}]}}}}`)
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	if len(containers) != 2 || containers[0].(map[string]any)["image"] != "i" || containers[0].(map[string]any)["env"] == nil {
		t.Errorf("the Deployment has the containers %v", containers)
	}
}
