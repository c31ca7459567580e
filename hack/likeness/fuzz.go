// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"
)

// fuzzing are the settings of the suite fuzz.
type fuzzing struct {
	// duration is how long it runs, and seed chooses what it sends.
	duration time.Duration
	seed     uint64
}

// fuzz sends generated requests to the sandbox and to a real server, in sequences that have a namespace of their own, and compares
// the answers. It reduces each new difference to the fewest requests, and prints it as a row of the table of likeness.
func fuzz(ctx context.Context, s Servers) (Report, error) {
	real, err := s.quietReal(ctx)
	if err != nil {
		return Report{}, err
	}
	defer real.Stop()
	sandbox, err := s.quietSandbox(ctx)
	if err != nil {
		return Report{}, err
	}
	defer sandbox.Stop()
	excuses, err := readExcuses()
	if err != nil {
		return Report{}, err
	}
	f := &fuzzer{real: connect(real), sandbox: connect(sandbox), excuses: excuses, run: fmt.Sprintf("f%x", time.Now().Unix()&0xffff)}
	if err := f.prepare(ctx); err != nil {
		return Report{}, err
	}
	return f.loop(ctx, s.Fuzzing)
}

// fuzzer compares two servers.
type fuzzer struct {
	real, sandbox connection
	excuses       []excuse
	// run is the prefix of the names of the namespaces, and sequences how many there were.
	run       string
	sequences int
	// requests is how many requests were compared, and found the differences so far, by what they are.
	requests int
	found    map[string]bool
}

// loop runs sequences until the time is over.
func (f *fuzzer) loop(ctx context.Context, settings fuzzing) (Report, error) {
	fmt.Fprintf(os.Stderr, "the seed is %d\n", settings.seed)
	f.found = map[string]bool{}
	out := Report{}
	random := rand.New(rand.NewPCG(settings.seed, 0))
	for end := time.Now().Add(settings.duration); time.Now().Before(end) && ctx.Err() == nil; {
		sequence := generate(random)
		difference, err := f.compare(ctx, sequence)
		if err != nil {
			return out, err
		}
		if difference == nil || f.found[difference.kind()] {
			continue
		}
		sequence, difference, err = f.reduce(ctx, sequence, difference)
		if err != nil {
			return out, err
		}
		if !f.found[difference.kind()] {
			fmt.Fprintln(os.Stderr, row(sequence, difference))
			out.Cases = append(out.Cases, Case{Name: sequence[len(sequence)-1].String(), Real: true, Why: strings.Join(difference.lines, "; ")})
		}
		f.found[difference.kind()] = true
	}
	out.Title = fmt.Sprintf("%d generated requests in %d sequences, seed %d, %d differences", f.requests, f.sequences, settings.seed, len(out.Cases))
	return out, ctx.Err()
}

// difference is where the answers of the servers to a sequence begin to differ.
type difference struct {
	// step is the number of the request.
	step    int
	request request
	lines   []string
}

// kind returns a text that differences for one reason have in common: the fields that differ, and how.
func (d *difference) kind() string {
	if len(d.lines) == 0 {
		return ""
	}
	verb, _, _ := strings.Cut(d.request.String(), " ")
	return verb + " " + resourceOf(d.request.path) + " " + general(d.lines[0])
}

// compare sends a sequence to both servers, and returns the first difference without an excuse, or nil.
func (f *fuzzer) compare(ctx context.Context, sequence []request) (*difference, error) {
	f.sequences++
	namespace := fmt.Sprintf("%s-%d", f.run, f.sequences)
	real, err := f.start(ctx, f.real, namespace)
	if err != nil {
		return nil, err
	}
	sandbox, err := f.start(ctx, f.sandbox, namespace)
	if err != nil {
		return nil, err
	}
	for i, r := range sequence {
		f.requests++
		want, err := real.send(ctx, r)
		if err != nil {
			return nil, err
		}
		got, err := sandbox.send(ctx, r)
		if err != nil {
			return nil, err
		}
		if lines := f.unexcused(r, differences(want, got)); len(lines) > 0 {
			return &difference{i, r, lines}, f.finish(ctx, namespace)
		}
	}
	return nil, f.finish(ctx, namespace)
}

// reduce returns the shortest sequence that it finds which still has a difference of the kind.
func (f *fuzzer) reduce(ctx context.Context, sequence []request, d *difference) ([]request, *difference, error) {
	kind, sequence := d.kind(), sequence[:d.step+1]
	for again := true; again; {
		again = false
		for _, smaller := range reductions(sequence) {
			next, err := f.compare(ctx, smaller)
			if err != nil {
				return sequence, d, err
			}
			if next != nil && next.kind() == kind {
				sequence, d, again = smaller[:next.step+1], next, true
				break
			}
		}
	}
	return sequence, d, nil
}
