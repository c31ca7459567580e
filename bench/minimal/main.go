// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command minimal is the least that does the work: a list, a watch, and a status patch for each
// Foo whose status does not say what its spec asks for. It has no cache, no retries, no order of
// urgency and ends when its watch has missed something; it is what the operator is measured against.
package main

import (
	"context"
	"flag"
	"fmt"
	"hash/maphash"
	"os"
	"os/signal"
	"sync"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/handwerk-dev/handwerk/bench/tell"
)

const (
	// workers is how many patches are under way at once.
	workers = 16
	// waiting is how many Foos may wait for each worker: enough for the watch never to be held
	// up, which the server would end.
	waiting = 1 << 13
)

func main() {
	expected := flag.Int("n", 0, "how many Foos there are")
	traced := flag.Bool("trace", false, "tell of each look")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, tell.New(os.Stdout, *expected, *traced)); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "minimal:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, teller *tell.Teller) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	c := &controller{
		foos:   client.Resource(schema.GroupVersionResource{Group: "samplecontroller.k8s.io", Version: "v1alpha1", Resource: "foos"}),
		teller: teller, seed: maphash.MakeSeed(),
	}
	var working sync.WaitGroup
	for i := range c.lines {
		c.lines[i] = make(chan *unstructured.Unstructured, waiting)
		working.Go(func() { c.work(ctx, c.lines[i]) })
	}
	err = c.follow(ctx)
	for _, line := range c.lines {
		close(line)
	}
	working.Wait()
	return err
}

// controller keeps the status of Foos. Each Foo has its line, so that its events stay in order.
type controller struct {
	foos   dynamic.NamespaceableResourceInterface
	teller *tell.Teller
	seed   maphash.Seed
	lines  [workers]chan *unstructured.Unstructured
}

func (c *controller) follow(ctx context.Context) error {
	list, err := c.foos.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		c.give(ctx, &list.Items[i])
	}
	version := list.GetResourceVersion()
	for err == nil {
		version, err = c.watch(ctx, version)
	}
	return err
}

// watch watches from a version on until the server ends the watch, as it does now and then, and
// returns the version of the last event.
func (c *controller) watch(ctx context.Context, version string) (string, error) {
	stream, err := c.foos.Watch(ctx, metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		return "", err
	}
	defer stream.Stop()
	for event := range stream.ResultChan() {
		foo, ok := event.Object.(*unstructured.Unstructured)
		if event.Type == watch.Error || !ok {
			return "", fmt.Errorf("watching: %v", event.Object)
		}
		version = foo.GetResourceVersion()
		if event.Type != watch.Deleted {
			c.give(ctx, foo)
		}
	}
	return version, ctx.Err()
}

func (c *controller) give(ctx context.Context, foo *unstructured.Unstructured) {
	line := c.lines[maphash.String(c.seed, foo.GetName())%workers]
	select {
	case line <- foo:
	case <-ctx.Done():
	}
}

func (c *controller) work(ctx context.Context, line <-chan *unstructured.Unstructured) {
	for foo := range line {
		if err := c.reconcile(ctx, foo); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "minimal:", err)
		}
	}
}

func (c *controller) reconcile(ctx context.Context, foo *unstructured.Unstructured) error {
	wanted, _, _ := unstructured.NestedInt64(foo.Object, "spec", "replicas")
	if err := c.teller.Saw(foo.GetName(), wanted); err != nil {
		return err
	}
	has, found, _ := unstructured.NestedInt64(foo.Object, "status", "availableReplicas")
	if found && has == wanted {
		return nil
	}
	patch := fmt.Appendf(nil, `{"status":{"availableReplicas":%d}}`, wanted)
	_, err := c.foos.Namespace(foo.GetNamespace()).Patch(ctx, foo.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
