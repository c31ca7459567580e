// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// progress writes the answers of a worker.
type progress struct {
	mu  sync.Mutex
	out *json.Encoder
}

// write writes an answer. Nobody reads it if that fails, so the process ends.
func (p *progress) write(a Answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.out.Encode(a); err != nil {
		fmt.Fprintln(os.Stderr, "reporting:", err)
		os.Exit(1)
	}
}

// tick is the time between two answers about the progress, by the clock of the machine.
const tick = 500 * time.Millisecond

// watch writes how many objects were seen until the returned function is called. It is called outside of the bubble, whose
// time does not pass while there is something to do.
func (p *progress) watch(seen *atomic.Int64) (end func()) {
	ended := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-time.After(tick):
				p.write(Answer{Seen: seen.Load()})
			case <-ended:
				return
			}
		}
	})
	return func() {
		close(ended)
		running.Wait()
	}
}

// Bar shows the progress of a plan in the last line of a terminal.
type Bar struct {
	// Out is the terminal; nil shows nothing.
	Out io.Writer
}

// show shows how many objects were seen.
func (b Bar) show(seen int64) {
	if b.Out != nil && seen > 0 {
		fmt.Fprintf(b.Out, "\rhandlers have run for %d objects", seen)
	}
}

// clear removes the line.
func (b Bar) clear() {
	if b.Out != nil {
		fmt.Fprint(b.Out, "\r\x1b[K")
	}
}
