// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/handwerk-dev/handwerk/bench/looks"
)

// loose does a job without Go types.
type loose struct {
	client.Client
	reporter *looks.Reporter
	job      string
}

func empty(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(gvk)
	return out
}

func newFoo() *unstructured.Unstructured { return empty(fooVersion.WithKind("Foo")) }

func newConfig() *unstructured.Unstructured {
	return empty(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
}

func setUpUnstructured(manager ctrl.Manager, job string, reporter *looks.Reporter) error {
	l := &loose{manager.GetClient(), reporter, job}
	b := ctrl.NewControllerManagedBy(manager).For(newFoo()).WithOptions(controller.Options{MaxConcurrentReconciles: workers})
	if job == "children" {
		b = b.Owns(newConfig())
	}
	return b.Complete(l)
}

// Reconcile does it for one Foo.
func (l *loose) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	foo := newFoo()
	if err := l.Get(ctx, r.NamespacedName, foo); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	replicas, _, _ := unstructured.NestedInt64(foo.Object, "spec", "replicas")
	if err := l.reporter.Saw(foo.GetName(), replicas); err != nil {
		return ctrl.Result{}, err
	}
	switch l.job {
	case "status":
		return ctrl.Result{}, l.status(ctx, foo, replicas)
	case "children":
		if err := l.config(ctx, foo, replicas); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, l.status(ctx, foo, replicas)
	case "finalizer":
		return ctrl.Result{}, l.finalize(ctx, foo)
	}
	return ctrl.Result{}, fmt.Errorf("there is no job %q", l.job)
}

func (l *loose) status(ctx context.Context, foo *unstructured.Unstructured, replicas int64) error {
	if has, found, _ := unstructured.NestedInt64(foo.Object, "status", "availableReplicas"); found && has == replicas {
		return nil
	}
	before := foo.DeepCopy()
	if err := unstructured.SetNestedField(foo.Object, replicas, "status", "availableReplicas"); err != nil {
		return err
	}
	return l.Status().Patch(ctx, foo, client.MergeFrom(before))
}

func (l *loose) config(ctx context.Context, foo *unstructured.Unstructured, replicas int64) error {
	config := newConfig()
	config.SetNamespace(foo.GetNamespace())
	config.SetName(foo.GetName())
	_, err := controllerutil.CreateOrUpdate(ctx, l.Client, config, func() error {
		data := map[string]string{"replicas": strconv.FormatInt(replicas, 10)}
		if err := unstructured.SetNestedStringMap(config.Object, data, "data"); err != nil {
			return err
		}
		return controllerutil.SetControllerReference(foo, config, l.Scheme())
	})
	return err
}

func (l *loose) finalize(ctx context.Context, foo *unstructured.Unstructured) error {
	before := foo.DeepCopy()
	changed := false
	if foo.GetDeletionTimestamp().IsZero() {
		changed = controllerutil.AddFinalizer(foo, finalizer)
	} else {
		changed = controllerutil.RemoveFinalizer(foo, finalizer)
	}
	if !changed {
		return nil
	}
	return client.IgnoreNotFound(l.Patch(ctx, foo, client.MergeFrom(before)))
}
