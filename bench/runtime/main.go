// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command runtime is what Handwerk is compared with: the same jobs written with controller-runtime as its book
// recommends, with Go types. Reads are from its cache.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/handwerk-dev/handwerk/bench/looks"
)

// workers is how many Foos are handled at once, as many as the others do.
const workers = 16

func main() {
	job := flag.String("job", "status", "what to do: status, children or finalizer")
	namespace := flag.String("namespace", "default", "where the Foos are")
	expected := flag.Int("n", 0, "how many Foos there are")
	flag.Parse()
	if err := run(ctrl.SetupSignalHandler(), *job, *namespace, looks.New(os.Stdout, *expected)); err != nil {
		fmt.Fprintln(os.Stderr, "runtime:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, job, namespace string, reporter *looks.Reporter) error {
	logger, err := zap.NewProduction()
	if err != nil {
		return err
	}
	ctrl.SetLogger(zapr.NewLogger(logger))
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	config.QPS = -1 // as the others have it: the server says when it is too much
	config.UserAgent = "bench-typed"
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	addFoo(scheme)
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "127.0.0.1:0"},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	})
	if err != nil {
		return err
	}
	if err := setUp(manager, job, reporter); err != nil {
		return err
	}
	return manager.Start(ctx)
}
