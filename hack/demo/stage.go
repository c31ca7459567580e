// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

const namespace = "default"

var (
	foos        = schema.GroupVersionResource{Group: "samplecontroller.k8s.io", Version: "v1alpha1", Resource: "foos"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// stage has the clients of the demo.
type stage struct {
	client dynamic.Interface
	said   map[string]string
}

func newStage(kubeconfig string) (*stage, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	return &stage{client: client, said: map[string]string{}}, err
}

// apply creates the Foo of a file.
func (s *stage) apply(ctx context.Context, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	foo := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(data, &foo.Object); err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	_, err = s.client.Resource(foos).Namespace(namespace).Create(ctx, foo, metav1.CreateOptions{})
	return err
}

// watch prints changes until ctx ends or a program of the demo ends; with once, until the Foo's replicas are
// available.
func (s *stage) watch(ctx context.Context, once bool, ended <-chan error) error {
	var streams [3]<-chan watch.Event
	for i, gvr := range []schema.GroupVersionResource{foos, deployments, pods} {
		w, err := s.client.Resource(gvr).Namespace(namespace).Watch(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		defer w.Stop()
		streams[i] = w.ResultChan()
	}
	for {
		var ev watch.Event
		var open bool
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			return err
		case ev, open = <-streams[0]:
		case ev, open = <-streams[1]:
		case ev, open = <-streams[2]:
		}
		if !open {
			return fmt.Errorf("watching: the API server closed the stream")
		}
		if o, ok := ev.Object.(*unstructured.Unstructured); ok && s.show(ev.Type, o) && once {
			return nil
		}
	}
}

// show prints an object if its text is new, and reports whether it is a Foo with all replicas available.
func (s *stage) show(kind watch.EventType, o *unstructured.Unstructured) (complete bool) {
	number := func(path ...string) int64 {
		n, _, _ := unstructured.NestedInt64(o.Object, path...)
		return n
	}
	var text string
	switch o.GetKind() {
	case "Foo":
		text = fmt.Sprintf("wants %d replicas, status.availableReplicas %d", number("spec", "replicas"), number("status", "availableReplicas"))
		complete = number("spec", "replicas") == number("status", "availableReplicas")
	case "Deployment":
		text = fmt.Sprintf("%d of %d ready", number("status", "readyReplicas"), number("spec", "replicas"))
	case "Pod":
		text, _, _ = unstructured.NestedString(o.Object, "status", "phase")
	}
	if kind == watch.Deleted {
		text = "deleted"
	}
	key := o.GetKind() + " " + o.GetName()
	if s.said[key] != text {
		s.said[key] = text
		say("%-42s %s", key, text)
	}
	return complete && kind != watch.Deleted
}
