// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// inheritedLook is the interval of attempts to read an object that left before this term.
const inheritedLook = 30 * time.Second

// finalize runs the delete handlers of the turn's objects that are gone already. Those that are not finished are left
// in the turn; it returns when they are due.
func (s *Controller) finalize(ctx context.Context, key cache.ObjectName, t *Batch) (next queue.Next, err error) {
	if slices.Contains(t.Granted, Itself) {
		for _, d := range t.Gone {
			d.LookNow() // what was missing may have been the right to look
		}
	}
	for i, d := range t.Gone {
		inherit(d, t)
		if s.back(key, d, t) {
			continue
		}
		if d.Memory == nil {
			d.Memory = newMemory(d.Object.GetUID())
		}
		d.Memory.Wake()
		if s.finalized(ctx, key, d) {
			continue
		}
		if wait := s.prove(ctx, key, d); wait > 0 {
			t.Left = append(t.Left, d)
			next = next.Sooner(wait, queue.Due)
			continue
		}
		s.Daemons.Gone(key, d.Object.GetUID())
		due, err := s.runGone(ctx, key, d, changesOf(d, t.Child))
		if err != nil {
			t.Left = append(t.Left, t.Gone[i:]...)
			return next, err
		}
		if d.Memory == t.Memory { // should a selector bring it back, it is a new object
			t.Memory = newMemory(d.Memory.UID)
			t.Memory.Writes = d.Memory.Writes
		}
		if !d.Memory.Finalized && due.After > 0 {
			t.Left = append(t.Left, d)
			next = next.Sooner(due.After, queue.Due)
		}
	}
	return next, nil
}

// inherit gives an object that is gone what is remembered of it.
func inherit(d *Tombstone, t *Batch) {
	if d.Memory == nil && t.Memory != nil && t.Memory.UID == d.Object.GetUID() {
		d.Memory = t.Memory
	}
}

// holdGone leaves the turn's objects that are gone for the end of a pause.
func holdGone(t *Batch) {
	for _, d := range t.Gone {
		inherit(d, t)
	}
	t.Left = t.Gone
}

// forgetGone ends what is known of a key that has no object. It reports whether the object is known to be gone.
func (s *Controller) forgetGone(key cache.ObjectName, t *Batch) (gone bool) {
	if s.Rules.Deletes && t.Memory != nil && !deleted(t) {
		t.Keep(t.Memory) // the cache is ahead of the inbox: the deletion is on its way
		t.Handled()
		return false
	}
	if t.Forget() {
		s.Family.Forget(key)
	}
	if len(t.Left) == 0 { // what is left may come back
		s.Relations.Forget(key)
		s.Indexes.Forget(key)
	}
	return !slices.ContainsFunc(t.Left, func(d *Tombstone) bool { return d.Unseen })
}

// deleted reports whether the turn has the deletion of the object that is remembered.
func deleted(t *Batch) bool {
	return slices.ContainsFunc(t.Gone, func(d *Tombstone) bool {
		uid := d.Object.GetUID()
		return uid == t.Memory.UID || uid == "" // only the name may be known of an object whose deletion the watch did not show
	})
}

// finalized reports whether nothing is to be done for an object that is gone.
func (s *Controller) finalized(ctx context.Context, key cache.ObjectName, d *Tombstone) bool {
	return d.Memory.Finalized && (d.EventHandled || !s.Rules.Events) || d.Inherited && s.letGo(ctx, key, d)
}

// changesOf are those of a reconcile over an object that is gone. Handlers of events hear of it once.
func changesOf(d *Tombstone, child bool) inbox.Changes {
	out := inbox.Changes{Child: child}
	if !d.EventHandled {
		d.EventHandled, out.Event = true, apiwatch.Deleted
	}
	return out
}

// runGone is a reconcile over an object that is gone already.
func (s *Controller) runGone(ctx context.Context, key cache.ObjectName, d *Tombstone, come inbox.Changes) (queue.Next, error) {
	last := s.Own.Tree(d.Object)
	if s.Writer.Renamer.Finds(last) {
		last = s.Writer.Renamer.Renamed(last)
	}
	p := s.open(Input{Key: key, Object: last, Gone: true, Deletion: progress.Deletion(last, true), Now: time.Now(), Changes: come}, d.Memory)
	out := p.run(ctx, queue.Next{})
	p.Observer.Passed(p, out)
	if out.Err == nil && (p.memory.Finalized || out.Due.After <= 0) {
		p.memory.Gone()
	}
	return out.Due, out.Err
}

// back reports whether the cache shows the object: it only was out of sight, and what is remembered
// of it holds on.
func (s *Controller) back(key cache.ObjectName, d *Tombstone, t *Batch) bool {
	there, found := s.Own.Get(key)
	if !found || there.GetUID() != d.Object.GetUID() && d.Object.GetUID() != "" {
		return false
	}
	if d.Unseen && d.Memory != nil && (t.Memory == nil || t.Memory.UID != d.Memory.UID) {
		t.Memory = d.Memory.Wake()
	}
	if d.Memory != nil {
		t.Memory = d.Memory.Back(t.Memory)
	}
	s.Tombstones.Known(d.Object.GetUID())
	return true
}

// letGo reports whether an earlier leader has let an object go that left before this term, or whether it is gone by now: its delete
// handlers do not run again then. Where that cannot be read, the object stays inherited.
func (s *Controller) letGo(ctx context.Context, key cache.ObjectName, d *Tombstone) bool {
	if s.Own.Absent() {
		return true
	}
	live, err := s.Host.Read(ctx, s.Own.Resource().GVR, key)
	if err != nil {
		s.passRefused(key, err)
		s.Observer.Log.V(1).Info("reading an object that left before this process led failed", "namespace", key.Namespace, "name", key.Name, "error", err.Error())
		return false
	}
	d.Inherited = false
	return live == nil || live.GetUID() != d.Object.GetUID() || !slices.Contains(live.GetFinalizers(), s.Rules.Finalizer) && !s.Writer.Renamer.Finds(live)
}

// prove returns how long to wait before the delete handlers of an object may run; zero when they may now. Of a
// deletion that the watch did not show, the API server is asked first.
func (s *Controller) prove(ctx context.Context, key cache.ObjectName, d *Tombstone) time.Duration {
	if d.Inherited {
		return inheritedLook
	}
	wait, err := s.Tombstones.Prove(ctx, key, d.Object.GetUID(), &d.Doubt)
	if apierrors.IsForbidden(err) {
		s.passRefused(key, err)
	}
	return wait
}
