// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/sandbox/server"
)

// grove is an API server with objects that belong to each other.
type grove struct {
	*testing.T
	server *server.Server
	Clients
}

func newGrove(t *testing.T) *grove {
	t.Helper()
	server := server.New(server.Settings{})
	front := httptest.NewServer(server.Client(nil, nil))
	t.Cleanup(front.Close)
	config := &rest.Config{Host: front.URL, QPS: -1}
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	cached := memory.NewMemCacheClient(found)
	g := &grove{T: t, server: server, Clients: Clients{Discovery: cached, Mapper: restmapper.NewDeferredDiscoveryRESTMapper(cached)}}
	if g.Dynamic, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if g.Metadata, err = metadata.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	g.make("v1", "Namespace", "", "shop", nil)
	g.make("v1", "Namespace", "", "other", nil)
	return g
}

// make makes an object, with references to owners.
func (g *grove) make(version, kind, namespace, name string, spec map[string]any, owners ...*unstructured.Unstructured) *unstructured.Unstructured {
	g.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind}}
	if spec != nil {
		o.Object["spec"] = spec
	}
	o.SetNamespace(namespace)
	o.SetName(name)
	var refs []metav1.OwnerReference
	for _, owner := range owners {
		refs = append(refs, metav1.OwnerReference{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID()})
	}
	o.SetOwnerReferences(refs)
	made, err := g.Dynamic.Resource(g.resource(o)).Namespace(namespace).Create(g.Context(), o, metav1.CreateOptions{})
	if err != nil {
		g.Fatal(err)
	}
	return made
}

func (g *grove) resource(o *unstructured.Unstructured) schema.GroupVersionResource {
	g.Helper()
	kind := o.GroupVersionKind()
	mapping, err := g.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		g.Fatal(err)
	}
	return mapping.Resource
}

// inventory has an operator list children on an object.
func (g *grove) inventory(owner *unstructured.Unstructured, operator string, children ...*unstructured.Unstructured) {
	g.Helper()
	titles := map[ownership.Place]string{}
	for _, o := range children {
		titles[ownership.PlaceOf(o)] = "app/x"
	}
	var none *ownership.Inventory
	g.annotate(owner, operator, none.With(time.Unix(1, 0), titles))
}

// annotate writes an operator's inventory onto an object.
func (g *grove) annotate(owner *unstructured.Unstructured, operator string, inventory *ownership.Inventory) {
	g.Helper()
	text, err := inventory.Encode(owner.GetUID())
	if err != nil {
		g.Fatal(err)
	}
	owner = owner.DeepCopy()
	notes := owner.GetAnnotations()
	if notes == nil {
		notes = map[string]string{}
	}
	notes[operator+"/children"] = text
	owner.SetAnnotations(notes)
	if _, err := g.Dynamic.Resource(g.resource(owner)).Namespace(owner.GetNamespace()).Update(g.Context(), owner, metav1.UpdateOptions{}); err != nil {
		g.Fatal(err)
	}
}

// draw is the tree below an object, in lines.
func (g *grove) draw(o *unstructured.Unstructured) (lines, unread []string) {
	g.Helper()
	found, err := Of(g.Context(), g.Clients, g.resource(o), o.GetNamespace(), o.GetName())
	if err != nil {
		g.Fatal(err)
	}
	var walk func(n *Node, indent string)
	walk = func(n *Node, indent string) {
		words := []string{indent + n.Kind, strings.TrimPrefix(n.Namespace+"/"+n.Name, "/")}
		switch {
		case n.Ready == nil:
			words = append(words, "unknown")
		case !*n.Ready:
			words = append(words, n.Reason)
		}
		words = append(words, n.Ties...)
		if n.Again {
			words = append(words, "again")
		}
		lines = append(lines, strings.Join(words, ", "))
		for _, below := range n.Children {
			walk(below, indent+"  ")
		}
	}
	walk(found.Root, "")
	return lines, found.Unread
}

