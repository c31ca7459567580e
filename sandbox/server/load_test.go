// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/handwerk-dev/handwerk/sandbox/server/complete"
)

const shapedCRD = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.a.example.com"},
	"spec":{"group":"a.example.com","scope":"Namespaced","names":{"plural":"things","kind":"Thing"},"versions":[{"name":"v1","served":true,"storage":true,
	"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`

// object reads an object from YAML.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// load loads objects, all of which have to be stored.
func (w wire) load(objects ...string) {
	w.t.Helper()
	var all []*unstructured.Unstructured
	for _, text := range objects {
		all = append(all, object(w.t.(*testing.T), text))
	}
	if err := errors.Join(w.server.LoadAll(all)...); err != nil {
		w.t.Fatal(err)
	}
}

// versionless returns a response without the versions of its objects.
func versionless(a answer) map[string]any {
	if metadata, is := a.json["metadata"].(map[string]any); is {
		delete(metadata, "resourceVersion")
	}
	return a.json
}

// TestObjectsOfAnotherServerStayAsTheyAre loads what a server has into another one, dependents before their owners.
func TestObjectsOfAnotherServerStayAsTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := newWire(t, complete.Settings())
		crdPath, things := "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/a.example.com/v1/namespaces/shop/things"
		before.send(http.MethodPost, crdPath, shapedCRD)
		before.send(http.MethodPost, "/api/v1/namespaces", `{"metadata":{"name":"shop","labels":{"a":"b"}}}`)
		owner := before.send(http.MethodPost, things, `{"apiVersion":"a.example.com/v1","kind":"Thing","metadata":{"name":"one","finalizers":["a/b"]},"spec":{"n":3},"status":{"m":4}}`)
		reference := `[{"apiVersion":"a.example.com/v1","kind":"Thing","name":"one","uid":"` + owner.meta("uid") + `"}]`
		before.send(http.MethodPost, "/api/v1/namespaces/shop/configmaps", `{"metadata":{"name":"child","ownerReferences":`+reference+`},"data":{"a":"b"}}`)
		before.send(http.MethodDelete, things+"/one", "")
		paths := []string{"/api/v1/namespaces/shop/configmaps/child", things + "/one", crdPath + "/things.a.example.com", "/api/v1/namespaces/shop"}
		var dump []*unstructured.Unstructured
		want := map[string]any{}
		for _, path := range paths {
			found := before.send(http.MethodGet, path, "")
			dump = append(dump, object(t, found.text))
			want[path] = versionless(found)
		}

		after := newWire(t, complete.Settings())
		if err := errors.Join(after.server.LoadAll(dump)...); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // the garbage collector looks at them
		for _, path := range paths {
			if diff := cmp.Diff(want[path], any(versionless(after.send(http.MethodGet, path, "")))); diff != "" {
				t.Errorf("%s (-before +after):\n%s", path, diff)
			}
		}
		if account := after.send(http.MethodGet, "/api/v1/namespaces/shop/serviceaccounts/default", ""); account.code != http.StatusOK {
			t.Errorf("the namespace has no ServiceAccount: %s", account.text)
		}
		if next := after.put("shop", "next"); next.meta("uid") <= owner.meta("uid") {
			t.Errorf("a new object has the uid %s, which the other server may have given", next.meta("uid"))
		}
		after.send(http.MethodPatch, things+"/one", `{"metadata":{"finalizers":null}}`, "Content-Type", "application/merge-patch+json")
		time.Sleep(time.Second)
		if child := after.send(http.MethodGet, paths[0], ""); child.code != http.StatusNotFound {
			t.Errorf("the dependent stays after its owner: %s", child.text)
		}
	})
}

func TestLoadedObjectsKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, complete.Settings())
		config := `{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: a, uid: %[1]s, resourceVersion: "%d"}}`
		w.load(fmt.Sprintf(config, "newer", 1000), fmt.Sprintf(config, "newest", 20000), fmt.Sprintf(config, "old", 9))
		at := func(name string) string {
			return w.send(http.MethodGet, "/api/v1/namespaces/a/configmaps/"+name, "").meta("resourceVersion")
		}
		if old, newer, newest := at("old"), at("newer"), at("newest"); old >= newer || newer >= newest {
			t.Errorf("the versions are %s, %s and %s", old, newer, newest)
		}
	})
}

