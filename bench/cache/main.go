// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command cache fills one cache and tells what its objects take.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/handwerk-dev/handwerk/bench/tell"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "cache:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	trees, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	partial, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	set := watch.New(watch.Settings{Dynamic: trees, Metadata: partial, Log: logr.Discard()})
	defer set.Close()
	before := heap()
	source := watch.Source{GVR: schema.GroupVersionResource{Group: "samplecontroller.k8s.io", Version: "v1alpha1", Resource: "foos"}}
	held, err := set.Open(ctx, source, func(watch.Event) {})
	if err != nil {
		return err
	}
	if !held.WaitSynced(ctx) {
		return fmt.Errorf("waiting for the first listing: %w", cmp.Or(held.State().Fault, ctx.Err()))
	}
	line := tell.Line{Heap: heap() - before}
	for _, o := range held.Objects() {
		line.Objects++
		line.Bytes += int64(o.Size())
	}
	return tell.New(os.Stdout, 0, false).Tell(line)
}

// heap returns what is in use after everything that can be freed was.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
