// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// suite is a set of cases that were written for real servers.
type suite struct {
	name string
	run  func(ctx context.Context, s Servers) (Report, error)
}

func suites() []suite {
	return []suite{
		{"kubectl", kubectl},
		{"controller-runtime", specs},
		{"questions", questions},
		{"fuzz", fuzz},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "likeness:", err)
		os.Exit(1)
	}
}

// run runs the suites that the arguments name, or all, and prints their reports.
func run(ctx context.Context, args []string) (err error) {
	set := flag.NewFlagSet("likeness", flag.ContinueOnError)
	root := set.String("root", "../..", "the `folder` of the repository")
	only := set.String("run", "", "run the cases whose names match this `regexp`")
	real := set.Bool("real", false, "measure the real server anew, and keep what it does")
	keep := set.Bool("keep", false, "keep the scratch folder with the logs of the cases")
	operator := set.String("operator", "", "the operator `program`; by default it is built")
	duration := set.Duration("for", 10*time.Minute, "how long the suite fuzz runs")
	seed := set.Uint64("seed", uint64(time.Now().UnixNano()), "what the suite fuzz sends: the same seed gives the same requests")
	parallel := set.Int("parallel", 2, "how many cases run at once, if a suite can")
	if err := set.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(set.Args())
	if err != nil {
		return err
	}
	s := Servers{Remeasure: *real, Parallel: *parallel, Fuzzing: fuzzing{*duration, *seed}, operator: *operator}
	if s.only, err = regexp.Compile(*only); err != nil {
		return fmt.Errorf("reading -run: %w", err)
	}
	if s.root, err = filepath.Abs(*root); err != nil {
		return err
	}
	if s.Dir, err = os.MkdirTemp("", "likeness-"); err != nil {
		return err
	}
	if *keep {
		fmt.Fprintln(os.Stderr, "logs are in", s.Dir)
	} else {
		defer os.RemoveAll(s.Dir)
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	return s.runAll(ctx, chosen)
}

// choose returns the suites of these names, or all if there are none.
func choose(names []string) (out []suite, err error) {
	all := suites()
	if len(names) == 0 {
		return all, nil
	}
	for _, name := range names {
		i := slices.IndexFunc(all, func(s suite) bool { return s.name == name })
		if i < 0 {
			var known []string
			for _, s := range all {
				known = append(known, s.name)
			}
			return nil, fmt.Errorf("suite %s is unknown; there are %s", name, strings.Join(known, ", "))
		}
		out = append(out, all[i])
	}
	return out, nil
}

// runAll runs one suite after the other, each in a folder of its own.
func (s Servers) runAll(ctx context.Context, chosen []suite) error {
	dir := s.Dir
	for _, each := range chosen {
		s.Dir = filepath.Join(dir, each.name)
		if err := os.MkdirAll(s.Dir, 0o755); err != nil {
			return err
		}
		report, err := each.run(ctx, s)
		if err != nil {
			return fmt.Errorf("running suite %s: %w", each.name, err)
		}
		report.print(os.Stdout)
	}
	return nil
}
