// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command runtime is what Handwerk is compared with: the same jobs written with controller-runtime as its book
// recommends, with typed objects or with unstructured ones. Reads are from its cache in both cases.
package main

import (
	"context"
	"errors"
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
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/handwerk-dev/handwerk/bench/looks"
	"github.com/handwerk-dev/handwerk/bench/profile"
)

// workers is how many Foos are handled at once, as many as the others do.
const workers = 16

// settings are the command line.
type settings struct {
	job, namespace, profile string
	unstructured, traced    bool
	expected                int
}

func main() {
	var s settings
	flag.StringVar(&s.job, "job", "status", "what to do: status, children or finalizer")
	flag.StringVar(&s.namespace, "namespace", "default", "where the Foos are")
	flag.BoolVar(&s.unstructured, "unstructured", false, "use unstructured objects")
	flag.IntVar(&s.expected, "n", 0, "how many Foos there are")
	flag.BoolVar(&s.traced, "trace", false, "report each look, when it stops")
	flag.StringVar(&s.profile, "profile", "", "write pprof profiles to files that begin so")
	flag.Parse()
	reporter := looks.New(os.Stdout, s.expected, s.traced)
	err := profile.During(ctrl.SetupSignalHandler(), s.profile, func(ctx context.Context) error { return run(ctx, s, reporter) })
	if err = errors.Join(err, reporter.Flush()); err != nil {
		fmt.Fprintln(os.Stderr, "runtime:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings, reporter *looks.Reporter) error {
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
	if s.unstructured {
		config.UserAgent = "bench-unstructured"
	}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	addFoo(scheme)
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "127.0.0.1:0"},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{s.namespace: {}}},
		Client:  client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	if err != nil {
		return err
	}
	if s.unstructured {
		err = setUpUnstructured(manager, s.job, reporter)
	} else {
		err = setUpTyped(manager, s.job, reporter)
	}
	if err != nil {
		return err
	}
	return manager.Start(ctx)
}
