// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kopf

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
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

// work is what the program does itself: it makes objects, and deletes each when the operator has handled it.
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
		seen, err := objects.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + o.GetName()})
		if err != nil {
			return err
		}
		for event := range seen.ResultChan() {
			o, is := event.Object.(*unstructured.Unstructured)
			if event.Type == watch.Deleted || !is {
				break
			}
			if o.GetDeletionTimestamp() == nil && len(o.GetFinalizers()) > 0 {
				err = objects.Delete(ctx, o.GetName(), metav1.DeleteOptions{})
			}
		}
		seen.Stop()
		if err != nil {
			return err
		}
	}
	return nil
}
