// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kopf

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
)

// Embedded is 12-embedded: a program that does its own work, which is to make and delete objects, while an operator runs within
// it. What the operator says, the program gives it.
func Embedded(ctx context.Context, config *rest.Config, namespace string, log logr.Logger) error {
	op := dsl.New("kopf-12-embedded")
	op.Scope.Namespaces = []string{namespace}
	op.OnStartup("texts", func(_ context.Context, r *dsl.Request) error {
		r.OperatorMemo.Set("create", "Hello, %s!")
		r.OperatorMemo.Set("delete", "Good bye, %s!")
		return nil
	})
	op.Resource(Examples, func(kex *dsl.Resource) {
		kex.OnCreate("create", say)
		kex.OnDelete("delete", say)
	})
	e, err := engine.New(op, engine.Settings{Config: config, Log: log})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	err = work(ctx, config, namespace)
	stop()
	if failed := <-ended; failed != nil {
		return failed
	}
	return err
}

// say says what the operator's memo has for a handler.
func say(_ context.Context, r *dsl.Request) error {
	text, _ := r.OperatorMemo.Get(r.Handler)
	r.Log.Info(fmt.Sprintf(text.(string), r.Object.GetName()))
	return nil
}

// work is what the program does itself: it makes objects, and deletes each when the operator has taken it up.
func work(ctx context.Context, config *rest.Config, namespace string) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	objects := client.Resource(schema.GroupVersionResource{Group: "kopf.dev", Version: "v1", Resource: "kopfexamples"}).Namespace(namespace)
	for step := range 3 {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kopf.dev/v1", "kind": "KopfExample"}}
		o.SetName(fmt.Sprintf("kopf-example-%d", step))
		if _, err := objects.Create(ctx, o, metav1.CreateOptions{}); err != nil {
			return err
		}
		if err := deleteTaken(ctx, objects, o.GetName()); err != nil {
			return err
		}
	}
	return nil
}

// deleteTaken deletes an object when the operator has taken it up, which its finalizer shows, and waits until it is gone.
func deleteTaken(ctx context.Context, objects dynamic.ResourceInterface, name string) error {
	seen, err := objects.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return err
	}
	defer seen.Stop()
	for event := range seen.ResultChan() {
		o, is := event.Object.(*unstructured.Unstructured)
		if event.Type == watch.Deleted || !is {
			return nil
		}
		if len(o.GetFinalizers()) > 0 {
			if err := objects.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	return ctx.Err()
}