// TestTheTreeOfAnObject holds that children by reference and by inventory are found, of all operators, in all namespaces and at any
// depth, that one which is gone is said to be so, and that a ring ends.
func TestTheTreeOfAnObject(t *testing.T) {
	g := newGrove(t)
	root := g.make("v1", "ConfigMap", "shop", "root", nil)
	web := g.make("apps/v1", "Deployment", "shop", "web", map[string]any{"replicas": int64(2)}, root)
	g.make("apps/v1", "ReplicaSet", "shop", "web-1", map[string]any{"replicas": int64(0)}, web)
	far := g.make("v1", "ConfigMap", "other", "far", nil)
	g.make("v1", "Secret", "other", "below", nil, far)
	gone := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "other", "name": "gone"}}}
	g.inventory(root, "foo.handwerk.dev", web, far, gone)
	g.inventory(far, "bar.example.com", root)
	g.make("v1", "ConfigMap", "shop", "stranger", nil)

	lines, unread := g.draw(root)
	want := []string{
		"ConfigMap, shop/root",
		"  ConfigMap, other/far, inventory of operator foo",
		"    ConfigMap, shop/root, inventory of operator bar, again",
		"    Secret, other/below, reference",
		"  ConfigMap, other/gone, NotFound, inventory of operator foo",
		"  Deployment, shop/web, LessReplicas, inventory of operator foo, reference",
		"    ReplicaSet, shop/web-1, reference",
	}
	if diff := cmp.Diff(want, lines); diff != "" || unread != nil {
		t.Errorf("(-want +got):\n%s\nunread: %s", diff, unread)
	}
}

// TestPatchedObjectsAreInTheTree holds that objects that handlers patch are shown, without their own children, unless they are children.
func TestPatchedObjectsAreInTheTree(t *testing.T) {
	g := newGrove(t)
	root := g.make("v1", "ConfigMap", "shop", "root", nil)
	own := g.make("v1", "ConfigMap", "shop", "own", nil, root)
	other := g.make("v1", "Namespace", "", "theirs", nil)
	g.make("v1", "ConfigMap", "other", "below", nil, other)
	g.make("v1", "ConfigMap", "shop", "below", nil, own)
	gone := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "shop", "name": "gone"}}}
	var r *ownership.Inventory
	for _, o := range []*unstructured.Unstructured{own, other, gone} {
		for _, handler := range []string{"one", "two"} {
			r = r.WithTarget(time.Unix(1, 0), ownership.Target{
				Place: ownership.PlaceOf(o), Handler: handler, Manager: ownership.TargetManager("foo", handler, "", root.GetUID()),
			})
		}
	}
	g.annotate(root, "foo.handwerk.dev", r)
	lines, unread := g.draw(root)
	want := []string{
		"ConfigMap, shop/root",
		"  ConfigMap, shop/own, patched by operator foo, reference",
		"    ConfigMap, shop/below, reference",
		"  Namespace, theirs, patched by operator foo",
		"  Secret, shop/gone, NotFound, patched by operator foo",
	}
	if diff := cmp.Diff(want, lines); diff != "" || unread != nil {
		t.Errorf("(-want +got):\n%s\nunread: %s", diff, unread)
	}
}

