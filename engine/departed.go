// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/inbox"
	"github.com/handwerk-dev/handwerk/engine/ledger"
	"github.com/handwerk-dev/handwerk/engine/queue"
)

const (
	// proofAgain and proofAgainMost bound the wait before an object that nobody saw go is looked for
	// again: it doubles from the first to the second.
	proofAgain     = time.Second
	proofAgainMost = 5 * time.Minute
)

// fate is what became of an object that the cache does not show any more.
type fate int

const (
	// unknown: nothing says whether it is gone.
	unknown fate = iota
	// lives: it is there, and the cache will show it again.
	lives
	// isGone: it is gone, or it has left the operator's selector.
	isGone
)

// finalizeDeleted runs the delete handlers of objects that are gone already: deletions that no finalizer held. Those
// that are not finished are left in the turn; it returns when they are due.
func (r *resource) finalizeDeleted(ctx context.Context, key cache.ObjectName, t *turn) (next queue.Next, err error) {
	t.Gone = together(t.Gone)
	if slices.Contains(t.Granted, passItself) {
		for _, d := range t.Gone {
			d.Next = time.Time{} // what was missing may have been the right to look
		}
	}
	for i, d := range t.Gone {
		if d.Memory == nil && t.Memory != nil && t.Memory.uid == d.Object.GetUID() {
			d.Memory = t.Memory
		}
		if r.back(key, d, t) {
			continue
		}
		if d.Memory == nil {
			d.Memory = newMemory(d.Object.GetUID())
		}
		if r.finalized(d) {
			continue
		}
		if wait := r.prove(ctx, key, d); wait > 0 {
			t.Left = append(t.Left, d)
			next = next.Sooner(wait, queue.Due)
			continue
		}
		object := r.tree(d.Object)
		p := r.newPass(facts{key: key, object: object, gone: true, deletion: ledger.Deletion(object, true), now: time.Now()}, d.Memory, false)
		if err := p.run(ctx, changesOf(d, t.Child)); err != nil {
			t.Left = append(t.Left, t.Gone[i:]...)
			return next, err
		}
		if d.Memory == t.Memory { // should a selector bring it back, all begins anew
			t.Memory = newMemory(d.Memory.uid)
			t.Memory.writes = d.Memory.writes
		}
		if !d.Memory.parted && p.next.After > 0 {
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
		return uid == t.Memory.uid || uid == "" // of one that nobody saw go, only the name may be known
	})
}

// finalized reports whether nothing is to be done for an object that is gone.
func (r *resource) finalized(d *tombstone) bool {
	return d.Memory.parted && (d.Told || !r.rules.Events)
}

// changesOf are those of a pass over an object that is gone. Handlers of events hear of it once.
func changesOf(d *tombstone, child bool) inbox.Changes {
	out := inbox.Changes{Child: child}
	if !d.Told {
		d.Told, out.Event = true, apiwatch.Deleted
	}
	return out
}

