// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// fence stands before all writes. It is open for one term, and within it only while the last
// renewal is not older than the limit, and while nothing says that somebody else has the lock.
type fence struct {
	limit time.Duration
	asked chan struct{} // of one place: the lock is to be read

	mu      sync.Mutex
	open    bool
	shut    chan struct{} // closed when the term is over
	renewed time.Time     // when the last renewal was begun
	signs   int           // that somebody else has the lock, in this term
	certain chan struct{} // nil, or in doubt: closed when the doubt is over
	looked  time.Time     // when the lock was last to be read for a conflict
	looking chan struct{} // nil, or the lock is being read for a conflict: closed when that was done
}

// start opens the fence for a term. The channel is closed when the term is over.
func (f *fence) start() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = true
	f.shut = make(chan struct{})
	return f.shut
}

// stop ends the term. It reports whether there was one.
func (f *fence) stop() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.open {
		return false
	}
	f.open = false
	close(f.shut)
	free(&f.certain)
	free(&f.looking)
	return true
}

// renew notes a renewal by the time at which it was begun: the server counts from later than that.
func (f *fence) renew(begun time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewed = begun
}

// doubt takes a sign that somebody else has the lock: the fence is shut until trust.
func (f *fence) doubt() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.open {
		return
	}
	f.signs++
	if f.certain == nil {
		f.certain = make(chan struct{})
	}
	f.askLocked()
}

// askLocked has the lock read.
func (f *fence) askLocked() {
	select {
	case f.asked <- struct{}{}:
	default: // it is to be read already
	}
}

// look has the lock read for a conflict, unless that was done a moment ago. The channel is closed when it was read; it is nil
// where there is nothing to wait for.
func (f *fence) look(moment time.Duration) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.open || f.looking == nil && time.Since(f.looked) < moment {
		return nil
	}
	if f.looking == nil {
		f.looking, f.looked = make(chan struct{}), time.Now()
		f.askLocked()
	}
	return f.looking
}

// question is what a read of the lock answers: the signs so far, and a conflict.
type question struct {
	signs   int
	looking chan struct{}
}

// question returns what is to be answered, and whether there is anything.
func (f *fence) question() (q question, open bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return question{f.signs, f.looking}, f.certain != nil || f.looking != nil
}

// trust takes the answer that the lock is this process's. It ends the doubt, unless there were more signs than
// those that were known when the lock was read: what came later may be about what came later.
func (f *fence) trust(q question) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.signs == q.signs {
		free(&f.certain)
	}
	if f.looking == q.looking {
		free(&f.looking)
	}
}

// free lets those go on that wait.
func free(waiting *chan struct{}) {
	if *waiting != nil {
		close(*waiting)
		*waiting = nil
	}
}

func (f *fence) isOpen() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open
}

func (f *fence) held() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open && f.certain == nil && f.leftLocked() > 0
}

// sure is held, after any doubt is over. It waits no longer than the last renewal counts.
func (f *fence) sure(ctx context.Context) bool {
	for {
		f.mu.Lock()
		left, certain := f.leftLocked(), f.certain
		if !f.open {
			left = 0
		}
		f.mu.Unlock()
		if left <= 0 || certain == nil {
			return left > 0
		}
		select {
		case <-certain:
		case <-time.After(left):
		case <-ctx.Done():
			return false
		}
	}
}

// left is the time until the last renewal is too old.
func (f *fence) left() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.leftLocked()
}

// leftLocked reads two clocks. The monotonic clock counts while the process is stopped, also if the wall clock is set
// back. The wall clock counts while the machine is suspended, when the monotonic clock stands still.
func (f *fence) leftLocked() time.Duration {
	now := time.Now()
	passed := max(now.Sub(f.renewed), now.Round(0).Sub(f.renewed.Round(0)))
	return f.limit - passed
}

// jitter keeps processes from asking in step.
const jitter = 0.2

// holds reports whether a lock is ours.
type holds func(*coordinationv1.Lease) bool

// examine reads the lock at each sign that somebody else has it, and ends the term when it is so.
// It returns when ctx ends.
func (e *Elector) examine(ctx context.Context, ours holds) {
	for {
		select {
		case <-e.fence.asked:
			e.clear(ctx, ours)
		case <-ctx.Done():
			return
		}
	}
}

// clear reads the lock until there is no question any more.
func (e *Elector) clear(ctx context.Context, ours holds) {
	told := false
	for q, open := e.fence.question(); open && ctx.Err() == nil; q, open = e.fence.question() {
		lock, err := e.read(ctx)
		switch {
		case apierrors.IsNotFound(err), err == nil && !ours(lock):
			e.leave()
		case err == nil:
			e.fence.trust(q)
		default:
			if !told && ctx.Err() == nil {
				e.set.Log.Error(err, "reading the lock failed; writes wait", "lock", e.lockName())
				told = true
			}
			e.pause(ctx)
		}
	}
}

func (e *Elector) read(ctx context.Context) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, e.set.RenewDeadline)
	defer cancel()
	return e.leases().Get(ctx, e.set.Name, metav1.GetOptions{})
}

// listen watches the lock until ctx ends, for signs that somebody else has it: so a leader that
// has nothing to write and nothing to renew just now knows as well. It does without where that is
// not allowed.
func (e *Elector) listen(ctx context.Context, ours holds) {
	if e.set.Watcher == nil {
		return
	}
	only := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, e.set.Name).String()}
	for ctx.Err() == nil {
		stream, err := e.set.Watcher.CoordinationV1().Leases(e.set.Namespace).Watch(ctx, only)
		switch {
		case apierrors.IsForbidden(err):
			e.set.Log.V(1).Info("this process may not watch the lock, so it notices later when somebody takes it", "lock", e.lockName())
			return
		case err == nil:
			e.hear(ctx, stream, ours)
		}
		e.pause(ctx)
	}
}

// hear takes the signs of one watch. The events of a watch may be out of date, so hear decides nothing itself.
func (e *Elector) hear(ctx context.Context, stream apiwatch.Interface, ours holds) {
	defer stream.Stop()
	for {
		select {
		case event, more := <-stream.ResultChan():
			if !more {
				return
			}
			lock, is := event.Object.(*coordinationv1.Lease)
			if is && lock.Name == e.set.Name && (event.Type == apiwatch.Deleted || !ours(lock)) {
				e.fence.doubt()
			}
		case <-ctx.Done():
			return
		}
	}
}

// pause waits for about the retry period. It returns false when ctx has ended.
func (e *Elector) pause(ctx context.Context) bool {
	select {
	case <-time.After(wait.Jitter(e.set.RetryPeriod, jitter)):
		return true
	case <-ctx.Done():
		return false
	}
}
