// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// glance is the time between two looks at the metrics of a program that reports by them alone. A look costs the program
// about a millisecond of processor time, which counts as its own.
const glance = 50 * time.Millisecond

// lookedAll waits until the program has looked at so many objects and returns when it had.
func (p *process) lookedAll(ctx context.Context, objects int) (time.Time, error) {
	ctx, done := p.while(ctx)
	defer done()
	if p.metrics == "" {
		select {
		case <-p.looked:
			return p.lookedAt, nil
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		}
	}
	for {
		runs, err := p.runs(ctx)
		if err == nil && runs >= objects {
			return time.Now(), nil
		}
		if err := pause(ctx, glance); err != nil {
			return time.Time{}, err // while it starts, its metrics are not there
		}
	}
}

// runs is how many times the program's handlers have run.
func (p *process) runs(ctx context.Context) (int, error) {
	data, err := fetched(ctx, "http://"+p.metrics+"/metrics?name[]=handwerk_handler_runs_total")
	if err != nil {
		return 0, err
	}
	sum := 0
	for line := range strings.Lines(string(data)) {
		if series, value, found := strings.Cut(line, "} "); found && strings.HasPrefix(series, "handwerk_handler_runs_total{") {
			var n float64
			if _, err := fmt.Sscan(value, &n); err != nil {
				return 0, fmt.Errorf("reading metrics: %w", err)
			}
			sum += int(n)
		}
	}
	return sum, nil
}

func fetched(ctx context.Context, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New(answer.Status)
	}
	return io.ReadAll(answer.Body)
}

// profileFor is how long the processor profiles are, in seconds, of programs that are asked for them while they run.
const profileFor = 8

// profiling are the profiles of a program that serves them: of the processor from its start on, and in the end of the
// heap.
type profiling struct {
	ctx             context.Context
	address, prefix string
	done            chan struct{}
}

func profiled(ctx context.Context, address, prefix string) *profiling {
	p := &profiling{ctx, address, prefix, make(chan struct{})}
	go func() {
		defer close(p.done)
		p.write(".cpu.pprof", fmt.Sprintf("profile?seconds=%d", profileFor))
	}()
	return p
}

// finish writes what is left to write; the program must still run.
func (p *profiling) finish() {
	<-p.done
	p.write(".heap.pprof", "heap?gc=1")
}

func (p *profiling) write(name, path string) {
	ctx, cancel := context.WithTimeout(p.ctx, 2*profileFor*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		data, err := fetched(ctx, "http://"+p.address+"/debug/pprof/"+path)
		if err == nil {
			_ = os.WriteFile(p.prefix+name, data, 0o600) // who asked for it sees that it is not there
			return
		}
		_ = pause(ctx, glance) // the program is about to serve, or has ended
	}
}
