// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package cluster gives integration tests a real API server, and the means to observe and to disturb an operator:
// waiting by watching, the audit log, users whose rights change, a proxy that injects faults, and the operator
// itself, as a process or inside the test's.
//
// A test binary has one control plane. All its tests use it at the same time, each with its own namespaces and
// users.
package cluster

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Environment variables.
const (
	// ControlPlaneVariable names the program that starts a control plane. It defaults to bin/controlplane in the
	// module.
	ControlPlaneVariable = "HANDWERK_CONTROLPLANE"
	// KubeconfigVariable names the kubeconfig of a cluster to use instead. Tests that read the audit log are then
	// skipped. The user must have all rights, including impersonation.
	KubeconfigVariable = "HANDWERK_TEST_KUBECONFIG"
)

// Patience limits each wait of a test. It is generous: a passing test does not need it, even on a busy machine,
// where garbage collection alone may take half a minute.
const Patience = 2 * time.Minute

// glance is the pause between two polls of something that cannot be watched.
const glance = 5 * time.Millisecond

// Cluster is the API server that the tests of a binary share. Its zero value is for [Main].
type Cluster struct {
	root       string // of the module
	dir        string // temporary
	plane      *process
	bare       bool // without controllers
	config     *rest.Config
	dynamic    dynamic.Interface
	kubernetes kubernetes.Interface
	audit      *auditLog // nil if the audit log is not available
	builds     builds
}

// Main is for TestMain: it starts c, runs the tests and returns the exit code. It leaves no process behind. The
// CRDs in the files that match the globs crds, relative to the module, exist from the start; garbage collection
// takes up to 30 s to notice later ones.
func Main(m *testing.M, c *Cluster, crds ...string) (code int) {
	ctx := context.Background()
	defer func() {
		if err := c.stop(); err != nil {
			fmt.Fprintf(os.Stderr, "stopping control plane: %v\n", err)
			code = 1
		}
	}()
	if err := c.start(ctx, crds); err != nil {
		fmt.Fprintf(os.Stderr, "starting control plane: %v\n", err)
		return 1
	}
	if err := parallel(); err != nil {
		fmt.Fprintf(os.Stderr, "setting -parallel: %v\n", err)
		return 1
	}
	return m.Run()
}

// parallel has more tests run at once than there are processors, unless the command line says how many: they wait for
// most of their time.
func parallel() error {
	flag.Parse()
	const name = "test.parallel"
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if given {
		return nil
	}
	return flag.Set(name, strconv.Itoa(3*runtime.GOMAXPROCS(0)))
}

// Config returns a copy of the admin's config, without a client-side rate limit.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Dynamic returns the admin's client for any resource.
func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

// Kubernetes returns the admin's client for built-in resources.
func (c *Cluster) Kubernetes() kubernetes.Interface { return c.kubernetes }

func (c *Cluster) start(ctx context.Context, globs []string) (err error) {
	if c.root, err = moduleRoot(); err != nil {
		return err
	}
	if c.dir, err = os.MkdirTemp("", "handwerk-e2e-"); err != nil {
		return err
	}
	var crds []string
	for _, glob := range globs {
		found, err := filepath.Glob(filepath.Join(c.root, glob))
		if err != nil {
			return err
		}
		crds = append(crds, found...)
	}
	given := os.Getenv(KubeconfigVariable)
	if given == "" {
		kubeconfig, err := c.startPlane(crds)
		if err != nil {
			return err
		}
		return c.connect(kubeconfig)
	}
	if err := c.connect(given); err != nil {
		return err
	}
	for _, file := range crds {
		if _, err := c.applyAll(ctx, "", file); err != nil {
			return fmt.Errorf("applying %w", err)
		}
	}
	return nil
}

func (c *Cluster) connect(kubeconfig string) (err error) {
	if c.config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return fmt.Errorf("reading %s: %w", kubeconfig, err)
	}
	c.config.QPS = -1
	if c.dynamic, err = dynamic.NewForConfig(c.config); err != nil {
		return err
	}
	c.kubernetes, err = kubernetes.NewForConfig(c.config)
	return err
}

func (c *Cluster) stop() error {
	if c.dir != "" {
		defer os.RemoveAll(c.dir)
	}
	if c.plane == nil {
		return nil
	}
	return c.stopPlane()
}

// moduleRoot returns the nearest folder with a go.mod, from the current one upwards.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("finding the module: no go.mod above the present folder")
		}
		dir = filepath.Dir(dir)
	}
}

// bounded returns a context for one wait. It outlives the test's own, because cleanups wait, too.
func bounded(t testing.TB) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.WithoutCancel(t.Context()), Patience,
		fmt.Errorf("nothing more to wait for after %s", Patience))
}
