// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command bench measures operators that are run by Handwerk against a hand-written minimal client and against
// controller-runtime, all against the same real API server and in alternation, and prints Markdown tables.
// docs/performance.md says what the rows mean.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	p, err := flags()
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		err = p.run(ctx, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// flags reads the command line.
func flags() (plan, error) {
	p := plan{log: os.Stderr}
	var names, lives string
	quick := flag.Bool("quick", false, "measure all in small, once")
	flag.StringVar(&names, "subjects", "", "measure these alone, of minimal,yaml,go,typed,unstructured; or families,sample, which have more children, or minimal-http2")
	flag.StringVar(&lives, "scenarios", "", "measure these alone, of idle,backlog,storm,memory,restart,react,children,heal,deletion,memory20k (a storm needs a backlog, react a restart, heal children, memory one of the first two); or resync, which is measured only when it is named. Without a backlog the minimal client writes all statuses before")
	flag.IntVar(&p.objects, "n", 5000, "how many Foos there are")
	flag.IntVar(&p.size, "size", 1500, "how large the JSON of a Foo is without managedFields, in `bytes`")
	flag.IntVar(&p.parents, "parents", 2000, "how many Foos have a ConfigMap each, or a finalizer")
	flag.IntVar(&p.lost, "lost", 200, "how many of these ConfigMaps are deleted")
	flag.IntVar(&p.samples, "samples", 500, "how many changes there are one at a time")
	flag.IntVar(&p.rounds, "rounds", 3, "how often everything is measured, in alternation")
	flag.IntVar(&p.many, "many", 20000, "how many Foos of 2.45 KB there are when memory is measured with more of them")
	flag.DurationVar(&p.rest, "rest", 15*time.Second, "how long a program has nothing to do before its memory is read")
	flag.StringVar(&p.controlplane, "controlplane", "../bin/controlplane", "the program that starts a control plane")
	flag.StringVar(&p.profile, "profile", "", "write pprof profiles of all but the minimal client into this `folder`; the figures are not to be used then")
	flag.StringVar(&p.compare, "compare", "", "compare the ratios with those in this `file`, and print what has moved by more than a tenth")
	flag.StringVar(&p.baseline, "write-baseline", "", "write the ratios into this `file`")
	flag.StringVar(&p.doc, "doc", "", "put the tables into this `file`, too, as ../docs/performance.md")
	flag.StringVar(&p.part, "part", mainPart, "where in it: between the marks of this `name`")
	flag.BoolVar(&p.keep, "keep", false, "keep the folder of logs, the audit log among them")
	flag.Parse()
	if *quick {
		p.small()
	}
	var err error
	if p.subjects, err = chosen(names); err != nil {
		return p, err
	}
	p.wanted, err = scenarios(lives)
	return p, err
}

// small makes it a plan of minutes, where the command line does not say otherwise.
func (p *plan) small() {
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{
		"n": "600", "parents": "300", "lost": "50", "samples": "100", "rounds": "1", "many": "0", "rest": "3s",
	} {
		if !given[name] {
			_ = flag.Set(name, value) // they are flags, and these their values
		}
	}
}

// run prepares, measures everything and writes the tables.
func (p plan) run(ctx context.Context, out *os.File) (err error) {
	if p.dir, err = os.MkdirTemp("", "handwerk-bench-"); err != nil {
		return err
	}
	defer func() {
		switch {
		case err == nil && p.keep:
			fmt.Fprintln(p.log, "logs are in", p.dir)
		case err == nil:
			err = os.RemoveAll(p.dir)
		default:
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
	if p.from, err = p.versions(ctx, plane); err != nil {
		return err
	}
	result, err := p.measure(ctx, plane)
	if result == nil {
		return err
	}
	if err != nil { // what there is may have taken an hour, but it is not all
		result.doc, result.baseline, result.compare = "", "", ""
	}
	return errors.Join(err, result.print(out))
}

// print writes the results.
func (r *result) print(out io.Writer) error {
	text := r.write()
	if _, err := io.WriteString(out, text); err != nil {
		return err
	}
	var err error
	if r.doc != "" {
		err = insert(r.doc, r.part, text)
	}
	return errors.Join(err, r.hold(out), r.failure())
}
