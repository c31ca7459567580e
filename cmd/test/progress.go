// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/sandbox/cases"
)

// patience is the time for which nobody needs to see progress, and period the time between two lines about it.
const (
	patience = 2 * time.Second
	period   = 200 * time.Millisecond
)

// clearLine makes a terminal forget its line.
const clearLine = "\r\x1b[K"

// progress keeps a line of a terminal that says how far the cases are. Its methods are safe for use by several goroutines.
type progress struct {
	out  io.Writer
	stop chan struct{}
	done sync.WaitGroup

	mu            sync.Mutex
	ended, failed int
	file          string
}

// newProgress returns a progress that shows itself until end. Without a terminal it shows nothing.
func newProgress(out io.Writer) *progress {
	p := &progress{out: out, stop: make(chan struct{})}
	if out != nil {
		p.done.Go(p.show)
	}
	return p
}

// show writes the line again and again.
func (p *progress) show() {
	for wait := patience; ; wait = period {
		select {
		case <-p.stop:
			if wait == period {
				fmt.Fprint(p.out, clearLine)
			}
			return
		case <-time.After(wait):
			fmt.Fprint(p.out, clearLine+p.line())
		}
	}
}

// line returns the line. It is short, because a terminal that breaks it would keep its beginning.
func (p *progress) line() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	failed := ""
	if p.failed > 0 {
		failed = fmt.Sprintf(", %d failed", p.failed)
	}
	return fmt.Sprintf("%s%s  %.40s", counted(p.ended, "case"), failed, plain.Escaped(filepath.Base(p.file), ""))
}

// saw notes a report.
func (p *progress) saw(r cases.Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case r.Done:
	case r.Begins:
		p.file = r.File
	default:
		p.ended++
		if len(r.Failures) > 0 {
			p.failed++
		}
	}
}

// end takes the line away.
func (p *progress) end() {
	close(p.stop)
	p.done.Wait()
}
