// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command bench measures the engine against a hand-written minimal client, both against the same
// real API server and in alternation, and prints a Markdown table. docs/performance.md says what
// the rows mean.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// plan is what is to be measured.
type plan struct {
	objects, pairs, samples, families int
	rest                              time.Duration
	controlplane, profile             string
	// dir is where programs, data and logs go.
	dir string
	log io.Writer
}

func main() {
	p := plan{log: os.Stderr}
	flag.IntVar(&p.objects, "n", 5000, "how many Foos there are")
	flag.IntVar(&p.pairs, "pairs", 3, "how often the two are measured, in alternation")
	flag.IntVar(&p.samples, "samples", 500, "how many changes the latency is taken from")
	flag.IntVar(&p.families, "families", 1000, "how many Foos have five children each, by an operator in YAML")
	flag.DurationVar(&p.rest, "rest", 15*time.Second, "how long a program has nothing to do before its memory is read")
	flag.StringVar(&p.controlplane, "controlplane", "../bin/controlplane", "the program that starts a control plane")
	flag.StringVar(&p.profile, "profile", "", "write pprof profiles of the operator into this `folder`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := p.run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run prepares, measures everything and writes the table.
func (p plan) run(ctx context.Context, out io.Writer) (err error) {
	if p.dir, err = os.MkdirTemp("", "handwerk-bench-"); err != nil {
		return err
	}
	defer func() {
		if err == nil {
			err = os.RemoveAll(p.dir)
		} else {
			err = fmt.Errorf("%w (logs are in %s)", err, p.dir)
		}
	}()
	if p.profile != "" {
		if p.profile, err = filepath.Abs(p.profile); err != nil {
			return err
		}
		if err = os.MkdirAll(p.profile, 0o755); err != nil {
			return err
		}
	}
	if err = p.build(ctx); err != nil {
		return err
	}
	plane, err := p.startPlane(ctx)
	if err != nil {
		return err
	}
	defer plane.stop()
	foos, err := newFoos(plane.kubeconfig, "default", p.objects)
	if err != nil {
		return err
	}
	s := &session{plan: p, plane: plane, foos: foos}
	result, err := s.measure(ctx)
	if err != nil {
		return err
	}
	return result.write(out)
}
