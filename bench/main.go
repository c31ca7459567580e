// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command bench measures operators that are run by Handwerk against a hand-written minimal client and against
// controller-runtime, all against the same real API server and in alternation, and prints a Markdown table. With -against it
// compares Handwerk with an earlier commit, and says what has moved. docs/performance.md says what the rows mean.
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
	var names, wanted string
	flag.StringVar(&names, "subjects", "minimal,yaml,go,typed", "measure these; ratios are to the first one")
	flag.StringVar(&wanted, "scenarios", "idle,backlog,restart,children,deletion", "measure them in these")
	flag.IntVar(&p.objects, "n", usual, "how many Foos there are; two fifths of this number change in a storm, have a ConfigMap each, or a finalizer")
	flag.IntVar(&p.size, "size", 1500, "how large the JSON of a Foo is without managedFields, in `bytes`")
	flag.IntVar(&p.rounds, "rounds", 3, "how often everything is measured, in alternation")
	flag.DurationVar(&p.rest, "rest", 10*time.Second, "how long a program has nothing to do before its memory is read")
	flag.StringVar(&p.against, "against", "", "measure Handwerk in YAML as it is at this `commit` and as it is here, in pairs, and say what has moved")
	flag.StringVar(&p.profile, "profile", "", "write pprof profiles of Handwerk in YAML into this `folder`; the figures are not to be used then")
	flag.StringVar(&p.doc, "doc", "", "put the table into this `file`, too, as ../docs/performance.md, between the marks of as many and as large Foos")
	flag.Parse()
	var err error
	if p.subjects, err = chosen(names); err != nil {
		return p, err
	}
	if p.against != "" {
		p.subjects = paired(p.against)
	}
	p.scenarios, err = named(wanted)
	return p, err
}

// run prepares, measures everything and writes the table.
func (p plan) run(ctx context.Context, out io.Writer) (err error) {
	if p.dir, err = os.MkdirTemp("", "handwerk-bench-"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w (logs are in %s)", err, p.dir)
			return
		}
		err = os.RemoveAll(p.dir)
	}()
	if p.profile != "" {
		if err = os.MkdirAll(p.profile, 0o755); err != nil {
			return err
		}
	}
	if err = p.build(ctx); err != nil {
		return err
	}
	plane, err := startPlane(ctx, filepath.Join(p.dir, "plane"))
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
	if err != nil { // what there is may have taken long, but it is not all
		result.doc = ""
	}
	return errors.Join(err, result.print(out))
}

// print writes the results.
func (r *result) print(out io.Writer) error {
	text := r.table()
	if r.against != "" {
		text += r.moves()
	}
	if _, err := io.WriteString(out, text); err != nil {
		return err
	}
	var err error
	if r.doc != "" {
		err = insert(r.doc, fmt.Sprintf("%d Foos of %d bytes", r.objects, r.size), text)
	}
	return errors.Join(err, r.failure())
}