func TestAnObjectStaysWhenItsOwnerWasNotLoaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, complete.Settings())
		const config = `{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, %s ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: gone, uid: gone}]}}`
		w.load(fmt.Sprintf(config, "dumped", "uid: abc,"), fmt.Sprintf(config, "created", ""))
		time.Sleep(time.Minute)
		for name, want := range map[string]int{"dumped": http.StatusOK, "created": http.StatusNotFound} {
			if got := w.send(http.MethodGet, "/api/v1/namespaces/default/configmaps/"+name, ""); got.code != want {
				t.Errorf("%s: %d, want %d", name, got.code, want)
			}
		}
	})
}

// TestAnObjectWithoutUIDIsCreated holds that an object that comes from no server gets what a server gives it.
func TestAnObjectWithoutUIDIsCreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, complete.Settings())
		const web = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, creationTimestamp: "2000-01-01T00:00:00Z", resourceVersion: "7"},
			spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: %s}]}}}, status: {readyReplicas: 1, replicas: 1}}`
		w.load(fmt.Sprintf(web, "one"))
		w.load(fmt.Sprintf(web, "two"))
		got := object(t, w.send(http.MethodGet, "/apis/apps/v1/namespaces/shop/deployments/web", "").text)
		image, _, _ := unstructured.NestedSlice(got.Object, "spec", "template", "spec", "containers")
		replicas, _, _ := unstructured.NestedInt64(got.Object, "spec", "replicas")
		ready, _, _ := unstructured.NestedInt64(got.Object, "status", "readyReplicas")
		say := fmt.Sprint(image[0].(map[string]any)["image"], replicas, ready, got.GetCreationTimestamp().Year(), got.GetGeneration(), got.GetUID() != "", len(got.GetManagedFields()))
		if want := "two1 1 2000 2 true 2"; say != want {
			t.Errorf("it has %s, want %s", say, want)
		}
	})
}

func TestAccountsAndClassesAreLoadedBeforeTheirPods(t *testing.T) {
	w := newWire(t, complete.Settings())
	w.load(
		`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {serviceAccountName: b, priorityClassName: c, runtimeClassName: d, containers: [{name: a, image: a}]}}`,
		`{apiVersion: v1, kind: ServiceAccount, metadata: {name: b}}`,
		`{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: c}, value: 1}`,
		`{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: d}, handler: e}`,
	)
}

func TestObjectsThatCannotBeLoadedAreErrors(t *testing.T) {
	w := newWire(t, complete.Settings())
	w.load(shapedCRD)
	tests := map[string]struct{ object, want string }{
		"a kind without CRD":         {`{apiVersion: b.example.com/v1, kind: Widget, metadata: {name: a}}`, "the CRD of its kind is missing, which is usually named widgets.b.example.com: --crds or --load brings it"},
		"a kind of Kubernetes":       {`{apiVersion: apps/v1, kind: Widget, metadata: {name: a}}`, "the sandbox has no kind Widget in apps/v1"},
		"another version":            {`{apiVersion: a.example.com/v2, kind: Thing, metadata: {name: a}}`, "its kind is served in v1, not in v2"},
		"an object without a name":   {`{apiVersion: v1, kind: Pod, metadata: {generateName: a}}`, "metadata.name is required"},
		"a namespace that is wrong":  {`{apiVersion: v1, kind: Node, metadata: {name: a, namespace: b}}`, "metadata.namespace is b, and objects of its kind have no namespace"},
		"an unknown field":           {`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, date: {}}`, `strict decoding error: unknown field "date"`},
		"an invalid value":           {`{apiVersion: v1, kind: ConfigMap, metadata: {name: A}}`, `metadata.name: Invalid value: "A"`},
		"a wrong type of an old one": {`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: b}, data: 3}`, "cannot unmarshal number"},
		"a CRD of a built-in kind":   {`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: deployments.apps, uid: a}, spec: {group: apps, names: {plural: deployments, kind: Deployment}, versions: [{name: v1, served: true, storage: true}]}}`, "deployments.apps is a resource of the sandbox's own"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			fine := object(t, `{apiVersion: v1, kind: Secret, metadata: {name: fine}}`)
			errs := w.server.LoadAll([]*unstructured.Unstructured{object(t, test.object), fine})
			if errs[0] == nil || !strings.Contains(errs[0].Error(), test.want) || errs[1] != nil {
				t.Errorf("the errors are %v, want %s", errs, test.want)
			}
		})
	}
}
