// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// stream is a watch: the body of a response without a fixed end.
type stream struct {
	table    *table
	request  Request
	selector selector
	ctx      context.Context
	timeout  <-chan time.Time
	// after is the version from which on changes are sent.
	after int64

	mu      sync.Mutex
	ready   bytes.Buffer // data to read
	kept    [][]byte     // events that are held back
	held    bool
	ended   bool
	changed chan struct{} // signals a change of the fields above
}

func newStream(ctx context.Context, t *table, r Request, sel selector) *stream {
	s := &stream{table: t, request: r, selector: sel, ctx: ctx, changed: make(chan struct{}, 1)}
	if seconds, err := strconv.Atoi(r.options.Get("timeoutSeconds")); err == nil && seconds > 0 {
		s.timeout = time.After(time.Duration(seconds) * time.Second)
	}
	return s
}

// Read waits for events.
func (s *stream) Read(p []byte) (int, error) {
	for {
		if n, err := s.take(p); n > 0 || err != nil {
			return n, err
		}
		select {
		case <-s.changed:
		case <-s.timeout:
			s.end()
		case <-s.ctx.Done():
			return 0, s.ctx.Err()
		}
	}
}

func (s *stream) take(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready.Len() > 0 {
		return s.ready.Read(p)
	}
	if s.ended {
		return 0, io.EOF
	}
	return 0, nil
}

// Close ends the stream.
func (s *stream) Close() error {
	s.end()
	return nil
}

// tell sends the event of a change to a watch with a selector.
func (s *stream) tell(c change) {
	key := keyOf(c.object)
	if s.request.Namespace != "" && s.request.Namespace != key.Namespace || c.version <= s.after {
		return
	}
	was, is := s.selector.matches(c.before), s.selector.matches(c.object) && c.what != deleted
	switch {
	case was && is:
		s.send(modified, c.object)
	case is:
		s.send(added, c.object)
	case was:
		gone := c.before.DeepCopy()
		gone.SetResourceVersion(strconv.FormatInt(c.version, 10))
		s.send(deleted, gone)
	}
}

func (s *stream) send(what eventType, o *unstructured.Unstructured) {
	s.push(string(what), present(s.table, s.request, o))
}

// bookmark says that the initial objects have been sent.
func (s *stream) bookmark(version int64) {
	s.push("BOOKMARK", present(s.table, s.request, &unstructured.Unstructured{Object: map[string]any{
		"kind": s.table.kind,
		"metadata": map[string]any{
			"resourceVersion": strconv.FormatInt(version, 10),
			"annotations":     map[string]any{metav1.InitialEventsAnnotationKey: "true"},
		},
	}}))
}

// expired tells the client to list again, and ends the stream.
func (s *stream) expired() {
	s.hold(false)
	s.push("ERROR", statusOf(apierrors.NewResourceExpired("too old resource version")))
	s.end()
}

func (s *stream) push(what string, object any) {
	line, err := json.Marshal(map[string]any{"type": what, "object": object})
	if err != nil {
		panic(fmt.Sprintf("apiserver: encoding an event: %v", err)) // not reached: it came as JSON
	}
	s.update(func() {
		switch {
		case s.ended:
		case s.held:
			s.kept = append(s.kept, line)
		default:
			s.ready.Write(line)
		}
	})
}

func (s *stream) hold(held bool) {
	s.update(func() {
		s.held = held
		if !held {
			s.ready.Write(bytes.Join(s.kept, nil))
			s.kept = nil
		}
	})
}

// drop drops the held events.
func (s *stream) drop() { s.update(func() { s.kept = nil }) }

func (s *stream) end() { s.update(func() { s.ended = true }) }

func (s *stream) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

func (s *stream) update(change func()) {
	s.mu.Lock()
	change()
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}
