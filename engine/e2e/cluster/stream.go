// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Hold holds back events of watch streams.
type Hold struct {
	proxy    *Proxy
	match    Match
	open     chan struct{}
	withheld map[*stream]struct{}
}

// HoldWatches holds back the events of matching watch streams, open and future ones, until it is released. Nothing is lost
// or reordered. Other requests have the current state.
func (p *Proxy) HoldWatches(match Match) *Hold {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := &Hold{proxy: p, match: match, open: make(chan struct{}), withheld: map[*stream]struct{}{}}
	p.holds = append(p.holds, h)
	return h
}

// Await waits until that many streams have held events.
func (h *Hold) Await(t testing.TB, streams int) {
	t.Helper()
	h.proxy.await(t, "withheld events", func() bool {
		h.proxy.mu.Lock()
		defer h.proxy.mu.Unlock()
		return len(h.withheld) >= streams
	})
}

// Release releases the events. It may be called more than once.
func (h *Hold) Release() {
	h.proxy.mu.Lock()
	defer h.proxy.mu.Unlock()
	if slices.Contains(h.proxy.holds, h) {
		h.proxy.holds = slices.DeleteFunc(h.proxy.holds, func(each *Hold) bool { return each == h })
		close(h.open)
	}
}

// CutWatches ends the matching open watch streams in an orderly way, as the API server does from time to time. Their held
// events are lost. It returns the number of streams.
func (p *Proxy) CutWatches(match Match) int { return p.cut(match, nil) }

// ExpireWatches ends the matching open watch streams as CutWatches does, but with a last event "410 Gone": their resource version
// is too old, so the client must list again.
func (p *Proxy) ExpireWatches(match Match) int {
	expired := apierrors.NewResourceExpired("too old resource version").Status()
	expired.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	last, _ := json.Marshal(map[string]any{"type": "ERROR", "object": expired}) // plain data
	return p.cut(match, append(last, '\n'))
}

func (p *Proxy) cut(match Match, last []byte) (count int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.streams {
		if !s.cut && match(s.exchange.Request) {
			s.last, s.cut = last, true
			s.exchange.end()
			count++
		}
	}
	return count
}

// modify replaces the body of a watch's response by a stream.
func (p *Proxy) modify(answer *http.Response) error {
	x, _ := answer.Request.Context().Value(exchangeKey{}).(*Exchange)
	if x == nil || x.Verb != "watch" || answer.StatusCode != http.StatusOK {
		return nil
	}
	s := &stream{proxy: p, exchange: x, ctx: answer.Request.Context(), body: answer.Body}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams[s] = struct{}{}
	answer.Body = s
	return nil
}

// stream is the body of one watch.
type stream struct {
	proxy    *Proxy
	exchange *Exchange
	ctx      context.Context // of the exchange
	body     io.ReadCloser

	cut  bool // under the proxy's lock, as is last
	last []byte
}

// Read continues when nothing is held and the stream is not cut. Data that has arrived already waits, too.
func (s *stream) Read(into []byte) (int, error) {
	n, err := s.body.Read(into)
	if n > 0 {
		s.pass()
	}
	s.proxy.mu.Lock()
	defer s.proxy.mu.Unlock()
	if s.cut {
		return copy(into, s.last), io.EOF
	}
	return n, err
}

// pass waits while the stream is held.
func (s *stream) pass() {
	for {
		hold := s.holding()
		if hold == nil {
			return
		}
		select {
		case <-hold.open:
		case <-s.ctx.Done():
			return
		}
	}
}

func (s *stream) holding() *Hold {
	s.proxy.mu.Lock()
	defer s.proxy.mu.Unlock()
	for _, h := range s.proxy.holds {
		if h.match(s.exchange.Request) {
			h.withheld[s] = struct{}{}
			s.proxy.changed.raise()
			return h
		}
	}
	return nil
}

// Close ends the watch.
func (s *stream) Close() error {
	s.proxy.mu.Lock()
	delete(s.proxy.streams, s)
	for _, h := range s.proxy.holds {
		delete(h.withheld, s)
	}
	s.proxy.mu.Unlock()
	return s.body.Close()
}
