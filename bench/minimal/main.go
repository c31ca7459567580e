// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command minimal is the least that does the work: a watch, and the requests for each Foo that needs some. It has no
// cache, no retries, no order of urgency and no memory but what a job needs, and ends when its watch has missed
// something; it is what everything else is measured against.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/handwerk-dev/handwerk/bench/looks"
	"github.com/handwerk-dev/handwerk/bench/wire"
)

func main() {
	job := flag.String("job", "status", "what to do: status, children or finalizer")
	namespace := flag.String("namespace", "default", "where the Foos are")
	expected := flag.Int("n", 0, "how many Foos there are")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, *job, *namespace, looks.New(os.Stdout, *expected))
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "minimal:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, job, namespace string, reporter *looks.Reporter) error {
	client, err := wire.New(os.Getenv("KUBECONFIG"), "bench-minimal", workers+2)
	if err != nil {
		return err
	}
	c := &controller{
		client: client, reporter: reporter,
		foos:    "/apis/samplecontroller.k8s.io/v1alpha1/namespaces/" + namespace + "/foos",
		configs: "/api/v1/namespaces/" + namespace + "/configmaps",
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	switch job {
	case "status":
		return c.work(ctx, c.status, c.followFoos)
	case "finalizer":
		return c.work(ctx, c.finalizer, c.followFoos)
	case "children":
		c.known = map[string]*state{}
		return c.work(ctx, c.children, c.followBoth)
	}
	return fmt.Errorf("there is no job %q", job)
}
