// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/decide/pause"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// inheritedLook is the interval of attempts to read an object that left before this term.
const inheritedLook = 30 * time.Second

// reconcileGone runs the delete handlers of the batch's objects that are gone already. Unfinished objects stay in the
// batch; all do if a pause holds the key. It returns when they are due.
func (s *Controller) reconcileGone(ctx context.Context, key cache.ObjectName, t *Batch, halt *pause.Pause) (next queue.Next, err error) {
	for _, d := range t.Gone {
		inherit(d, t) // all of them: an error of one keeps the others for later
	}
	if halt != nil {
		t.Unfinalized = t.Gone
		return next, nil
	}
	if slices.Contains(t.Granted, Itself) {
		for _, d := range t.Gone {
			d.RetryNow() // the missing right may have been the right to read the object
		}
	}
	for i, d := range t.Gone {
		if s.isBack(key, d, t) {
			continue
		}
		if d.Memory == nil {
			d.Memory = new(newState(d.Object.GetUID())).Stored()
		}
		if s.isFinalized(ctx, key, d) {
			continue
		}
		if wait := s.awaitsDeletion(ctx, key, d); wait > 0 {
			t.Unfinalized = append(t.Unfinalized, d)
			next = next.Sooner(wait, queue.Due)
			continue
		}
		s.Daemons.Gone(key, d.Object.GetUID())
		due, err := s.runGone(ctx, key, d, changesOf(d, t.Child))
		if err != nil {
			t.Unfinalized = append(t.Unfinalized, t.Gone[i:]...)
			return next, goneError{err, d}
		}
		if t.Memory != nil && t.Memory.UID == d.Memory.UID { // if a selector selects it again, it is a new object
			fresh := newState(d.Memory.UID)
			fresh.Writes = d.Memory.Open().Writes
			t.Memory = fresh.Stored()
			t.Replaced()
		}
		if !d.Memory.Finalized && due.After > 0 {
			t.Unfinalized = append(t.Unfinalized, d)
			next = next.Sooner(due.After, queue.Due)
		}
	}
	return next, nil
}

// inherit gives a tombstone the state of its object.
func inherit(d *Tombstone, t *Batch) {
	if d.Memory == nil && t.Memory != nil && t.Memory.UID == d.Object.GetUID() {
		d.Memory = t.Memory
	}
}

// goneError is the error of a reconcile over an object that is gone.
type goneError struct {
	error
	of *Tombstone
}

// Unwrap returns the error without the object.
func (e goneError) Unwrap() error { return e.error }

// forgetGone drops the state of a key that has no object. It reports whether the object is gone for certain.
func (s *Controller) forgetGone(key cache.ObjectName, t *Batch, memory *ObjectState) (gone bool) {
	if s.Rules.Deletes && memory.UID != "" && !hasDeletion(t, memory.UID) {
		t.Handled() // the cache is ahead of the inbox: the deletion event follows
		return false
	}
	*memory = ObjectState{}
	if t.Forget() {
		s.Family.Forget(key)
	}
	if len(t.Unfinalized) == 0 { // an object behind an unproven tombstone may come back
		s.Limits.TakeBack(s.ownerOf(key))
		s.Relations.Forget(key)
		s.Indexes.Forget(key)
	}
	return !slices.ContainsFunc(t.Unfinalized, func(d *Tombstone) bool { return d.Unseen })
}

// hasDeletion reports whether the batch has the deletion of the remembered object.
func hasDeletion(t *Batch, remembered types.UID) bool {
	return slices.ContainsFunc(t.Gone, func(d *Tombstone) bool {
		uid := d.Object.GetUID()
		return uid == remembered || uid == "" // if the watch missed the deletion, only the name may be known
	})
}

// isFinalized reports whether an object that is gone needs no further work.
func (s *Controller) isFinalized(ctx context.Context, key cache.ObjectName, d *Tombstone) bool {
	return d.Memory.Finalized && (d.EventHandled || !s.Rules.Events) || d.Inherited && s.isReleased(ctx, key, d)
}

// changesOf returns the changes for a reconcile over an object that is gone. Handlers of events get the deletion once.
func changesOf(d *Tombstone, child bool) inbox.Changes {
	out := inbox.Changes{Child: child}
	if !d.EventHandled {
		d.EventHandled, out.Event = true, apiwatch.Deleted
	}
	return out
}

