// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// starting starts a fresh server for a test.
type starting func(context.Context) (*Server, error)

// kubectl runs Kubernetes' own tests of kubectl's commands. A test may need controllers, or Pods that stay Pending, or may need that
// there are no controllers: it passes on a server if it does with one of these.
func kubectl(ctx context.Context, s Servers) (Report, error) {
	tests, err := s.commandTests(ctx)
	if err != nil {
		return Report{}, err
	}
	names := slices.DeleteFunc(slices.Clone(tests.functions), func(name string) bool { return !s.Selected(name) })
	onSandbox, err := s.either(ctx, tests, names,
		func(ctx context.Context) (*Server, error) { return s.Sandbox(ctx) },
		func(ctx context.Context) (*Server, error) { return s.holding(ctx, "pods") },
		func(ctx context.Context) (*Server, error) { return s.Sandbox(ctx, "--no-workloads") })
	if err != nil {
		return Report{}, err
	}
	if s.Remeasure {
		if err := s.remeasureKubectl(ctx, tests, names); err != nil {
			return Report{}, err
		}
	}
	real, err := s.readKnown("kubectl")
	if err != nil {
		return Report{}, err
	}
	out := Report{Title: "kubectl's command tests (" + real.About + ")"}
	for _, name := range names {
		out.Cases = append(out.Cases, Case{Name: name, Real: real.Passes[name], Sandbox: onSandbox[name].passes, Why: onSandbox[name].why})
	}
	return out, nil
}

// remeasureKubectl runs the tests on real servers, and keeps which of them pass.
func (s Servers) remeasureKubectl(ctx context.Context, tests commandTests, names []string) error {
	results, err := s.either(ctx, tests, names,
		func(ctx context.Context) (*Server, error) { return s.Real(ctx, "") },
		func(ctx context.Context) (*Server, error) { return s.Real(ctx, "scheduler,kwok") },
		func(ctx context.Context) (*Server, error) { return s.Real(ctx, "kcm,scheduler,kwok") })
	if err != nil {
		return err
	}
	out := known{
		About:  fmt.Sprintf("Kubernetes %s, real server measured on %s", kubernetesVersion, time.Now().Format(time.DateOnly)),
		Passes: map[string]bool{},
	}
	for name, result := range results {
		out.Passes[name] = result.passes
	}
	return s.writeKnown("kubectl", out)
}

// either runs tests on servers of one kind, and runs failed tests again on servers of the next kind. A test that fails on all
// kinds has the result of the first.
func (s Servers) either(ctx context.Context, tests commandTests, names []string, kinds ...starting) (map[string]result, error) {
	out := map[string]result{}
	for _, start := range kinds {
		results, err := s.each(ctx, names, func(ctx context.Context, name string) (result, error) {
			return s.test(ctx, tests, name, start)
		})
		if err != nil {
			return nil, err
		}
		var failed []string
		for i, name := range names {
			if _, again := out[name]; !again || results[i].passes {
				out[name] = results[i]
			}
			if !results[i].passes {
				failed = append(failed, name)
			}
		}
		names = failed
	}
	return out, nil
}

// each calls a function for each name, some at once, and returns the results in the order of the names.
func (s Servers) each(ctx context.Context, names []string, do func(context.Context, string) (result, error)) ([]result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out, slots := make([]result, len(names)), make(chan struct{}, max(1, s.Parallel))
	var work sync.WaitGroup
	for i, name := range names {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		work.Go(func() {
			defer func() { <-slots }()
			var err error
			if out[i], err = do(ctx, name); err != nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	work.Wait()
	return out, context.Cause(ctx)
}

// test runs a test against a fresh server.
func (s Servers) test(ctx context.Context, tests commandTests, name string, start starting) (result, error) {
	began := time.Now()
	v, err := start(ctx)
	if err != nil {
		return result{}, err
	}
	defer v.Stop()
	out, err := tests.run(ctx, v, name)
	if err != nil {
		return out, err
	}
	word := "passes"
	if !out.passes {
		word = "fails at " + out.why
	}
	fmt.Fprintf(os.Stderr, "%s %s (%s)\n", name, word, time.Since(began).Round(time.Second))
	return out, ctx.Err()
}

// result is what came of a test.
type result struct {
	passes bool
	// why is the first failed line, how many more there are, and the words of the test.
	why string
}

// resultOf reads the log of a test.
func resultOf(log string) result {
	colors := regexp.MustCompile(`\x1b[\[(][0-9;]*[A-Za-z]`)
	var failed []string
	var words string
	lines := strings.Split(colors.ReplaceAllString(log, ""), "\n")
	for i, line := range lines {
		at, isFailure := strings.CutPrefix(line, "@@FAILED ")
		switch {
		case line == "@@END" && len(failed) == 0:
			return result{passes: true}
		case line == "@@END":
			more := ""
			if len(failed) > 1 {
				more = fmt.Sprintf(" and %d more", len(failed)-1)
			}
			return result{why: failed[0] + more + words}
		case isFailure && !strings.HasPrefix(at, "test.sh"):
			if failed = append(failed, at); len(failed) == 1 {
				words = wordsOf(lines[max(0, i-8):i])
			}
		}
	}
	return result{why: strings.Join(append([]string{"did not come to its end"}, failed...), ", ")}
}

// isMark reports whether a line is one of the driver's, not of the test.
func isMark(line string) bool { return strings.HasPrefix(line, "@@") }

// wordsOf returns what the lines before a failure say of it, in one line.
func wordsOf(lines []string) string {
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.Contains(lines[i], "FAIL!") || strings.HasPrefix(strings.ToLower(lines[i]), "error") {
			text := strings.Join(strings.Fields(strings.Join(slices.DeleteFunc(slices.Clone(lines[i:]), isMark), " ")), " ")
			return ": " + text[:min(len(text), 200)]
		}
	}
	return ""
}
