// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cached"
	"github.com/handwerk-dev/handwerk/engine/transport"
)

// session is what one run of a daemon has of the engine.
type session struct {
	*life
	span *transport.Span
	log  logr.Logger
}

var _ dsl.Live = (*session)(nil)

// Current returns the object as it is known now.
func (s *session) Current() *unstructured.Unstructured {
	o := s.Newest()
	view := s.crew.settings.Host.View(s.handler, o)
	s.crew.mu.Lock()
	defer s.crew.mu.Unlock()
	version := o.GetResourceVersion()
	if !older(version, s.knows) { // of two that ask at once, the other one may have come first
		s.seen = view
	}
	if !atMost(version, s.knows) {
		s.knows = version
	}
	return o
}

// Changes gets a value after the object has changed.
func (s *session) Changes() <-chan struct{} { return s.changes }

// Stop is why the daemon is to stop.
func (s *session) Stop() dsl.Stop {
	s.crew.mu.Lock()
	defer s.crew.mu.Unlock()
	return s.why
}

// Send writes what a patch asks for.
func (s *session) Send(ctx context.Context, p *dsl.Patch) error {
	ctx, done, err := s.span.Write(ctx)
	if err != nil {
		return err
	}
	defer done()
	s.writing.Lock()
	defer s.writing.Unlock()
	base := s.Newest()
	s.crew.mu.Lock()
	s.newsLocked(base.GetResourceVersion()) // an event that comes later would be taken for that of the write
	s.sending, s.came = true, ""
	ignored := s.ignored
	s.crew.mu.Unlock()
	sent, err := s.crew.settings.Host.Send(ctx, Write{Key: s.key, Object: base, Patch: p, Ignored: ignored, Log: s.log})
	s.sent(sent, err)
	if sent.Whole && sent.On != nil {
		s.left(s.crew.settings.Host.Shown(sent.On), s.crew.settings.Host.Shown(sent.Object))
	}
	return err
}

// sent notes what has come of a write.
func (l *life) sent(sent Sent, err error) {
	l.crew.mu.Lock()
	defer l.crew.mu.Unlock()
	l.sending = false
	if sent.Status || sent.Whole {
		l.knows = sent.Object.GetResourceVersion()
		l.written = l.crew.settings.Host.Shown(sent.Object)
	}
	if err == nil {
		l.ignored = sent.Ignored
	}
	if sent.Contended {
		l.signal()
	}
	if l.came != "" {
		l.newsLocked(l.came)
	}
}

// Newest returns the object as it is known now: as the cache has it, unless what the daemon has written is newer; or
// as it was last seen.
func (l *life) Newest() *unstructured.Unstructured {
	tree, last := l.known()
	if tree != nil {
		return tree.DeepCopy()
	}
	return l.crew.settings.Cache.Tree(last)
}

// known returns the object as it is known now: a tree, which is only read, or an object of the cache.
func (l *life) known() (*unstructured.Unstructured, *cached.Object) {
	l.crew.mu.Lock()
	defer l.crew.mu.Unlock()
	l.lookLocked()
	shown := l.last.GetResourceVersion()
	if l.tree != nil {
		shown = l.tree.GetResourceVersion()
	}
	if l.written != nil && !atMost(l.written.GetResourceVersion(), shown) {
		return l.written, nil
	}
	l.written = nil
	return l.tree, l.last
}
