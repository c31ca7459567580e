// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// follower watches the status of all Foos and knows when the last one follows.
type follower struct {
	foos  *foos
	stop  context.CancelFunc
	ended chan struct{}

	mu       sync.Mutex
	reported map[string]int64 // what each Foo's status says, -1 for nothing
	count    map[int64]int    // how many Foos report that
	last     time.Time        // of the last event
	news     chan struct{}    // closed with each event that changed the count
	err      error
}

// follow begins to follow; close must be called in the end.
func (f *foos) follow(ctx context.Context) (*follower, error) {
	ctx, stop := context.WithCancel(ctx)
	w := &follower{foos: f, stop: stop, ended: make(chan struct{}), reported: map[string]int64{}, count: map[int64]int{}, news: make(chan struct{})}
	go w.run(ctx)
	return w, w.until(ctx, func() bool { return len(w.reported) == f.count })
}

func (w *follower) close() {
	w.stop()
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

func (w *follower) run(ctx context.Context) {
	defer close(w.ended)
	// Without a version the server begins with everything that is there.
	version, err := "", error(nil)
	for err == nil {
		version, err = w.watch(ctx, version)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = fmt.Errorf("following Foos: %w", err)
	w.tell()
}

// asTable asks for the columns that kubectl shows. The server keeps what it encodes for one
// watcher for others that ask for the same; it must not be this one that saves either program's
// encoding.
const asTable = "application/json;as=Table;g=meta.k8s.io;v=v1"

// tableEvent is an event of such a watch. The cells of a row are name, Deployment, replicas and
// available replicas.
type tableEvent struct {
	Type   string
	Object struct {
		Metadata struct{ ResourceVersion string }
		Rows     []struct{ Cells []any }
		Message  string
	}
}

// watch watches from a version on until the server ends the watch, as it does when it is busy, and
// returns the version of the last event.
func (w *follower) watch(ctx context.Context, version string) (string, error) {
	stream, err := w.foos.client.Get().AbsPath(w.foos.path).SetHeader("Accept", asTable).
		Param("watch", "true").Param("includeObject", "None").Param("resourceVersion", version).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	events := json.NewDecoder(stream)
	for {
		var event tableEvent
		if err := events.Decode(&event); err != nil {
			return version, ctx.Err()
		}
		if event.Type == "ERROR" {
			return "", errors.New(event.Object.Message)
		}
		version = event.Object.Metadata.ResourceVersion
		for _, row := range event.Object.Rows {
			if len(row.Cells) != 4 {
				return "", fmt.Errorf("a row has the cells %v", row.Cells)
			}
			w.note(row.Cells[0], row.Cells[3])
		}
	}
}

func (w *follower) note(cell, replicas any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name, _ := cell.(string)
	now := int64(-1)
	if n, ok := replicas.(float64); ok {
		now = int64(n)
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
	w.tell()
}

func (w *follower) tell() {
	close(w.news)
	w.news = make(chan struct{})
}