// TestATreeSaysWhatItLacks holds that kinds and children that the user may not read are named, and hide nothing else.
func TestATreeSaysWhatItLacks(t *testing.T) {
	g := newGrove(t)
	root := g.make("v1", "ConfigMap", "shop", "root", nil)
	g.make("v1", "Secret", "shop", "hidden", nil, root)
	secret := g.make("v1", "Secret", "shop", "recorded", nil)
	g.make("v1", "Service", "shop", "web", map[string]any{"clusterIP": "None"}, root)
	g.inventory(root, "foo.handwerk.dev", secret)
	g.server.Forbid(server.Rule{Verb: "*", Resource: schema.GroupResource{Resource: "secrets"}})
	lines, unread := g.draw(root)
	if diff := cmp.Diff([]string{"ConfigMap, shop/root", "  Secret, shop/recorded, unknown, inventory of operator foo", "  Service, shop/web, reference"}, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if text := strings.Join(unread, "\n"); len(unread) != 2 || !strings.Contains(text, "Secret shop/recorded: ") || !strings.Contains(text, "secrets: ") {
		t.Errorf("unread: %s", text)
	}
}

// TestARootWithoutANamespace holds that the children of an object without a namespace are found in all of them.
func TestARootWithoutANamespace(t *testing.T) {
	g := newGrove(t)
	root := g.make("v1", "Namespace", "", "tenant", nil)
	web := g.make("v1", "ConfigMap", "shop", "web", nil, root)
	g.make("v1", "ConfigMap", "shop", "below", nil, web)
	lines, _ := g.draw(root)
	if diff := cmp.Diff([]string{"Namespace, tenant", "  ConfigMap, shop/web, reference", "    ConfigMap, shop/below, reference"}, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAReferenceFromAnotherNamespaceMakesNoChild holds that an owner reference counts within the owner's namespace alone. Tree lists all
// namespaces for a root without one, and two for a child that is recorded in another one.
func TestAReferenceFromAnotherNamespaceMakesNoChild(t *testing.T) {
	g := newGrove(t)
	tenant := g.make("v1", "Namespace", "", "tenant", nil)
	root := g.make("v1", "ConfigMap", "shop", "root", nil, tenant)
	far := g.make("v1", "ConfigMap", "other", "aaa", nil)
	near := g.make("v1", "Secret", "shop", "zzz", nil, root)
	g.inventory(root, "foo.handwerk.dev", far)
	g.make("v1", "ConfigMap", "other", "forged", nil, near, root)
	want := []string{"Namespace, tenant", "  ConfigMap, shop/root, reference", "    ConfigMap, other/aaa, inventory of operator foo", "    Secret, shop/zzz, reference"}
	for name, begin := range map[string]struct {
		root *unstructured.Unstructured
		want []string
	}{
		"all namespaces are listed": {tenant, want},
		"two are":                   {root, []string{"ConfigMap, shop/root", want[2][2:], want[3][2:]}},
	} {
		t.Run(name, func(t *testing.T) {
			lines, _ := g.draw(begin.root)
			if diff := cmp.Diff(begin.want, lines); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestATreeHasAnEnd holds that a tree has at most so many objects, whether they exist or not, and costs as many reads.
func TestATreeHasAnEnd(t *testing.T) {
	g := newGrove(t)
	var reads atomic.Int32
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reads.Add(1)
		g.server.Client(nil, nil).ServeHTTP(w, r)
	}))
	defer front.Close()
	var err error
	if g.Dynamic, err = dynamic.NewForConfig(&rest.Config{Host: front.URL, QPS: -1}); err != nil {
		t.Fatal(err)
	}
	root := g.make("v1", "ConfigMap", "shop", "root", nil)
	gone := make([]*unstructured.Unstructured, 1100)
	for i := range gone {
		gone[i] = gonePlace("v1", "ConfigMap", fmt.Sprint("c", i))
	}
	g.inventory(root, "foo.handwerk.dev", gone...)
	reads.Store(0)
	lines, unread := g.draw(root)
	if len(lines) != most || reads.Load() != most {
		t.Errorf("%d lines after %d reads, want %d", len(lines), reads.Load(), most)
	}
	if want := []string{"what else is below ConfigMap shop/root: the tree has 1000 objects already"}; !slices.Equal(unread, want) {
		t.Errorf("unread: %s, want %s", unread, want)
	}
}

func gonePlace(version, kind, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"namespace": "shop", "name": name}}}
}

// TestAChildThatIsGoneHasAVersion holds that it is the one in which the kind is served.
func TestAChildThatIsGoneHasAVersion(t *testing.T) {
	g := newGrove(t)
	root := g.make("v1", "ConfigMap", "shop", "root", nil)
	g.inventory(root, "foo.handwerk.dev", gonePlace("apps/v1", "Deployment", "a"), gonePlace("v1", "Secret", "b"), gonePlace("no.example/v1", "Unserved", "c"))
	found, err := Of(t.Context(), g.Clients, g.resource(root), "shop", "root")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range found.Root.Children {
		got = append(got, n.Kind+" "+n.APIVersion)
	}
	if diff := cmp.Diff([]string{"Deployment apps/v1", "Secret v1", "Unserved "}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