// together makes one of those that are of one object: first a listing did not have it, and then it was
// seen to go.
func together(all []*tombstone) []*tombstone {
	var out []*tombstone
	for _, d := range all {
		uid := d.Object.GetUID()
		i := slices.IndexFunc(out, func(o *tombstone) bool { return uid != "" && o.Object.GetUID() == uid })
		if i < 0 {
			out = append(out, d)
			continue
		}
		out[i].Unseen = out[i].Unseen && d.Unseen
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
	if d.Unseen && d.Memory != nil && (t.Memory == nil || t.Memory.uid != d.Memory.uid) {
		t.Memory = d.Memory
	}
	r.cleared(d)
	return true
}

// prove returns how long to wait before the delete handlers of an object may run; zero when they may
// now. Of a deletion that nobody saw, the object itself is asked first.
func (r *resource) prove(ctx context.Context, key cache.ObjectName, d *tombstone) time.Duration {
	if !d.Unseen {
		if d.Looks > 0 {
			r.cleared(d)
		}
		return 0
	}
	if wait := time.Until(d.Next); wait > 0 {
		return wait
	}
	found, err := r.fateOf(ctx, key, d.Object.GetUID())
	if found == isGone {
		d.Unseen = false
		r.cleared(d)
		return 0
	}
	if ctx.Err() == nil {
		r.doubted(key, d, err)
	}
	if apierrors.IsForbidden(err) {
		r.refused(key, passItself, err)
	}
	wait := proofAgain << min(d.Looks, 12)
	d.Looks++
	wait = min(wait, proofAgainMost)
	wait -= rand.N(wait / 5)
	d.Next = time.Now().Add(wait)
	return wait
}

// fateOf finds out what became of an object. The error says why it is unclear.
func (r *resource) fateOf(ctx context.Context, key cache.ObjectName, uid types.UID) (fate, error) {
	live, err := r.engine.reader(ctx, r.own.Resource().GVR, key)
	switch {
	case err != nil:
		return r.fateOfAll(ctx, key, err)
	case live == nil, uid != "" && live.GetUID() != uid:
		return isGone, nil
	}
	selected, err := r.selects(ctx, live)
	switch {
	case err != nil:
		return unknown, err
	case !selected:
		return isGone, nil
	}
	return lives, nil
}

// fateOfAll is fateOf where the object cannot be asked for: it is gone when all of its resource or of
// its namespace are. Why tells why it cannot be asked for.
func (r *resource) fateOfAll(ctx context.Context, key cache.ObjectName, why error) (fate, error) {
	if r.own.Absent() {
		return isGone, nil
	}
	if key.Namespace == "" {
		return unknown, why
	}
	if r.engine.scope.Lacks(key.Namespace) {
		return isGone, nil
	}
	gone, err := r.engine.namespaceGone(ctx, key.Namespace)
	switch {
	case gone:
		return isGone, nil
	case err != nil:
		return unknown, fmt.Errorf("%w (%w)", why, err)
	}
	return unknown, why
}

// selects asks the server, where the operator selects, whether it selects a living object.
func (r *resource) selects(ctx context.Context, o *unstructured.Unstructured) (bool, error) {
	if r.spec.LabelSelector == "" && r.spec.FieldSelector == "" {
		return true, nil
	}
	one := fields.OneTermEqualSelector("metadata.name", o.GetName()).String()
	list, err := r.engine.writer(r.own.Resource().GVR, o.GetNamespace()).List(ctx, metav1.ListOptions{
		LabelSelector: r.spec.LabelSelector, FieldSelector: strings.Trim(r.spec.FieldSelector+","+one, ","),
	})
	if err != nil {
		return false, fmt.Errorf("asking whether object is selected: %w", err)
	}
	return slices.ContainsFunc(list.Items, func(i unstructured.Unstructured) bool { return i.GetUID() == o.GetUID() }), nil
}

// doubted notes that nothing says that the object is gone. The error is nil when it lives.
func (r *resource) doubted(key cache.ObjectName, d *tombstone, err error) {
	reason := "it is there, and a listing did not have it"
	if err != nil {
		reason = err.Error()
	}
	known := r.unclear.put(d.Object.GetUID(), reason)
	if !known {
		r.log.Info("object is not in the cache any more and not known to be gone; its delete handlers wait", dsl.LogWarning, true,
			"namespace", key.Namespace, "name", key.Name, "reason", reason)
	}
}

// cleared notes that it is known what became of the object.
func (r *resource) cleared(d *tombstone) { r.unclear.drop(d.Object.GetUID()) }

// unclear are objects that nobody saw go, with why it cannot be told whether they are gone. Its zero value has none.
type unclear struct {
	mu  sync.Mutex
	why map[types.UID]string
}

func (u *unclear) put(uid types.UID, why string) (known bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.why == nil {
		u.why = map[types.UID]string{}
	}
	_, known = u.why[uid]
	u.why[uid] = why
	return known
}

func (u *unclear) drop(uid types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.why, uid)
}

func (u *unclear) clear() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.why = nil
}

// said says how many objects wait for a proof that they are gone, and why one of them does; empty when there are
// none.
func (u *unclear) said() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.why) == 0 {
		return ""
	}
	return fmt.Sprintf("not served, and not known to be gone: %d (%s)", len(u.why), slices.Min(slices.Collect(maps.Values(u.why))))
}
