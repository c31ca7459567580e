// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/restmapper"
)

// foos are the custom resource of both servers.
var foos = schema.GroupVersionResource{Group: "samplecontroller.k8s.io", Version: "v1alpha1", Resource: "foos"}

// foo is a Foo with this spec.
func foo(name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo", "metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

// customObjects writes Foos in all ways.
func customObjects(p *program) {
	client := p.dynamic.Resource(foos).Namespace(p.namespace)
	made, err := client.Create(p.ctx, foo("a", map[string]any{"deploymentName": "web"}), metav1.CreateOptions{})
	p.note("created with defaults", made, err)
	_, err = client.Create(p.ctx, foo("b", map[string]any{"deploymentName": "web", "replicas": int64(11)}), metav1.CreateOptions{})
	p.note("refused", nil, err)
	_, err = client.Create(p.ctx, foo("b", map[string]any{"deploymentName": "web", "size": int64(1)}), metav1.CreateOptions{FieldValidation: "Strict"})
	p.note("with an unknown field", nil, err)
	p.must(unstructured.SetNestedField(made.Object, int64(1), "status", "availableReplicas"))
	p.must(unstructured.SetNestedField(made.Object, int64(5), "spec", "replicas"))
	status, err := client.UpdateStatus(p.ctx, made, metav1.UpdateOptions{})
	p.note("the status updated", status, err)
	replaced, err := client.Update(p.ctx, status, metav1.UpdateOptions{})
	p.note("updated without a change", replaced.GetResourceVersion() == status.GetResourceVersion(), err)
	patched, err := client.Patch(p.ctx, "a", types.JSONPatchType, []byte(`[{"op":"test","path":"/spec/replicas","value":1},{"op":"replace","path":"/spec/replicas","value":2}]`), metav1.PatchOptions{})
	p.note("patched", patched.Object["spec"], err)
	p.note("its generation", patched.GetGeneration(), nil)
	_, err = client.Patch(p.ctx, "a", types.StrategicMergePatchType, []byte(`{}`), metav1.PatchOptions{})
	p.note("patched in a way that it has not", nil, err)
	intent := foo("a", map[string]any{"deploymentName": "other"})
	_, err = client.Apply(p.ctx, "a", intent, metav1.ApplyOptions{FieldManager: "applier"})
	p.note("applied in conflict", nil, err)
	applied, err := client.Apply(p.ctx, "a", intent, metav1.ApplyOptions{FieldManager: "applier", Force: true})
	p.note("applied", applied, err)
	state := foo("a", nil)
	delete(state.Object, "spec")
	state.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
	ready, err := client.ApplyStatus(p.ctx, "a", state, metav1.ApplyOptions{FieldManager: "reporter"})
	p.note("the status applied", ready, err)
	list, err := client.List(p.ctx, metav1.ListOptions{})
	p.must(err)
	p.note("listed", list.Items, nil)

	w, err := client.Watch(p.ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	p.must(err)
	defer w.Stop()
	p.must(client.Delete(p.ctx, "a", metav1.DeleteOptions{}))
	e := receive(p, "the deletion", w.ResultChan())
	p.note("watched", e, nil)
	_, err = client.Get(p.ctx, "a", metav1.GetOptions{})
	p.note("deleted", nil, err)
	_, err = p.dynamic.Resource(foos.GroupVersion().WithResource("bars")).Namespace(p.namespace).List(p.ctx, metav1.ListOptions{})
	p.note("a resource that is not there", nil, err)
}

// deletedInOrder deletes an owner in the foreground, and an object that a finalizer holds.
func deletedInOrder(p *program) {
	client, maps := p.dynamic.Resource(foos).Namespace(p.namespace), p.typed.CoreV1().ConfigMaps(p.namespace)
	owner, err := client.Create(p.ctx, foo("owner", map[string]any{"deploymentName": "web"}), metav1.CreateOptions{})
	p.must(err)
	child := configMap("child", "v")
	child.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, foos.GroupVersion().WithKind("Foo"))}
	child.Finalizers = []string{"example.com/hold"}
	_, err = maps.Create(p.ctx, child, metav1.CreateOptions{})
	p.must(err)
	list, err := client.List(p.ctx, metav1.ListOptions{})
	p.must(err)
	w, err := client.Watch(p.ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	p.must(err)
	defer w.Stop()
	p.must(client.Delete(p.ctx, "owner", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}))
	p.note("the owner waits", receive(p, "the mark", w.ResultChan()), nil)
	held := p.await("configmaps", "child", func(e watch.Event) bool {
		return e.Object.(*unstructured.Unstructured).GetDeletionTimestamp() != nil
	})
	p.note("the child is held", held.Object.(*unstructured.Unstructured).GetFinalizers(), nil)
	_, err = maps.Patch(p.ctx, "child", types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/hold","example.com/more"]}}`), metav1.PatchOptions{})
	p.note("another finalizer", nil, err)
	released, err := maps.Patch(p.ctx, "child", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	p.must(err)
	p.note("released", released.Finalizers, nil)
	p.note("the owner goes", receive(p, "the deletion", w.ResultChan()).Type, nil)
	_, err = maps.Get(p.ctx, "child", metav1.GetOptions{})
	p.note("the child", nil, err)
}

// metadataOnly reads objects as metadata.
func metadataOnly(p *program) {
	_, err := p.typed.CoreV1().ConfigMaps(p.namespace).Create(p.ctx, configMap("a", "v"), metav1.CreateOptions{})
	p.must(err)
	client := metadata.NewForConfigOrDie(p.config).Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(p.namespace)
	got, err := client.Get(p.ctx, "a", metav1.GetOptions{})
	p.note("read", got, err)
	list, err := client.List(p.ctx, own)
	p.note("listed", named(list.Items, (*metav1.PartialObjectMetadata).GetName), err)
	patched, err := client.Patch(p.ctx, "a", types.MergePatchType, []byte(`{"metadata":{"annotations":{"step":"2"}}}`), metav1.PatchOptions{})
	p.note("patched", patched, err)
	w, err := client.Watch(p.ctx, metav1.ListOptions{LabelSelector: own.LabelSelector, ResourceVersion: patched.ResourceVersion})
	p.must(err)
	defer w.Stop()
	p.must(client.Delete(p.ctx, "a", metav1.DeleteOptions{}))
	p.note("watched", receive(p, "the deletion", w.ResultChan()), nil)
	_, err = client.Get(p.ctx, "a", metav1.GetOptions{})
	p.note("missing", nil, err)
}

// discovered looks for kinds and resources, by the new form of discovery and by the old one.
func discovered(p *program) {
	for _, legacy := range []bool{false, true} {
		client := discovery.NewDiscoveryClientForConfigOrDie(p.config)
		client.UseLegacyDiscovery = legacy
		version, err := client.ServerVersion()
		p.must(err)
		p.note("version", version.Major+"."+version.Minor, nil)
		for _, group := range []string{"apps/v1", "batch/v1", "autoscaling/v2", foos.GroupVersion().String()} {
			list, err := client.ServerResourcesForGroupVersion(group)
			p.must(err)
			for i := range list.APIResources {
				list.APIResources[i].StorageVersionHash = "" // it says how a real server stores objects in etcd
			}
			p.note(group, list, nil)
		}
		_, err = client.ServerResourcesForGroupVersion("example.com/v1")
		p.note("a group that is not there", nil, err)
		mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client)), client, nil)
		for _, word := range []string{"deploy", "po", "svc", "foos", "foo", "ingresses", "crd", "nonsense"} {
			kind, err := mapper.KindFor(schema.GroupVersionResource{Resource: word})
			p.note(word, kind, err)
		}
		for _, kind := range []schema.GroupKind{{Group: "apps", Kind: "Deployment"}, {Kind: "Namespace"}, {Group: foos.Group, Kind: "Foo"}, {Group: "example.com", Kind: "Bar"}} {
			mapping, err := mapper.RESTMapping(kind)
			if meta.IsNoMatchError(err) {
				p.note(kind.String(), nil, err)
				continue
			}
			p.must(err)
			p.note(kind.String(), []string{mapping.Resource.String(), string(mapping.Scope.Name())}, nil)
		}
	}
}
