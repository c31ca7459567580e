// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
)

// steadyAfter is how long a stream stays open without an error before it counts as working
// though it brought nothing.
const steadyAfter = 5 * time.Second

// observer stands between a reflector and its client and notes what becomes of the requests.
type observer struct {
	health *health
	// streams counts the forwarding goroutines.
	streams sync.WaitGroup
}

// list passes a list request on.
func list[L any](ctx context.Context, o *observer, opts metav1.ListOptions, call func(context.Context, metav1.ListOptions) (L, error)) (L, error) {
	// The reflector begins with version 0: whatever the server has at hand. A server that lags
	// behind would show this process an older state than the one before it saw.
	if opts.ResourceVersion == "0" {
		opts.ResourceVersion = ""
	}
	out, err := call(ctx, opts)
	if ctx.Err() == nil {
		o.health.listed(err)
	}
	return out, err
}

// watch passes a watch request on.
func (o *observer) watch(ctx context.Context, opts metav1.ListOptions, call func(context.Context, metav1.ListOptions) (watch.Interface, error)) (watch.Interface, error) {
	inner, err := call(ctx, opts)
	streamed := opts.SendInitialEvents != nil && *opts.SendInitialEvents
	switch {
	case err == nil:
		o.health.opened(nil)
		return o.forward(ctx, inner), nil
	case streamed:
		// A list request follows and tells what is wrong, if anything: a server without streamed
		// lists refuses here.
		return nil, withoutRetry(err)
	case ctx.Err() == nil:
		o.health.opened(err)
	}
	return nil, err
}

// withoutRetry hides what makes the reflector try a streamed list again after a sleep that the
// end of the context does not end: stopping would take up to a minute.
func withoutRetry(err error) error {
	if utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err) {
		return errors.New(err.Error())
	}
	return err
}

// forward wraps a stream so that its events are noted.
func (o *observer) forward(ctx context.Context, inner watch.Interface) watch.Interface {
	s := &stream{inner: inner, out: make(chan watch.Event), stopped: make(chan struct{})}
	o.streams.Go(func() { s.run(ctx, o.health) })
	return s
}

// stream is a watch whose events are noted as they pass.
type stream struct {
	inner   watch.Interface
	out     chan watch.Event
	once    sync.Once
	stopped chan struct{}
}

// ResultChan returns the channel that the events come through.
func (s *stream) ResultChan() <-chan watch.Event { return s.out }

// Stop ends the stream, also when nobody reads from it any more.
func (s *stream) Stop() {
	s.once.Do(func() { close(s.stopped) })
	s.inner.Stop()
}

func (s *stream) run(ctx context.Context, h *health) {
	defer close(s.out)
	steady := time.NewTimer(steadyAfter)
	defer steady.Stop()
	for {
		select {
		case <-s.stopped:
			return
		case <-steady.C:
			h.flowed(false)
		case event, open := <-s.inner.ResultChan():
			if !open {
				return
			}
			if event.Type == watch.Error && ctx.Err() != nil {
				continue // the request was ended by us, which is no error
			}
			note(h, event)
			select {
			case s.out <- event:
			case <-s.stopped:
				return
			}
		}
	}
}

func note(h *health, event watch.Event) {
	if event.Type == watch.Error {
		h.broke(apierrors.FromObject(event.Object))
		return
	}
	h.flowed(true)
	if event.Type != watch.Bookmark {
		return
	}
	if m, err := meta.Accessor(event.Object); err == nil && m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
		h.listed(nil)
	}
}
