// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command operator is what is measured: an operator written in Go and run by the engine, as its own process.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/handwerk-dev/handwerk/bench/looks"
	"github.com/handwerk-dev/handwerk/bench/profile"
	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
)

// workers is how many Foos are handled at once, as many as the others do.
const workers = 16

func main() {
	job := flag.String("job", "status", "what to do: status, children or finalizer")
	namespace := flag.String("namespace", "default", "where the Foos are")
	expected := flag.Int("n", 0, "how many Foos there are")
	traced := flag.Bool("trace", false, "report each look, when it stops")
	resync := flag.Duration("resync", 0, "look at every Foo again so often")
	prefix := flag.String("profile", "", "write pprof profiles to files that begin so: cpu while it runs, heap when it stops")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	reporter := looks.New(os.Stdout, *expected, *traced)
	op, err := chosen(*job, *resync, reporter)
	if err == nil {
		op.Scope.Namespaces = []string{*namespace}
		err = profile.During(ctx, *prefix, func(ctx context.Context) error { return run(ctx, op) })
	}
	if err = errors.Join(err, reporter.Flush()); err != nil {
		fmt.Fprintln(os.Stderr, "operator:", err)
		os.Exit(1)
	}
}

// chosen is the operator that does a job.
func chosen(job string, resync time.Duration, reporter *looks.Reporter) (*dsl.Operator, error) {
	op := dsl.New("bench-go")
	var err error
	op.Resource("foos.v1alpha1.samplecontroller.k8s.io", func(foo *dsl.Resource) {
		foo.Workers, foo.Resync = workers, resync
		switch job {
		case "status":
			foo.OnReconcile("status", reported(reporter, status))
		case "children":
			foo.Owns("configmaps.v1")
			foo.OnReconcile("config", reported(reporter, config))
			foo.OnReconcile("status", status)
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
		if err := reporter.Saw(r.Object.GetName(), replicas(r.Object)); err != nil {
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
	e, err := engine.New(op, engine.Settings{Config: config, Log: log, Rested: debug.FreeOSMemory})
	if err != nil {
		return err
	}
	return e.Run(ctx)
}
