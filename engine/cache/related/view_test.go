// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package related

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
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

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// stage has one owner with the relation settings, by which it selects the config maps that its spec names.
type stage struct {
	t       *testing.T
	index   *Index
	feed    *source.Source
	client  dynamic.ResourceInterface
	names   []string // in the owner's spec
	version string
	state   State
	changes *inbox.Related
	looked  int
	puts    int
}

// newStage returns a stage with the config maps a and b. Nothing is listed yet.
func newStage(t *testing.T) *stage {
	t.Helper()
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{configMaps: "ConfigMapList"})
	served, err := clientdiscovery.NewDiscoveryClientForConfig(&rest.Config{Host: "http://server", Transport: configMapsServed{}})
	if err != nil {
		t.Fatal(err)
	}
	reviews := fake.NewClientset()
	reviews.PrependReactor("create", "selfsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: true}}, nil
	})
	s := &stage{t: t, client: client.Resource(configMaps).Namespace(owner.Namespace), names: []string{"a"}, version: "1"}
	set := watch.New(watch.Settings{Dynamic: client, Changed: func(src watch.Source, now watch.State) {
		if s.feed.WatchChanged(src.GVR); now.Synced {
			s.index.Listed(src.GVR)
		}
	}})
	t.Cleanup(set.Close)
	in := source.Cluster{Watches: set, Catalog: discovery.New(served, client, reviews.AuthorizationV1()), Outages: transport.NewOutages(logr.Discard())}
	resource := dsl.New("test").Resource("foos.v1.example.com", func(foo *dsl.Resource) {
		foo.Relates(dsl.Relation{Name: "settings", Resource: dsl.ResourceName{Resource: "configmaps", Version: "v1"}, Select: s.selects})
	})
	s.index = New(Settings{Resource: resource, Own: source.New(in, source.Settings{}), Sources: source.NewFactory(source.FactorySettings{Cluster: in, Scope: dsl.Scope{Namespaces: []string{owner.Namespace}}}), Inbox: s, Log: logr.Discard()})
	for _, f := range s.index.Sources {
		s.feed = f
	}
	s.put("a")
	s.put("b")
	return s
}

// selects selects the config maps of these names.
func (s *stage) selects(subject *dsl.Subject) (dsl.Selection, error) {
	names, _, err := unstructured.NestedStringSlice(subject.Object.Object, "spec", "names")
	if len(names) == 0 {
		return dsl.Selection{}, errors.New("it names nothing")
	}
	return dsl.Selection{Namespace: owner.Namespace, Names: names}, err
}

// OnRelatedEvent implements [Inbox], as the other methods do.
func (s *stage) OnRelatedEvent(_ cache.ObjectName, relation int, ev watch.Event) {
	if s.changes == nil {
		s.changes = &inbox.Related{}
	}
	change := inbox.RelatedChange{Relation: relation, Before: ev.Old, After: ev.Object}
	if ev.Kind == watch.Deleted {
		change.Before, change.After = ev.Object, nil
	}
	s.changes.Changes = append(s.changes.Changes, change)
}

func (s *stage) Enqueue(cache.ObjectName) { s.looked++ }

func (s *stage) Wake(types.UID) {}

func (s *stage) Grant() {}

// run lists and watches the config maps.
func (s *stage) run() {
	go s.feed.Run(s.t.Context())
	synctest.Wait()
}

// put gives a config map a new version. It creates the config map if need be.
func (s *stage) put(name string) {
	s.t.Helper()
	s.puts++
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
		"namespace": owner.Namespace, "name": name, "uid": name, "resourceVersion": strconv.Itoa(100 + s.puts), // the client counts lists from 1
	}}}
	if _, err := s.client.Update(s.t.Context(), o, metav1.UpdateOptions{}); err == nil {
		synctest.Wait()
		return
	}
	if _, err := s.client.Create(s.t.Context(), o, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
}

// want makes a reconcile over the owner, and compares what it finds: whether handlers are to see a change, and the names that they read;
// "error" for an error, after which the owner is looked at again.
func (s *stage) want(changed bool, names ...string) {
	s.t.Helper()
	spec := make([]any, len(s.names))
	for i, name := range s.names {
		spec[i] = name
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": owner.Namespace, "name": owner.Name, "uid": "owner", "resourceVersion": s.version}, "spec": map[string]any{"names": spec},
	}}
	v := s.index.View(Owner{Key: owner, Object: o})
	v.Refresh(s.state, s.changes)
	s.changes = nil
	all, err := v.Get("settings")
	var got []string
	for _, one := range all {
		got = append(got, one.GetName())
	}
	if err != nil {
		got = []string{"error"}
	}
	if diff := cmp.Diff(names, got, cmpopts.EquateEmpty()); diff != "" || v.Changed() != changed {
		s.t.Errorf("changed is %v, want %v, with the error %v; they read (-want +got):\n%s", v.Changed(), changed, err, diff)
	}
	s.state = v.State()
}

// TestWhatPassesSeeOfRelatedObjects plays with the related objects of one owner, between reconciles over it.
func TestWhatPassesSeeOfRelatedObjects(t *testing.T) {
	tests := map[string]func(s *stage){
		"nothing changes": func(s *stage) {
			s.want(false, "a")
			s.want(false, "a")
		},
		"a selected object changes": func(s *stage) {
			s.want(false, "a")
			s.put("a")
			s.want(true, "a")
			s.want(false, "a")
		},
		"another object changes": func(s *stage) {
			s.want(false, "a")
			if s.put("b"); s.changes != nil {
				s.t.Error("the owner is woken")
			}
			s.want(false, "a")
		},
		"the owner selects more": func(s *stage) {
			s.want(false, "a")
			s.names, s.version = []string{"b", "a"}, "2"
			s.want(true, "a", "b")
			s.put("b")
			s.want(true, "a", "b")
		},
		"the owner changes, and selects the same": func(s *stage) {
			s.want(false, "a")
			s.version = "2"
			s.want(false, "a")
		},
		"the owner selects the same object in another way": func(s *stage) {
			s.want(false, "a")
			s.names, s.version = []string{"a", "a", "missing"}, "2"
			s.want(false, "a")
		},
		"a selected object comes": func(s *stage) {
			s.names = []string{"c"}
			s.want(false)
			s.put("c")
			s.want(true, "c")
		},
		"a selected object is deleted": func(s *stage) {
			s.want(false, "a")
			if err := s.client.Delete(s.t.Context(), "a", metav1.DeleteOptions{}); err != nil {
				s.t.Fatal(err)
			}
			synctest.Wait()
			s.want(true)
		},
		"the selection fails": func(s *stage) {
			s.want(false, "a")
			s.names, s.version = nil, "2"
			s.want(true, "error")
			s.names, s.version = []string{"b"}, "3"
			s.want(true, "b")
		},
		"an owner that is forgotten": func(s *stage) {
			s.want(false, "a")
			s.index.Forget(owner)
			if s.put("a"); s.changes != nil {
				s.t.Error("it is woken")
			}
		},
	}
	for name, play := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				s.run()
				play(s)
			})
		})
	}
}

// TestOwnersOfAnIncompleteListingAreLookedAtAgain holds that an owner waits for the listing of its related objects, and is looked at
// when it is complete.
func TestOwnersOfAnIncompleteListingAreLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.want(false, "error")
		if s.run(); s.looked != 1 {
			t.Errorf("it is looked at %d times", s.looked)
		}
		s.want(true, "a")
		if s.index.Listed(configMaps); s.looked != 1 {
			t.Error("it is looked at again after it has read them")
		}
	})
}
