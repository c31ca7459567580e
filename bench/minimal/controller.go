// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"hash/maphash"
	"net/http"
	"os"
	"strconv"
	"sync"

	"github.com/handwerk-dev/handwerk/bench/looks"
	"github.com/handwerk-dev/handwerk/bench/wire"
)

const (
	// workers is how many requests are under way at once.
	workers = 16
	// mine is the finalizer of the job of that name.
	mine = "bench.example.com/minimal"
)

// controller does one job. Each Foo has its line, so that its events stay in order.
type controller struct {
	client        *wire.Client
	reporter      *looks.Reporter
	foos, configs string
	lines         [workers]*line
	seed          maphash.Seed

	// mu guards known, which the job children alone has.
	mu    sync.Mutex
	known map[string]*state
}

// work does a job until what follows the server ends.
func (c *controller) work(ctx context.Context, job func(context.Context, event) error, follow func(context.Context) error) error {
	c.seed = maphash.MakeSeed()
	var working sync.WaitGroup
	for i := range c.lines {
		c.lines[i] = newLine()
		working.Go(func() {
			for e := range c.lines[i].events {
				if err := job(ctx, e); err != nil && ctx.Err() == nil {
					fmt.Fprintln(os.Stderr, "minimal:", err)
				}
			}
		})
	}
	err := follow(ctx)
	for _, l := range c.lines {
		l.close()
	}
	working.Wait()
	return err
}

// give gives an event to its Foo's worker.
func (c *controller) give(e event) {
	c.lines[maphash.String(c.seed, e.name)%workers].put(e)
}

// status makes the status say what the spec asks for.
func (c *controller) status(ctx context.Context, e event) error {
	if err := c.reporter.Saw(e.name); err != nil {
		return err
	}
	if e.reported == e.wanted {
		return nil
	}
	return c.report(ctx, e.name, e.wanted)
}

// bodies are patches of the status, by number of replicas.
var bodies = func() (out [11][]byte) {
	for i := range out {
		out[i] = statusOf(int64(i))
	}
	return out
}()

func statusOf(replicas int64) []byte {
	return append(strconv.AppendInt([]byte(`{"status":{"availableReplicas":`), replicas, 10), "}}"...)
}

func (c *controller) report(ctx context.Context, name string, replicas int64) error {
	var body []byte
	if replicas >= 0 && replicas < int64(len(bodies)) {
		body = bodies[replicas]
	} else {
		body = statusOf(replicas)
	}
	return c.client.Send(ctx, http.MethodPatch, c.foos+"/"+name+"/status", wire.Merge, body)
}

var (
	addFinalizer  = []byte(`{"metadata":{"finalizers":["` + mine + `"]}}`)
	takeFinalizer = []byte(`{"metadata":{"finalizers":null}}`)
)

// finalizer keeps a finalizer on each Foo and takes it off when the Foo is deleted.
func (c *controller) finalizer(ctx context.Context, e event) error {
	if err := c.reporter.Saw(e.name); err != nil {
		return err
	}
	switch {
	case e.deleting && e.held:
		return c.client.Send(ctx, http.MethodPatch, c.foos+"/"+e.name, wire.Merge, takeFinalizer)
	case !e.deleting && !e.held:
		return c.client.Send(ctx, http.MethodPatch, c.foos+"/"+e.name, wire.Merge, addFinalizer)
	}
	return nil
}
