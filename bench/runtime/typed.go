// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/handwerk-dev/handwerk/bench/looks"
)

const finalizer = "bench.example.com/runtime"

// typed does a job with Go types.
type typed struct {
	client.Client
	reporter *looks.Reporter
	job      string
}

func setUp(manager ctrl.Manager, job string, reporter *looks.Reporter) error {
	t := &typed{manager.GetClient(), reporter, job}
	b := ctrl.NewControllerManagedBy(manager).For(&Foo{}).WithOptions(controller.Options{MaxConcurrentReconciles: workers})
	if job == "children" {
		b = b.Owns(&corev1.ConfigMap{})
	}
	return b.Complete(t)
}

// Reconcile does it for one Foo.
func (t *typed) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	foo := &Foo{}
	if err := t.Get(ctx, r.NamespacedName, foo); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if err := t.reporter.Saw(foo.Name); err != nil {
		return ctrl.Result{}, err
	}
	switch t.job {
	case "status":
		return ctrl.Result{}, t.status(ctx, foo)
	case "children":
		if err := t.config(ctx, foo); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, t.status(ctx, foo)
	case "finalizer":
		return ctrl.Result{}, t.finalize(ctx, foo)
	}
	return ctrl.Result{}, fmt.Errorf("there is no job %q", t.job)
}

func (t *typed) status(ctx context.Context, foo *Foo) error {
	if has := foo.Status.AvailableReplicas; has != nil && *has == foo.Spec.Replicas {
		return nil
	}
	before := foo.DeepCopyObject().(client.Object)
	foo.Status.AvailableReplicas = &foo.Spec.Replicas
	return t.Status().Patch(ctx, foo, client.MergeFrom(before))
}

func (t *typed) config(ctx context.Context, foo *Foo) error {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: foo.Namespace, Name: foo.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, t.Client, config, func() error {
		config.Data = map[string]string{"replicas": strconv.FormatInt(foo.Spec.Replicas, 10)}
		return controllerutil.SetControllerReference(foo, config, t.Scheme())
	})
	return err
}

func (t *typed) finalize(ctx context.Context, foo *Foo) error {
	before := foo.DeepCopyObject().(client.Object)
	changed := false
	if foo.DeletionTimestamp.IsZero() {
		changed = controllerutil.AddFinalizer(foo, finalizer)
	} else {
		changed = controllerutil.RemoveFinalizer(foo, finalizer)
	}
	if !changed {
		return nil
	}
	return client.IgnoreNotFound(t.Patch(ctx, foo, client.MergeFrom(before)))
}
