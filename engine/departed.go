// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/inbox"
	"github.com/handwerk-dev/handwerk/engine/ledger"
	"github.com/handwerk-dev/handwerk/engine/memory"
	"github.com/handwerk-dev/handwerk/engine/queue"
)

// finalizeDeleted runs the delete handlers of objects that are gone already: deletions that no finalizer held. Those
// that are not finished are left in the turn; it returns when they are due.
func (r *resource) finalizeDeleted(ctx context.Context, key cache.ObjectName, t *turn) (next queue.Next, err error) {
	if slices.Contains(t.Granted, passItself) {
		for _, d := range t.Gone {
			d.LookNow() // what was missing may have been the right to look
		}
	}
	for i, d := range t.Gone {
		if d.Memory == nil && t.Memory != nil && t.Memory.UID == d.Object.GetUID() {
			d.Memory = t.Memory
		}
		if r.back(key, d, t) {
			continue
		}
		if d.Memory == nil {
			d.Memory = memory.New(d.Object.GetUID())
		}
		d.Memory.Wake()
		if r.finalized(d) {
			continue
		}
		if wait := r.prove(ctx, key, d); wait > 0 {
			t.Left = append(t.Left, d)
			next = next.Sooner(wait, queue.Due)
			continue
		}
		object := r.own.Tree(d.Object)
		p := r.newPass(facts{key: key, object: object, gone: true, deletion: ledger.Deletion(object, true), now: time.Now()}, d.Memory, false)
		if err := p.run(ctx, changesOf(d, t.Child)); err != nil {
			t.Left = append(t.Left, t.Gone[i:]...)
			return next, err
		}
		if d.Memory == t.Memory { // should a selector bring it back, all begins anew
			t.Memory = memory.New(d.Memory.UID)
			t.Memory.Writes = d.Memory.Writes
		}
		if !d.Memory.Finalized && p.next.After > 0 {
			t.Left = append(t.Left, d)
			next = next.Sooner(p.next.After, queue.Due)
		}
	}
	return next, nil
}

// goneBy is the pass of a key without an object.
func (r *resource) goneBy(key cache.ObjectName, t *turn) {
	if r.rules.Deletes && t.Memory != nil && !told(t) {
		t.Keep(t.Memory) // the cache is ahead of what is told: the deletion is on its way
		t.Handled()
		return
	}
	if t.Forget() {
		r.family.Forget(key)
	}
	if len(t.Left) == 0 { // what is left may come back
		r.related.Forget(key)
	}
}

// told reports whether the deletion of the object that is remembered was told.
func told(t *turn) bool {
	return slices.ContainsFunc(t.Gone, func(d *tombstone) bool {
		uid := d.Object.GetUID()
		return uid == t.Memory.UID || uid == "" // of one that nobody saw go, only the name may be known
	})
}

// finalized reports whether nothing is to be done for an object that is gone.
func (r *resource) finalized(d *tombstone) bool {
	return d.Memory.Finalized && (d.Told || !r.rules.Events)
}

// changesOf are those of a pass over an object that is gone. Handlers of events hear of it once.
func changesOf(d *tombstone, child bool) inbox.Changes {
	out := inbox.Changes{Child: child}
	if !d.Told {
		d.Told, out.Event = true, apiwatch.Deleted
	}
	return out
}

// back reports whether the cache shows the object: it only was out of sight, and what is remembered
// of it holds on.
func (r *resource) back(key cache.ObjectName, d *tombstone, t *turn) bool {
	there, found := r.own.Get(key)
	if !found || there.GetUID() != d.Object.GetUID() && d.Object.GetUID() != "" {
		return false
	}
	if d.Unseen && d.Memory != nil && (t.Memory == nil || t.Memory.UID != d.Memory.UID) {
		t.Memory = d.Memory.Wake()
	}
	r.fates.Known(d.Object.GetUID())
	return true
}

// prove returns how long to wait before the delete handlers of an object may run; zero when they may now. Of a
// deletion that nobody saw, the object itself is asked first.
func (r *resource) prove(ctx context.Context, key cache.ObjectName, d *tombstone) time.Duration {
	wait, err := r.fates.Prove(ctx, key, d.Object.GetUID(), &d.Doubt)
	if apierrors.IsForbidden(err) {
		r.refused(key, passItself, err)
	}
	return wait
}

// read returns the object, nil when it is gone.
func (r *resource) read(ctx context.Context, key cache.ObjectName) (*unstructured.Unstructured, error) {
	cached, found := r.own.Get(key)
	if !found {
		return nil, nil
	}
	if r.spec.Cache != dsl.CacheLive {
		return cached.Tree(), nil
	}
	object, err := r.engine.reader(ctx, r.own.Resource().GVR, key)
	if err != nil {
		return nil, fmt.Errorf("reading object: %w", err)
	}
	return object, nil
}

// objects returns all objects of the resource as the cache has them, sorted.
func (r *resource) objects() []*unstructured.Unstructured {
	out := []*unstructured.Unstructured{}
	for _, o := range r.own.Objects("") {
		out = append(out, r.own.Tree(o))
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out
}
