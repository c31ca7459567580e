// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command kinds writes what the project knows of the built-in kinds of Kubernetes, as a real API server serves them: the
// archive of package dsl/builtin, and of the sandbox the columns of package print and the parameters of package openapi. `make
// kinds` runs it.
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	plane := flag.String("controlplane", "bin/controlplane", "the control plane whose API server is asked")
	archive := flag.String("out", "dsl/builtin/kinds.zip", "the file for the kinds and their schemas")
	columns := flag.String("columns", "sandbox/server/print/columns.json", "the file for the columns of kubectl get")
	parameters := flag.String("parameters", "sandbox/server/openapi/parameters.json", "the file for the parameters of operations")
	flag.Parse()
	if err := run(*plane, *archive, *columns, *parameters); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

// run asks an API server with nothing but built-in kinds, in all versions.
func run(plane, archive, columns, parameters string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "kinds")
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, os.RemoveAll(dir)) }()
	stop, err := start(ctx, plane, dir)
	if err != nil {
		return fmt.Errorf("starting the control plane: %w", err)
	}
	defer func() { err = cmp.Or(err, stop()) }()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		return err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	index, kinds, err := gather(ctx, client)
	if err != nil {
		return fmt.Errorf("asking the API server: %w", err)
	}
	tables, err := tables(ctx, client.RESTClient(), index)
	if err != nil {
		return fmt.Errorf("asking for tables: %w", err)
	}
	options, err := options(ctx, client.RESTClient())
	if err != nil {
		return fmt.Errorf("asking for parameters: %w", err)
	}
	return cmp.Or(os.WriteFile(archive, kinds, 0o644), os.WriteFile(columns, tables, 0o644), os.WriteFile(parameters, options, 0o644))
}

// start starts the control plane in a folder and returns when it is ready.
func start(ctx context.Context, plane, dir string) (stop func() error, err error) {
	c := exec.CommandContext(ctx, plane, "start", "--dir", dir, "--without", "kcm,scheduler,kwok",
		"--arg", "kube-apiserver=--runtime-config=api/all=true")
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.Stderr = os.Stderr
	lines, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	stop = func() error {
		if err := c.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		return c.Wait()
	}
	for scanner := bufio.NewScanner(lines); scanner.Scan(); {
		if strings.HasPrefix(scanner.Text(), "ready: ") {
			return stop, nil
		}
	}
	return nil, errors.Join(errors.New("it ended before it was ready"), c.Wait())
}
