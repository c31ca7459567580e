// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
)

// observer stands between the reflector of an informer and its client, and records the results of the requests.
type observer struct {
	health    *health
	pace      pace
	bookmarks bookmarks
	era       era
	// informer has the cache that the reflector fills. An observer without one compares no versions.
	informer *informer
	// streams counts the goroutines that forward events.
	streams sync.WaitGroup

	mu sync.Mutex
	// broken is the error that ended the last stream. The next request returns it.
	broken error
}

// listed is the result of a list request.
type listed interface {
	runtime.Object
	metav1.ListInterface
}

// observed returns the ListerWatcher for the source's metadata; the observer records the results. Whole is the client
// that objects comes from: it says whether it cannot stream lists, as fakes do.
func observed(o *observer, src Source, whole metadata.Interface, objects metadata.ResourceInterface) cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			src.selects(&opts)
			return list(ctx, o, opts, objects.List)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			src.selects(&opts)
			return o.watch(ctx, opts, objects.Watch)
		},
	}, whole)
}

// list sends a list request, and records its result.
func list[L listed](ctx context.Context, o *observer, opts metav1.ListOptions, call func(context.Context, metav1.ListOptions) (L, error)) (L, error) {
	// The reflector begins with version 0, for which a server returns any state it has at hand. A server that lags
	// behind would return an older state than the previous process saw.
	first := opts.Continue == ""
	if newest := first && o.era.begin(); newest || opts.ResourceVersion == "0" {
		opts.ResourceVersion = ""
	}
	out, err := call(ctx, opts)
	if err == nil {
		o.arrived(out, first, out.GetContinue() == "")
	}
	if ctx.Err() == nil {
		o.health.listed(err)
	}
	return out, err
}

// watch sends a watch request, and repeats it while the watch can be resumed.
func (o *observer) watch(ctx context.Context, opts metav1.ListOptions, call func(context.Context, metav1.ListOptions) (watch.Interface, error)) (watch.Interface, error) {
	streamed := opts.SendInitialEvents != nil && *opts.SendInitialEvents
	if err := o.release(); err != nil && !streamed {
		return nil, err // the error that ended the previous stream
	}
	if streamed && o.era.begin() {
		opts.ResourceVersion = ""
	}
	if !streamed && o.era.due() {
		return nil, errBack
	}
	for {
		inner, err := call(ctx, opts)
		switch {
		case err == nil:
			o.health.opened(nil)
			if !streamed {
				o.health.followed()
				o.prove(ctx)
			}
			return o.forward(ctx, inner, streamed, limitOf(opts)), nil
		case streamed:
			// The reflector sends a list request next, which returns the error if there is one. A server without
			// streamed lists rejects this request.
			return nil, withoutRetry(err)
		case ctx.Err() != nil:
			return nil, err
		}
		o.health.opened(err)
		if !o.resumes(err) {
			return nil, err
		}
		if o.pace.pause(ctx, err); ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// retriable reports whether a watch can be resumed at its version, without another list: the server was away or
// overloaded.
func retriable(err error) bool {
	_, unanswered := errors.AsType[*url.Error](err)
	return unanswered || utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err)
}

// resumes reports whether a watch can be resumed at its version. The error is retriable, or the server has just come
// back and rejects requests that it will soon allow.
func (o *observer) resumes(err error) bool {
	if retriable(err) {
		return true
	}
	if o.informer == nil || o.informer.set.settings.Outages == nil {
		return false
	}
	return o.informer.set.settings.Outages.Covers(err)
}

// withoutRetry strips the error that makes the reflector sleep before another streamed list. That sleep ignores
// cancellation: stopping would take up to a minute.
func withoutRetry(err error) error {
	if retriable(err) {
		return errors.New(err.Error())
	}
	return err
}

// forward wraps a stream so that its events are recorded.
func (o *observer) forward(ctx context.Context, inner watch.Interface, listing bool, limit time.Duration) watch.Interface {
	s := &stream{seen: o, inner: inner, listing: listing, limit: limit, out: make(chan watch.Event), stopped: make(chan struct{})}
	o.streams.Go(func() { s.run(ctx) })
	return s
}

// limitOf returns how long a stream may be open; zero if the server was not asked to end it.
func limitOf(opts metav1.ListOptions) time.Duration {
	if opts.TimeoutSeconds == nil {
		return 0
	}
	return time.Duration(*opts.TimeoutSeconds)*time.Second + overdueAfter
}

// ended records the end of a stream.
func (o *observer) ended(s *stream) {
	if time.Since(s.begun) >= calmAfter {
		o.pace.calm()
	}
	if !s.listing {
		o.health.lost()
		if s.early() {
			o.era.cut()
		}
	}
}

// hold stores an error, which the next request returns.
func (o *observer) hold(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.broken = err
}

// release returns the error that hold has stored, and removes it.
func (o *observer) release() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	err := o.broken
	o.broken = nil
	return err
}

// arrived checks the versions in a listing, or in one page of it.
func (o *observer) arrived(list listed, first, last bool) {
	version, had := list.GetResourceVersion(), o.cacheVersion()
	if first && older(version, had) {
		o.back(true, o.health.src, had, version)
	} else if had != "" {
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			if shown, is := item.(metav1.Object); is {
				o.compare(shown)
			}
			return nil
		})
	}
	if last {
		o.era.complete(version)
	}
}

// cacheVersion returns the version that the cache has caught up to; empty before the first listing.
func (o *observer) cacheVersion() string {
	if o.informer == nil {
		return ""
	}
	return o.informer.version()
}

// behind reports whether the cache may still show a state from before the last alarm; see era.
func (o *observer) behind() bool { return o.era.behind(o.cacheVersion) }

// back makes every source list again, because versions have gone back; see [Set.wentBack].
func (o *observer) back(listed bool, what fmt.Stringer, from, to string) (now bool) {
	return o.informer.set.wentBack(o, listed, what, from, to)
}

// relist makes the source list again after an alarm.
func (o *observer) relist(epoch uint64) {
	o.era.want(epoch)
	o.pace.calm()
}

// compare checks whether a listing shows an older version of an object than the cache has. Etcd's own tool can restore a
// snapshot with a higher revision; the listing's version does not show that.
func (o *observer) compare(shown metav1.Object) {
	if o.informer == nil {
		return
	}
	key := cache.MetaObjectToName(shown)
	had, found := o.informer.object(key)
	if found && had.GetUID() == shown.GetUID() && older(shown.GetResourceVersion(), had.GetResourceVersion()) {
		o.back(true, named{o.health.src, key}, had.GetResourceVersion(), shown.GetResourceVersion())
	}
}
