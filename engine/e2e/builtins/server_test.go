// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtins

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/server/complete"
)

// endpoint is an API server, and the namespace of the test.
type endpoint struct {
	client    dynamic.Interface
	discovery discovery.DiscoveryInterface
	kinds     meta.RESTMapper
	namespace string
}

// realServer returns the real one, as soon as it accepts Pods.
func realServer(t *testing.T) endpoint {
	t.Helper()
	out := connect(t, plane.Config())
	accounts := out.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}).Namespace(out.namespace)
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := accounts.Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting for the ServiceAccount: %v", err)
	}
	return out
}

// inMemory returns a new one in memory.
func inMemory(t *testing.T) endpoint {
	return connect(t, &rest.Config{Host: "http://memory", Transport: server.New(complete.Settings()).Admin(), QPS: -1})
}

func connect(t *testing.T, config *rest.Config) endpoint {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	groups, err := restmapper.GetAPIGroupResources(discoverer)
	if err != nil {
		t.Fatalf("discovering the kinds: %v", err)
	}
	out := endpoint{client: client, discovery: discoverer, kinds: restmapper.NewDiscoveryRESTMapper(groups), namespace: "builtins"}
	if _, err := out.create(t, map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": out.namespace},
	}, ""); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("creating the namespace: %v", err)
	}
	return out
}

// reach returns the client for objects of a kind.
func (s endpoint) reach(t *testing.T, o *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	kind := o.GroupVersionKind()
	mapping, err := s.kinds.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		t.Fatalf("finding the resource: %v", err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return s.client.Resource(mapping.Resource)
	}
	return s.client.Resource(mapping.Resource).Namespace(s.namespace)
}

func (s endpoint) create(t *testing.T, object map[string]any, validation string) (*unstructured.Unstructured, error) {
	t.Helper()
	o := (&unstructured.Unstructured{Object: object}).DeepCopy()
	return s.reach(t, o).Create(t.Context(), o, metav1.CreateOptions{FieldValidation: validation, FieldManager: "test"})
}

// remove deletes an object.
func (s endpoint) remove(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	if err := s.reach(t, o).Delete(t.Context(), o.GetName(), metav1.DeleteOptions{
		GracePeriodSeconds: new(int64), PropagationPolicy: new(metav1.DeletePropagationBackground),
	}); err != nil {
		t.Errorf("deleting %s: %v", o.GetName(), err)
	}
}
