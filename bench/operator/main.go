// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command operator is what is measured: an operator written in Go and run by the engine, as its
// own process.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/handwerk-dev/handwerk/bench/tell"
	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/handlers"
)

// workers is how many Foos are handled at once, as many as the minimal client does.
const workers = 16

func main() {
	expected := flag.Int("n", 0, "how many Foos there are")
	traced := flag.Bool("trace", false, "tell of each look")
	children := flag.Bool("children", false, "run samples/foo, with a Deployment for each Foo, instead of keeping status alone")
	profile := flag.String("profile", "", "write pprof profiles to files that begin so: cpu while it runs, heap when it stops")
	file := flag.String("config", "", "run this configuration instead")
	namespace := flag.String("namespace", "default", "the namespace to work in")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	op, err := chosen(*children, *file)
	if err != nil {
		fmt.Fprintln(os.Stderr, "operator:", err)
		os.Exit(1)
	}
	op.Scope.Namespaces = []string{*namespace}
	watched(op, tell.New(os.Stdout, *expected, *traced))
	err = profiled(ctx, *profile, func(ctx context.Context) error { return run(ctx, op) })
	if err != nil {
		fmt.Fprintln(os.Stderr, "operator:", err)
		os.Exit(1)
	}
}

// chosen is the operator to run.
func chosen(children bool, file string) (*dsl.Operator, error) {
	switch {
	case file != "":
		return config.Load([]string{file}, handlers.Standard())
	case children:
		return handlers.FooOperator(), nil
	}
	return status(), nil
}

// status is an operator that reports what is asked for.
func status() *dsl.Operator {
	op := dsl.New("bench")
	op.Resource("foos.v1alpha1.samplecontroller.k8s.io", func(foo *dsl.Resource) {
		foo.OnReconcile("status", func(_ context.Context, r *dsl.Request) error {
			r.Patch.SetStatus("availableReplicas", replicas(r.Object))
			return nil
		})
	})
	return op
}

// watched makes the first handler tell what it sees.
func watched(op *dsl.Operator, teller *tell.Teller) {
	for _, r := range op.Resources() {
		r.Workers = workers
		h := r.Handlers()[0]
		inner := h.Func
		h.Func = func(ctx context.Context, r *dsl.Request) error {
			if err := teller.Saw(r.Object.GetName(), replicas(r.Object)); err != nil {
				return err
			}
			return inner(ctx, r)
		}
	}
}

func replicas(foo *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(foo.Object, "spec", "replicas")
	return n
}

func run(ctx context.Context, op *dsl.Operator) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	logger, err := zap.NewProduction()
	if err != nil {
		return err
	}
	log := zapr.NewLogger(logger)
	klog.SetLoggerWithOptions(log, klog.ContextualLogger(true))
	e, err := engine.New(op, engine.Settings{Config: config, Log: log, Rested: debug.FreeOSMemory})
	if err != nil {
		return err
	}
	return e.Run(ctx)
}