// runGone runs a reconcile over an object that is gone already.
func (s *Controller) runGone(ctx context.Context, key cache.ObjectName, d *Tombstone, come inbox.Changes) (queue.Next, error) {
	last := s.Own.Tree(d.Object)
	if s.Writer.Renamer.Finds(last) {
		last = s.Writer.Renamer.Renamed(last)
	}
	memory := d.Memory.Open()
	memory.Rejected = nil // the object is gone, so the server can reject no changes of it
	p, st := s.open(Input{Key: key, Object: last, Gone: true, Deletion: progress.Deletion(last, true), Now: time.Now(), Changes: come}.traced(ctx, s.Tracer), &memory,
		opening{rules: &s.Rules.Progress, wakes: true})
	out := p.runGone(ctx, st)
	p.Observer.Ended(p, out, s.Rules.Readers)
	if out.Err == nil {
		memory.Troubles.LogRecovered(p.Log(), Itself, finishedAgain)
	}
	if out.Err == nil && (p.memory.Finalized || out.Due.After <= 0) {
		memory.Troubles.Gone()
	}
	d.Memory = memory.Stored()
	return out.Due, out.Err
}

// runGone takes the steps of a reconcile over an object that is gone from the cache. If the object only left the
// selector, it removes the operator's marks; otherwise it writes nothing to it.
func (p *run) runGone(ctx context.Context, st State) Result {
	p.begun()
	st, err := p.lookAround(ctx, st)
	if err == nil {
		st, err = p.handle(ctx, st, p.goneReaders())
	}
	if errors.Is(err, patch.ErrGone) {
		return p.vanished(st)
	}
	if err == nil {
		st.Searched = true
		st, err = p.endChildren(ctx, st, p.memory.Finalized, false)
		err = endingChildren(err)
	}
	if err != nil {
		return p.abandon(st, err)
	}
	st, change := p.settleGone(st)
	st, err = p.release(ctx, st, change.marks)
	if change.vanished = errors.Is(err, patch.ErrGone); err != nil && !change.vanished {
		return p.abandon(p.noteRejected(st, err), err)
	}
	st = p.remember(st, change)
	out := p.result(st, nil)
	out.Written = st.written()
	return out
}

// goneReaders returns the handlers of an object that is gone. If its delete handlers are done, only handlers of events
// remain.
func (p *run) goneReaders() []progress.Handler {
	if !p.memory.Finalized {
		return p.Rules.Readers
	}
	return slices.DeleteFunc(slices.Clone(p.Rules.Readers), func(r progress.Handler) bool { return !r.On(dsl.Event) })
}

// settleGone decides whether the operator is done with an object that is gone.
func (p *run) settleGone(st State) (State, change) {
	out := p.finalization(Ending{
		Gone: true, Deleted: true, Finalizer: p.hasFinalizer(), Open: st.Attempts.Open(true), Failed: p.isHeldUp(st), Unsure: p.isUnsure(st),
	})
	p.memory.Finalized = out.Finalized
	return p.noteRecovered(st), out
}

// isBack reports whether the cache shows the object again: it was only missing for a while, and its state is kept.
func (s *Controller) isBack(key cache.ObjectName, d *Tombstone, t *Batch) bool {
	there, found := s.Own.Get(key)
	if !found || there.GetUID() != d.Object.GetUID() && d.Object.GetUID() != "" {
		return false
	}
	if d.Memory != nil {
		t.Memory = d.Memory.back(t.Memory, d.Unseen)
	}
	s.Tombstones.Forget(d.Object.GetUID())
	return true
}

// isReleased reports whether an earlier leader has released an object that left before this term, or whether it is gone. Its
// delete handlers do not run again then. If the read fails, it asks again later.
func (s *Controller) isReleased(ctx context.Context, key cache.ObjectName, d *Tombstone) bool {
	if s.Own.Absent() {
		return true
	}
	live, err := s.Host.Read(ctx, s.Own.Resource().GVR, key)
	if err != nil {
		s.noteRequest(key, err)
		s.Observer.Log.V(1).Info("reading an object that left before this process led failed", "namespace", key.Namespace, "name", key.Name, "error", err.Error())
		return false
	}
	d.Inherited = false
	return live == nil || live.GetUID() != d.Object.GetUID() || !slices.Contains(live.GetFinalizers(), s.Rules.Finalizer) && !s.Writer.Renamer.Finds(live)
}

// awaitsDeletion returns how long the delete handlers of an object have to wait until its deletion is confirmed, and then for
// the limits; zero if they may run now.
func (s *Controller) awaitsDeletion(ctx context.Context, key cache.ObjectName, d *Tombstone) time.Duration {
	if wait := s.confirmDeletion(ctx, key, d); wait > 0 {
		return wait
	}
	return s.holdGone(key, d, time.Now())
}

// confirmDeletion returns how long the delete handlers of an object have to wait; zero if they may run now. If the watch missed
// the deletion, the API server is asked first.
func (s *Controller) confirmDeletion(ctx context.Context, key cache.ObjectName, d *Tombstone) time.Duration {
	if d.Inherited {
		return inheritedLook
	}
	wait, err := s.Tombstones.Confirm(ctx, key, d.Object.GetUID(), &d.Confirmation)
	if apierrors.IsForbidden(err) {
		s.noteRequest(key, err)
	}
	return wait
}
