// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command demo shows samples/foo at work: it starts a real local control plane, runs the operator
// on it, makes a Foo, and prints Foo, Deployment and Pods as they come up. Ctrl-C ends everything
// and leaves nothing behind. Run it with "make demo-controlplane", which builds what it needs.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	once := flag.Bool("once", false, "end when everything runs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *once); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run plays the demo until ctx ends, or with once until everything runs.
func run(ctx context.Context, once bool) error {
	dir, err := os.MkdirTemp("", "handwerk-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	kubeconfig := filepath.Join(dir, "kubeconfig")

	say("starting a Kubernetes control plane in %s", dir)
	plane := program("bin/controlplane", "start", "--dir", dir, "--crds", "samples/foo/crd.yaml")
	if err := plane.start(filepath.Join(dir, "controlplane.out")); err != nil {
		return err
	}
	defer plane.stop()
	if err := plane.await(ctx, kubeconfig); err != nil {
		return quiet(ctx, err)
	}

	say("starting the operator: bin/operator run --config samples/foo/operator.yaml")
	operator := program("bin/operator", "run", "--config", "samples/foo/operator.yaml", "--kubeconfig", kubeconfig,
		"--health-probe-bind-address=0", "--metrics-bind-address=0")
	if err := operator.start(filepath.Join(dir, "operator.log")); err != nil {
		return err
	}
	defer operator.stop()

	s, err := newStage(kubeconfig)
	if err != nil {
		return err
	}
	say("creating the Foo of samples/foo/example.yaml")
	if err := s.apply(ctx, "samples/foo/example.yaml"); err != nil {
		return quiet(ctx, err)
	}
	say("Try in another terminal (Ctrl-C here ends it all):\n"+
		"           export KUBECONFIG=%s\n"+
		"           kubectl patch foo example-foo --type=merge -p '{\"spec\":{\"replicas\":5}}'\n"+
		"           kubectl delete deployment example-foo", kubeconfig)
	return quiet(ctx, s.watch(ctx, once, operator.ended))
}

// quiet drops the error after an end that the user asked for.
func quiet(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		say("ending")
		return nil
	}
	return err
}

func say(format string, args ...any) {
	fmt.Printf("%s  "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}

// child is a program of the demo. It has its own process group, so that Ctrl-C does not reach it before the demo
// stops it.
type child struct {
	cmd   *exec.Cmd
	log   string
	ended chan error
}

func program(name string, args ...string) *child {
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return &child{cmd: cmd, ended: make(chan error, 1)}
}

func (c *child) start(log string) error {
	out, err := os.Create(log)
	if err != nil {
		return err
	}
	defer out.Close()
	c.log, c.cmd.Stdout, c.cmd.Stderr = log, out, out
	if err := c.cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w (run it with \"make demo-controlplane\", which builds it)", c.cmd.Path, err)
	}
	go func() {
		_ = c.cmd.Wait() // its state says more
		text, _ := os.ReadFile(c.log)
		c.ended <- fmt.Errorf("%s ended (%s)\n%s", c.cmd.Path, c.cmd.ProcessState, text)
		close(c.ended)
	}()
	return nil
}

// await waits until the program has written the file.
func (c *child) await(ctx context.Context, file string) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(file); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-c.ended:
			return err
		case <-tick.C:
		}
	}
}

// stop ends the program and waits for it.
func (c *child) stop() {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	for range c.ended {
	}
}
