// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
)

const (
	// retryFirst is the wait after the first failure; it doubles with each that follows.
	retryFirst = time.Second
	// retryMost bounds the wait after a failure.
	retryMost = 20 * time.Second
	// relistMost bounds the wait after the server has compacted the version that a watch was at. That is no fault, and
	// events come again after the next listing.
	relistMost = 10 * time.Second
	// askedMost bounds the wait that the server asks for.
	askedMost = time.Minute
	// hurryEach is the average time between the attempts of two sources when all try again. HurryWithin bounds the time
	// in which all do.
	hurryEach   = 2 * time.Millisecond
	hurryWithin = 1500 * time.Millisecond
	// calmAfter is how long a stream must stay open before the back-off starts over.
	calmAfter = time.Minute
)

// pace is the back-off of a source. The zero value is ready to use, except for hurry.
type pace struct {
	// hurry ends a wait.
	hurry chan struct{}

	mu   sync.Mutex
	last time.Duration
}

// pause waits before the next attempt after err, or until the context ends. Only the context cuts short a wait that the server
// asked for.
func (p *pace) pause(ctx context.Context, err error) {
	wait, hurry := p.next(err), p.hurry
	if seconds, asked := apierrors.SuggestsClientDelay(err); asked && seconds > 0 {
		wait, hurry = max(wait, min(time.Duration(seconds)*time.Second, askedMost)), nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-hurry:
		p.calm()
	case <-ctx.Done():
	}
}

// next returns the next wait. Half of it is drawn at random, so that sources that failed together do
// not come back together.
func (p *pace) next(err error) time.Duration {
	most := retryMost
	if routine(err) {
		most = relistMost
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = min(max(2*p.last, retryFirst), retryMost)
	wait := min(p.last, most)
	return wait/2 + rand.N(wait/2)
}

// calm resets the back-off.
func (p *pace) calm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = 0
}

// retry ends the current wait, or skips the next one.
func (p *pace) retry() {
	select {
	case p.hurry <- struct{}{}:
	default:
	}
}

// RetryAll ends the waits of all sources that failed, because the API server is back. It spreads their attempts over a
// short time, which depends on the number of sources.
func (s *Set) RetryAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	within := min(time.Duration(len(s.informers))*hurryEach, hurryWithin)
	for _, i := range s.informers {
		time.AfterFunc(rand.N(within), i.seen.pace.retry)
	}
}

// failed is called by the reflector after a failed list or watch, and makes the next attempts itself. The reflector
// would wait up to a minute between them, even if the server has just compacted old versions. Its wait could not end
// early when a missing right is granted.
func (i *informer) failed(ctx context.Context, r *cache.Reflector, err error) {
	for err != nil && ctx.Err() == nil {
		i.seen.health.missed(err) // the observer has noted most of them
		i.seen.pace.pause(ctx, err)
		if ctx.Err() == nil {
			err = r.ListAndWatchWithContext(ctx)
		}
	}
}
