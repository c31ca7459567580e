// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command operator is what is measured: an operator written in Go and run by the engine, as its own process.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/handwerk-dev/handwerk/bench/looks"
	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
)

// workers is how many Foos are handled at once, as many as the others do.
const workers = 16

func main() {
	job := flag.String("job", "status", "what to do: status, children or finalizer")
	namespace := flag.String("namespace", "default", "where the Foos are")
	expected := flag.Int("n", 0, "how many Foos there are")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	op, err := chosen(*job, looks.New(os.Stdout, *expected))
	if err == nil {
		op.Scope.Namespaces = []string{*namespace}
		err = run(ctx, op)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "operator:", err)
		os.Exit(1)
	}
}

// chosen is the operator that does a job.
func chosen(job string, reporter *looks.Reporter) (*dsl.Operator, error) {
	reads := dsl.Reads("spec.replicas", "status.availableReplicas")
	op := dsl.New("bench-go-" + job) // each job has an operator of its own: one looks for the children that it once had
	var err error
	op.Resource("foos.v1alpha1.samplecontroller.k8s.io", func(foo *dsl.Resource) {
		foo.Workers = workers
		switch job {
		case "status":
			foo.OnReconcile("status", reported(reporter, status), reads)
		case "children":
			foo.Owns("configmaps.v1")
			foo.OnReconcile("config", reported(reporter, config), reads)
			foo.OnReconcile("status", status, reads)
		case "finalizer":
			foo.OnDelete("farewell", func(context.Context, *dsl.Request) error { return nil })
		default:
			err = fmt.Errorf("there is no job %q", job)
		}
	})
	return op, err
}

// reported makes a handler report each object that it sees.
func reported(reporter *looks.Reporter, fn dsl.Func) dsl.Func {
	return func(ctx context.Context, r *dsl.Request) error {
		if err := reporter.Saw(r.Object.GetName()); err != nil {
			return err
		}
		return fn(ctx, r)
	}
}

// status reports what is asked for.
func status(_ context.Context, r *dsl.Request) error {
	r.Patch.SetStatus("availableReplicas", replicas(r.Object))
	return nil
}

// config keeps a ConfigMap.
func config(ctx context.Context, r *dsl.Request) error {
	_, err := r.Children.Apply(ctx, map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": r.Object.GetName()},
		"data":     map[string]any{"replicas": strconv.FormatInt(replicas(r.Object), 10)},
	})
	return err
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
	config.UserAgent = op.Name
	logger, err := zap.NewProduction()
	if err != nil {
		return err
	}
	log := zapr.NewLogger(logger)
	klog.SetLoggerWithOptions(log, klog.ContextualLogger(true))
	e, err := engine.New(op, engine.Settings{Config: config, Log: log})
	if err != nil {
		return err
	}
	return e.Run(ctx)
}
