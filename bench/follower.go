// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/handwerk-dev/handwerk/bench/wire"
)

// What a follower knows of an object besides a number: that there is none, or that the object is not there.
const (
	none   int64 = -1
	absent int64 = -2
)

// follower watches one number of each object and knows when the last one is what it is wanted to be: of Foos the
// available replicas, of ConfigMaps how many data they have.
type follower struct {
	client *wire.Client
	path   string
	cell   int
	// objects is how many there are when it begins.
	objects int
	stop    context.CancelFunc
	ended   chan struct{}

	mu         sync.Mutex
	have, want map[string]int64
	missing    int           // how many objects are not as they are wanted
	gone       int           // how many deletions there were
	last       time.Time     // of the last event that changed something
	news       chan struct{} // closed with each such event
	err        error
}

// The cells of the rows that are watched.
const (
	availableCell = 3
	dataCell      = 1
)

// follow begins to follow, and knows of as many objects as there are; close must be called in the end.
func follow(ctx context.Context, client *wire.Client, path string, cell, objects int) (*follower, error) {
	ctx, stop := context.WithCancel(ctx)
	w := &follower{
		client: client, path: path, cell: cell, objects: objects, stop: stop, ended: make(chan struct{}),
		have: map[string]int64{}, want: map[string]int64{}, news: make(chan struct{}),
	}
	go w.run(ctx)
	return w, w.until(ctx, func() bool { return len(w.have) >= objects })
}

func (w *follower) close() {
	w.stop()
	<-w.ended
}

// wants says what an object is to be.
func (w *follower) wants(name string, value int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.set(name, func() { w.want[name] = value })
}

// wantsAll says what all Foos are to be.
func (w *follower) wantsAll(count int, value int64) {
	for i := range count {
		w.wants(nameOf(i), value)
	}
}

// set changes what an object is or is to be; mu must be held.
func (w *follower) set(name string, change func()) {
	if w.differs(name) {
		w.missing--
	}
	change()
	if w.differs(name) {
		w.missing++
	}
}

func (w *follower) differs(name string) bool {
	want, wanted := w.want[name]
	have, known := w.have[name]
	if !known {
		have = absent
	}
	return wanted && want != have
}

// reach waits until everything is as it is wanted and returns when it came to be so.
func (w *follower) reach(ctx context.Context) (time.Time, error) {
	err := w.until(ctx, func() bool { return w.missing == 0 })
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		err = fmt.Errorf("waiting for %d of %d objects: %w", w.missing, len(w.want), err)
	}
	return w.last, err
}

// complete says whether all that were there in the beginning are known.
func (w *follower) complete() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.have) >= w.objects
}

// deletions is how many there were.
func (w *follower) deletions() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gone
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
	// Without a version the server begins with everything that is there, in no order of versions: the largest one is that
	// to go on from once all are known.
	version, err := 0, error(nil)
	for err == nil {
		version, err = w.watch(ctx, version)
		if !w.complete() {
			version = 0
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = fmt.Errorf("following %s: %w", w.path, err)
	w.notify()
}

// asTable asks for the columns that kubectl shows. The server keeps what it encodes for one watcher for others that ask
// for the same; it must not be this one that saves a subject's encoding.
const asTable = "application/json;as=Table;g=meta.k8s.io;v=v1"

// tableEvent is an event of such a watch. The first cell of a row is the object's name.
type tableEvent struct {
	Type   string
	Object struct {
		Metadata struct{ ResourceVersion string }
		Rows     []struct{ Cells []any }
		Message  string
	}
}

// watch watches from a version on until the server ends the watch, as it does when it is busy, and returns the version
// of the last event.
func (w *follower) watch(ctx context.Context, version int) (int, error) {
	target := w.path + "?watch=true&includeObject=None"
	if version > 0 {
		target += "&resourceVersion=" + strconv.Itoa(version)
	}
	frames, err := w.client.Watch(ctx, target, asTable)
	if err != nil {
		return 0, err
	}
	defer frames.Close()
	for {
		frame, err := frames.Next()
		if errors.Is(err, io.EOF) {
			return version, ctx.Err()
		}
		if err != nil {
			return 0, err
		}
		var event tableEvent
		if err := json.Unmarshal(frame, &event); err != nil {
			return 0, err
		}
		if event.Type == "ERROR" {
			return 0, errors.New(event.Object.Message)
		}
		now, err := strconv.Atoi(event.Object.Metadata.ResourceVersion)
		if err != nil {
			return 0, err
		}
		version = max(version, now)
		for _, row := range event.Object.Rows {
			w.see(row.Cells, event.Type == "DELETED")
		}
	}
}

// see notes what a row says.
func (w *follower) see(cells []any, deleted bool) {
	if len(cells) <= w.cell {
		return
	}
	name, _ := cells[0].(string)
	now := none
	if n, ok := cells[w.cell].(float64); ok {
		now = int64(n)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if deleted {
		now = absent
		w.gone++
	}
	if before, known := w.have[name]; known && before == now {
		return
	}
	w.set(name, func() { w.have[name] = now })
	w.last = time.Now()
	w.notify()
}

func (w *follower) notify() {
	close(w.news)
	w.news = make(chan struct{})
}
