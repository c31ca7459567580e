// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package profile writes profiles of a program that is measured.
package profile

import (
	"context"
	"errors"
	"os"
	"runtime"
	"runtime/pprof"
)

// During calls run with a context that ends with ctx, and writes profiles of the processor time
// that run took and of the heap as it is when ctx ends, before run begins to stop.
func During(ctx context.Context, prefix string, run func(context.Context) error) error {
	if prefix == "" {
		return run(ctx)
	}
	cpu, err := os.Create(prefix + ".cpu.pprof")
	if err != nil {
		return err
	}
	defer cpu.Close()
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var heapErr error
	unhook := context.AfterFunc(ctx, func() {
		defer stop()
		heapErr = writeHeap(prefix + ".heap.pprof")
	})
	defer unhook()
	return errors.Join(run(running), heapErr)
}

func writeHeap(name string) error {
	heap, err := os.Create(name)
	if err != nil {
		return err
	}
	defer heap.Close()
	runtime.GC()
	return pprof.WriteHeapProfile(heap)
}
