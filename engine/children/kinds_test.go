// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/children/prune"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
)

// configMapsServed answers discovery with config maps.
type configMapsServed struct{}

func (configMapsServed) RoundTrip(r *http.Request) (*http.Response, error) {
	body := map[string]string{
		"/api":  `{"kind": "APIVersions", "versions": ["v1"]}`,
		"/apis": `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`,
		"/api/v1": `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1",
			"resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": true, "verbs": ["list", "watch"]}]}`,
	}[r.URL.Path]
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r, Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

// configMap is the object that the feed of these tests has.
func configMap() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "far", "name": "child", "uid": "1"},
	}}
}

// handler handles the events of a feed.
type handler func(watch.Event)

func (h handler) OnEvent(ev watch.Event) { h(ev) }

func (handler) Grant() {}

// configMaps returns a feed of these config maps in namespace far that is not running yet, and a client to change them.
func configMaps(t *testing.T, on handler, there ...runtime.Object) (*source.Source, dynamic.ResourceInterface) {
	t.Helper()
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{gvr: "ConfigMapList"}, there...)
	served, err := clientdiscovery.NewDiscoveryClientForConfig(&rest.Config{Host: "http://server", Transport: configMapsServed{}})
	if err != nil {
		t.Fatal(err)
	}
	reviews := fake.NewClientset()
	reviews.PrependReactor("create", "selfsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: true}}, nil
	})
	var f *source.Source
	set := watch.New(watch.Settings{Dynamic: client, Changed: func(src watch.Source, _ watch.State) { f.WatchChanged(src.GVR) }})
	t.Cleanup(set.Close)
	f = source.New(source.Cluster{
		Watches: set, Catalog: discovery.New(served, client, reviews.AuthorizationV1()), Scope: source.NewScope(source.ScopeSettings{Of: dsl.Scope{Namespaces: []string{"far"}}}),
		Outages: transport.NewOutages(logr.Discard()),
	}, source.Settings{Name: dsl.ResourceName{Resource: "configmaps", Version: "v1"}, Handler: on})
	return f, client.Resource(gvr).Namespace("far")
}

// TestAChildIsGoneWhenItsOwnerWasNotified holds that a place is not taken off an owner's inventory between the
// moment when the cache loses the child and the one when that is delivered: the owner is found by its inventory.
func TestAChildIsGoneWhenItsOwnerWasNotified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		f, client := configMaps(t, func(ev watch.Event) {
			if ev.Kind == watch.Deleted {
				<-gate
			}
		}, configMap())
		go f.Run(t.Context())
		synctest.Wait()
		if err := client.Delete(t.Context(), "child", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the cache has lost it, and its owner is being notified
		r, place := &kinds{own: &source.Source{}, feeds: []*source.Source{f}, retired: prune.NewRetired(prune.RetiredSettings{})}, ownership.PlaceOf(configMap())
		if _, known := r.claimed(ownership.Owner{}, place); known {
			t.Error("the child counts as gone before its owner was notified")
		}
		close(gate)
		synctest.Wait()
		if there, known := r.claimed(ownership.Owner{}, place); there || !known {
			t.Error("the child does not count as gone after its owner was notified")
		}
	})
}
