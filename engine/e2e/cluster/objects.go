// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl"
)

// rewatch is the pause after a watch that ended or could not begin.
const rewatch = 50 * time.Millisecond

// Namespace creates a namespace with a random name, ready for pods. It is deleted when the test ends, without
// waiting.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	ctx, cancel := bounded(t)
	defer cancel()
	spaces := c.kubernetes.CoreV1().Namespaces()
	made, err := spaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating namespace: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := bounded(t)
		defer cancel()
		if err := spaces.Delete(ctx, made.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("deleting namespace %s: %v", made.Name, err)
		}
	})
	c.Objects("serviceaccounts.v1", made.Name).Await(t, "default", "the service account that pods need",
		func(*unstructured.Unstructured) bool { return true })
	return made.Name
}

// Objects are the objects of one resource in one namespace, accessed as admin. Each method fails the test if the
// API server refuses.
type Objects struct {
	// Name is the resource.
	Name schema.GroupVersionResource
	// Namespace is empty for all namespaces, and for cluster-scoped resources.
	Namespace string

	client  dynamic.ResourceInterface
	manager string
}

// Objects returns the objects of a resource, as in "deployments.v1.apps"; the version is required. It panics if the
// name is invalid.
func (c *Cluster) Objects(resource, namespace string) *Objects {
	n, err := dsl.ParseResourceName(resource)
	if err != nil || n.Version == "" {
		panic(fmt.Sprintf("cluster: %q is not plural.version.group: %v", resource, err))
	}
	return c.objects(schema.GroupVersionResource{Group: n.Group, Version: n.Version, Resource: n.Resource}, namespace)
}

func (c *Cluster) objects(gvr schema.GroupVersionResource, namespace string) *Objects {
	o := &Objects{Name: gvr, Namespace: namespace, manager: manager, client: c.dynamic.Resource(gvr)}
	if namespace != "" {
		o.client = c.dynamic.Resource(gvr).Namespace(namespace)
	}
	return o
}

// Get returns an object, or nil.
func (o *Objects) Get(t testing.TB, name string) *unstructured.Unstructured {
	t.Helper()
	return o.ask(t, "getting", name, true, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return o.client.Get(ctx, name, metav1.GetOptions{})
	})
}

// List returns all objects.
func (o *Objects) List(t testing.TB) (all []unstructured.Unstructured) {
	t.Helper()
	o.ask(t, "listing", "", false, func(ctx context.Context) (*unstructured.Unstructured, error) {
		list, err := o.client.List(ctx, metav1.ListOptions{})
		if err == nil {
			all = list.Items
		}
		return nil, err
	})
	return all
}

// Create creates an object and returns the API server's result.
func (o *Objects) Create(t testing.TB, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	return o.ask(t, "creating", object.GetName(), false, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return o.client.Create(ctx, object, metav1.CreateOptions{FieldManager: o.manager})
	})
}

// By returns the same objects with another field manager.
func (o *Objects) By(manager string) *Objects {
	by := *o
	by.manager = manager
	return &by
}

// Send sends a patch of a type, to a subresource if one is given. An apply is forced.
func (o *Objects) Send(t testing.TB, name string, kind types.PatchType, patch string, subresource ...string) *unstructured.Unstructured {
	t.Helper()
	options := metav1.PatchOptions{FieldManager: o.manager}
	if force := true; kind == types.ApplyPatchType {
		options.Force = &force
	}
	return o.ask(t, "patching", name, false, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return o.client.Patch(ctx, name, kind, []byte(patch), options, subresource...)
	})
}

// Patch sends a JSON merge patch, to a subresource if one is given.
func (o *Objects) Patch(t testing.TB, name, patch string, subresource ...string) *unstructured.Unstructured {
	t.Helper()
	return o.Send(t, name, types.MergePatchType, patch, subresource...)
}

// Delete requests an object's deletion, which finalizers may delay. The object may be gone already. How, at most one, says what
// becomes of what it owns; by default that follows in the background.
func (o *Objects) Delete(t testing.TB, name string, how ...metav1.DeletionPropagation) {
	t.Helper()
	var options metav1.DeleteOptions
	for i := range how {
		options.PropagationPolicy = &how[i]
	}
	o.ask(t, "deleting", name, true, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return nil, o.client.Delete(ctx, name, options)
	})
}

// Await watches an object until met is true, and returns the object. If that does not happen in time, it fails the
// test with the last object; what describes the condition.
func (o *Objects) Await(t testing.TB, name, what string, met func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	t.Helper()
	return o.await(t, name, what, func(object *unstructured.Unstructured) bool { return object != nil && met(object) })
}

// AwaitGone watches an object until it is gone.
func (o *Objects) AwaitGone(t testing.TB, name string) {
	t.Helper()
	o.await(t, name, "its end", func(object *unstructured.Unstructured) bool { return object == nil })
}

func (o *Objects) await(t testing.TB, name, what string, met func(*unstructured.Unstructured) bool) (last *unstructured.Unstructured) {
	t.Helper()
	ctx, cancel := bounded(t)
	defer cancel()
	err := o.follow(ctx, name, func(object *unstructured.Unstructured) bool {
		last = object
		return met(object)
	})
	if err != nil {
		t.Fatalf("awaiting %s of %s: %v; last seen:\n%s", what, o.of(name), err, text(last))
	}
	return last
}

// follow calls seen with the object, or nil, and again after each change until it returns true.
func (o *Objects) follow(ctx context.Context, name string, seen func(*unstructured.Unstructured) bool) error {
	for {
		done, err := o.watch(ctx, name, seen)
		if done {
			return nil
		}
		select {
		case <-time.After(rewatch):
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// watch is one watch of follow. It begins with the current state, which is never stale.
func (o *Objects) watch(ctx context.Context, name string, seen func(*unstructured.Unstructured) bool) (done bool, err error) {
	initial := true
	w, err := o.client.Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + name, SendInitialEvents: &initial,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
	})
	if err != nil {
		return false, err
	}
	defer w.Stop()
	present := false
	for event := range w.ResultChan() {
		object, _ := event.Object.(*unstructured.Unstructured)
		switch event.Type {
		case watch.Added, watch.Modified:
			present, done = true, seen(object)
		case watch.Deleted:
			present, done = false, seen(nil)
		case watch.Bookmark:
			done = !present && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" && seen(nil)
		case watch.Error:
			return false, apierrors.FromObject(event.Object)
		}
		if done {
			return true, nil
		}
	}
	return false, nil
}

func (o *Objects) of(name string) string {
	if o.Namespace != "" {
		name = o.Namespace + "/" + name
	}
	return o.Name.Resource + " " + name
}

// ask sends a request and fails the test if it is refused; with mayMiss the object may be missing.
func (o *Objects) ask(t testing.TB, doing, name string, mayMiss bool, send func(context.Context) (*unstructured.Unstructured, error)) *unstructured.Unstructured {
	t.Helper()
	ctx, cancel := bounded(t)
	defer cancel()
	got, err := send(ctx)
	if err != nil && (!mayMiss || !apierrors.IsNotFound(err)) {
		t.Fatalf("%s %s: %v", doing, o.of(name), err)
	}
	if err != nil {
		return nil
	}
	return got
}
