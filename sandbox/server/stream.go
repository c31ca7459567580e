// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// stream is a watch: the body of a response without a fixed end.
type stream struct {
	server   *Server
	table    *table
	request  Request
	selector selector
	ctx      context.Context
	timeout  <-chan time.Time
	// after is the version from which on changes are sent.
	after int64
	// ticks say when a bookmark is due; nil if none ever is. Beat is the time between two.
	ticks *time.Ticker
	beat  time.Duration
	// left is encoded and not read. It is a piece of part, which is one of the server's; nil if nothing is left of it.
	left []byte
	part *[]byte

	mu    sync.Mutex
	ready []item // events to read
	kept  []item // events that are held back
	// limit is how many events may wait; 0 means that there is no limit.
	limit   int
	held    bool
	ended   bool
	changed chan struct{} // signals a change of the fields above
}

// item is an event that waits for its reader. An object is encoded by the reader, from the row that all streams share.
type item struct {
	what store.EventType
	row  *store.Row
	// object is that of an event without a row.
	object any
}

func newStream(ctx context.Context, server *Server, t *table, r Request, sel selector) *stream {
	s := &stream{server: server, table: t, request: r, selector: sel, ctx: ctx, changed: make(chan struct{}, 1)}
	if seconds, err := strconv.Atoi(r.options.Get("timeoutSeconds")); err == nil && seconds > 0 {
		s.timeout = time.After(time.Duration(seconds) * time.Second)
	}
	if server.bookmarks > 0 && isTrue(r.options.Get("allowWatchBookmarks")) {
		s.beat = server.bookmarks
		s.ticks = time.NewTicker(s.beat)
	}
	return s
}

// Read waits for events.
func (s *stream) Read(p []byte) (int, error) {
	var ticks <-chan time.Time
	if s.ticks != nil {
		ticks = s.ticks.C
	}
	for {
		if n, err := s.take(p); n > 0 || err != nil {
			return n, err
		}
		select {
		case <-s.changed:
		case <-ticks:
			s.mark()
			if s.server.rarer {
				s.beat += s.beat / 5
				s.ticks.Reset(s.beat)
			}
		case <-s.timeout:
			s.end()
		case <-s.ctx.Done():
			s.end()
			return 0, s.ctx.Err()
		}
	}
}

// take returns what can be read at once.
func (s *stream) take(p []byte) (int, error) {
	if len(s.left) == 0 {
		next, ended := s.next()
		if len(next) == 0 && ended {
			return 0, io.EOF
		}
		if len(next) == 0 {
			return 0, nil
		}
		s.part = s.server.parts.Get().(*[]byte)
		part := (*s.part)[:0]
		for _, i := range next {
			part = s.encode(part, s.converted(i))
		}
		*s.part, s.left = part, part
	}
	n := copy(p, s.left)
	if s.left = s.left[n:]; len(s.left) == 0 {
		s.server.parts.Put(s.part)
		s.part = nil
	}
	return n, nil
}

// next removes the events of the next part from those that wait.
func (s *stream) next() (out []item, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	size, n := 0, 0
	for ; n < len(s.ready) && size < partSize; n++ {
		if row := s.ready[n].row; row != nil {
			size += row.Size()
		}
	}
	out, s.ready = s.ready[:n:n], s.ready[n:]
	if len(s.ready) == 0 {
		s.ready = nil
	}
	return out, s.ended
}

// converted returns an event with its object in the version of the watch. If its webhook fails, the watch ends with the error.
func (s *stream) converted(i item) item {
	if i.row == nil || !s.request.view.converts(i.row.APIVersion()) {
		return i
	}
	rows, err := s.request.view.convertRows(s.ctx, []*store.Row{i.row})
	if err != nil {
		s.end()
		return item{what: "ERROR", object: statusOf(err)}
	}
	i.row = rows[0]
	return i
}

// encode appends an event in the form that the client takes.
func (s *stream) encode(to []byte, i item) []byte {
	if s.request.shape.protobuf {
		return s.encodeProtobuf(to, i)
	}
	to = append(append(append(to, `{"type":"`...), i.what...), `","object":`...)
	if i.row != nil {
		return append(appendRow(to, s.table, s.request, i.row), "}\n"...)
	}
	object, err := json.Marshal(i.object)
	if err != nil {
		panic(fmt.Sprintf("server: encoding an event: %v", err)) // not reached: these objects are made here
	}
	return append(append(to, object...), "}\n"...)
}

// tell sends the event of a change to a watch with a selector.
func (s *stream) tell(c store.Change) {
	if s.request.Namespace != "" && s.request.Namespace != c.Row.Namespace || c.Version <= s.after {
		return
	}
	was, is := s.selector.matches(c.Before), s.selector.matches(c.Row) && c.What != store.Deleted
	switch {
	case was && is:
		s.send(store.Modified, c.Row)
	case is:
		s.send(store.Added, c.Row)
	case was:
		s.send(store.Deleted, c.Gone())
	}
}

func (s *stream) send(what store.EventType, row *store.Row) { s.push(item{what: what, row: row}) }

// mark sends a bookmark with the current version. All events before it have been sent, as changes need the server's
// lock.
func (s *stream) mark() {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if !s.table.held {
		s.bookmark(s.server.version, false)
	}
}

// bookmark says which version the stream has reached, and whether it has just sent the first objects.
func (s *stream) bookmark(version int64, first bool) {
	metadata := map[string]any{"resourceVersion": strconv.FormatInt(version, 10)}
	if first {
		metadata["annotations"] = map[string]any{metav1.InitialEventsAnnotationKey: "true"}
	}
	s.push(item{what: "BOOKMARK", object: present(s.table, s.request, &unstructured.Unstructured{
		Object: map[string]any{"kind": s.table.kind, "metadata": metadata},
	})})
}

// push adds an event. A stream with too many of them ends: its client is slow, and has to watch again.
func (s *stream) push(i item) {
	s.update(func() {
		switch {
		case s.ended:
		case s.held:
			s.kept = append(s.kept, i)
		case s.limit > 0 && len(s.ready) >= s.limit:
			s.ready, s.ended = nil, true
		default:
			s.ready = append(s.ready, i)
		}
	})
}

// allow limits the events that may wait to this many more than there are now; 0 means that there is no limit.
func (s *stream) allow(more int) {
	s.update(func() {
		if more > 0 {
			s.limit = len(s.ready) + more
		}
	})
}

func (s *stream) hold(held bool) {
	s.update(func() {
		s.held = held
		if !held {
			s.ready = append(s.ready, s.kept...)
			s.kept = nil
		}
	})
}

// drop drops the held events.
func (s *stream) drop() { s.update(func() { s.kept = nil }) }

func (s *stream) end() {
	s.update(func() { s.ended = true })
	if s.ticks != nil {
		s.ticks.Stop()
	}
}

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
