// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pass

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/children"
	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/inbox"
	"github.com/handwerk-dev/handwerk/engine/index"
	"github.com/handwerk-dev/handwerk/engine/queue"
	"github.com/handwerk-dev/handwerk/engine/related"
	"github.com/handwerk-dev/handwerk/engine/tombstone"
)

// DepartedSettings are what is to be known of a resource. All are required.
type DepartedSettings struct {
	// Deletes: there are handlers that want to hear of deletions; Events: there are some that hear of every event.
	Deletes, Events bool
	// Own is the resource's feed, Fates finds out what became of its objects.
	Own   *feed.Feed
	Fates *tombstone.Finder
	// Family, Related and Indexes know of what belongs to an object.
	Family  *children.Family
	Related *related.Index
	Indexes *index.Readers
	// Gone is called with an object that is known to be gone, before a pass over it.
	Gone func(key cache.ObjectName, uid types.UID)
	// Refused is told of a look for an object that a missing right did not let through.
	Refused func(key cache.ObjectName, err error)
	// Pass runs one over an object that is gone. It returns when the next one is due.
	Pass func(ctx context.Context, one Departed, news inbox.Changes) (queue.Next, error)
}

// Departed is one that is gone, as it was last, with what is remembered of it.
type Departed struct {
	Key    cache.ObjectName
	Last   *unstructured.Unstructured
	Memory *Memory
}

// Departures sees off the objects of one resource. Its methods may be called by any number of goroutines, for one key by
// one.
type Departures struct{ DepartedSettings }

// Finalize runs the delete handlers of the turn's objects that are gone already. Those that are not finished are left
// in the turn; it returns when they are due.
func (o Departures) Finalize(ctx context.Context, key cache.ObjectName, t *Turn) (next queue.Next, err error) {
	if slices.Contains(t.Granted, Itself) {
		for _, d := range t.Gone {
			d.LookNow() // what was missing may have been the right to look
		}
	}
	for i, d := range t.Gone {
		if d.Memory == nil && t.Memory != nil && t.Memory.UID == d.Object.GetUID() {
			d.Memory = t.Memory
		}
		if o.back(key, d, t) {
			continue
		}
		if d.Memory == nil {
			d.Memory = NewMemory(d.Object.GetUID())
		}
		d.Memory.Wake()
		if o.finalized(d) {
			continue
		}
		if wait := o.prove(ctx, key, d); wait > 0 {
			t.Left = append(t.Left, d)
			next = next.Sooner(wait, queue.Due)
			continue
		}
		o.Gone(key, d.Object.GetUID())
		due, err := o.Pass(ctx, Departed{Key: key, Last: o.Own.Tree(d.Object), Memory: d.Memory}, changesOf(d, t.Child))
		if err != nil {
			t.Left = append(t.Left, t.Gone[i:]...)
			return next, err
		}
		if d.Memory == t.Memory { // should a selector bring it back, all begins anew
			t.Memory = NewMemory(d.Memory.UID)
			t.Memory.Writes = d.Memory.Writes
		}
		if !d.Memory.Finalized && due.After > 0 {
			t.Left = append(t.Left, d)
			next = next.Sooner(due.After, queue.Due)
		}
	}
	return next, nil
}

// Forget ends what is known of a key that has no object. It reports whether the object is known to be gone.
func (o Departures) Forget(key cache.ObjectName, t *Turn) (gone bool) {
	if o.Deletes && t.Memory != nil && !told(t) {
		t.Keep(t.Memory) // the cache is ahead of what is told: the deletion is on its way
		t.Handled()
		return false
	}
	if t.Forget() {
		o.Family.Forget(key)
	}
	if len(t.Left) == 0 { // what is left may come back
		o.Related.Forget(key)
		o.Indexes.Forget(key)
	}
	return !slices.ContainsFunc(t.Left, func(d *Tombstone) bool { return d.Unseen })
}

// told reports whether the deletion of the object that is remembered was told.
func told(t *Turn) bool {
	return slices.ContainsFunc(t.Gone, func(d *Tombstone) bool {
		uid := d.Object.GetUID()
		return uid == t.Memory.UID || uid == "" // of one that nobody saw go, only the name may be known
	})
}

// finalized reports whether nothing is to be done for an object that is gone.
func (o Departures) finalized(d *Tombstone) bool {
	return d.Memory.Finalized && (d.Told || !o.Events)
}

// changesOf are those of a pass over an object that is gone. Handlers of events hear of it once.
func changesOf(d *Tombstone, child bool) inbox.Changes {
	out := inbox.Changes{Child: child}
	if !d.Told {
		d.Told, out.Event = true, apiwatch.Deleted
	}
	return out
}

// back reports whether the cache shows the object: it only was out of sight, and what is remembered
// of it holds on.
func (o Departures) back(key cache.ObjectName, d *Tombstone, t *Turn) bool {
	there, found := o.Own.Get(key)
	if !found || there.GetUID() != d.Object.GetUID() && d.Object.GetUID() != "" {
		return false
	}
	if d.Unseen && d.Memory != nil && (t.Memory == nil || t.Memory.UID != d.Memory.UID) {
		t.Memory = d.Memory.Wake()
	}
	if d.Memory != nil {
		t.Memory = d.Memory.Back(t.Memory)
	}
	o.Fates.Known(d.Object.GetUID())
	return true
}

// prove returns how long to wait before the delete handlers of an object may run; zero when they may now. Of a
// deletion that nobody saw, the object itself is asked first.
func (o Departures) prove(ctx context.Context, key cache.ObjectName, d *Tombstone) time.Duration {
	wait, err := o.Fates.Prove(ctx, key, d.Object.GetUID(), &d.Doubt)
	if apierrors.IsForbidden(err) {
		o.Refused(key, err)
	}
	return wait
}
