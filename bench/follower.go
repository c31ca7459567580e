// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// follower watches the status of all Foos and knows when the last one follows.
type follower struct {
	stream io.ReadCloser
	ended  chan struct{}

	mu       sync.Mutex
	reported map[string]int64 // what each Foo's status says, -1 for nothing
	count    map[int64]int    // how many Foos report that
	last     time.Time        // of the last event
	news     chan struct{}    // closed with each event that changed the count
	err      error
}

// follow begins to follow; close must be called in the end.
func (f *foos) follow(ctx context.Context) (*follower, error) {
	// Without a version the server begins with everything that is there.
	stream, err := f.client.Get().AbsPath(path).Param("watch", "true").Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("following Foos: %w", err)
	}
	w := &follower{stream: stream, ended: make(chan struct{}), reported: map[string]int64{}, count: map[int64]int{}, news: make(chan struct{})}
	go w.run()
	return w, w.until(ctx, func() bool { return len(w.reported) == f.count })
}

func (w *follower) close() {
	w.stream.Close()
	<-w.ended
}

// reach waits until that many Foos report that many replicas and returns when they did.
func (w *follower) reach(ctx context.Context, foos int, replicas int64) (time.Time, error) {
	err := w.until(ctx, func() bool { return w.count[replicas] == foos })
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last, err
}

// until waits until something holds, which is asked under the lock.
func (w *follower) until(ctx context.Context, holds func() bool) error {
	for {
		w.mu.Lock()
		done, err, news := holds(), w.err, w.news
		w.mu.Unlock()
		if done || err != nil {
			return err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (w *follower) run() {
	defer close(w.ended)
	events := json.NewDecoder(w.stream)
	for {
		var event struct {
			Object struct {
				Metadata struct{ Name string }
				Status   struct{ AvailableReplicas *int64 }
			}
		}
		err := events.Decode(&event)
		w.mu.Lock()
		if err != nil {
			w.err = fmt.Errorf("following Foos: %w", err)
			if errors.Is(err, io.EOF) {
				w.err = errors.New("following Foos: the server ended the watch")
			}
			close(w.news)
			w.news = make(chan struct{})
			w.mu.Unlock()
			return
		}
		w.note(event.Object.Metadata.Name, event.Object.Status.AvailableReplicas)
		w.mu.Unlock()
	}
}

func (w *follower) note(name string, replicas *int64) {
	now := int64(-1)
	if replicas != nil {
		now = *replicas
	}
	before, known := w.reported[name]
	if known && before == now {
		return
	}
	if known {
		w.count[before]--
	}
	w.reported[name] = now
	w.count[now]++
	w.last = time.Now()
	close(w.news)
	w.news = make(chan struct{})
}
