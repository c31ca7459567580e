// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
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
	// unclear: nothing says whether it is gone.
	unclear fate = iota
	// lives: it is there, and the cache will show it again.
	lives
	// isGone: it is gone, or it has left the operator's selector.
	isGone
)

// seeOff runs the delete handlers of objects that are gone already: deletions that no finalizer
// held. It returns those that are not finished, and when they are due.
func (r *resource) seeOff(ctx context.Context, key cache.ObjectName, n *news) (left []*departed, next due, err error) {
	n.gone = together(n.gone)
	if slices.Contains(n.granted, passItself) {
		for _, d := range n.gone {
			d.next = time.Time{} // what was missing may have been the right to look
		}
	}
	for i, d := range n.gone {
		if d.memory == nil && n.memory != nil && n.memory.uid == d.object.GetUID() {
			d.memory = n.memory
		}
		if r.back(key, d, n) {
			continue
		}
		if d.memory == nil {
			d.memory = newMemory(d.object.GetUID())
		}
		if r.seenOff(d) {
			continue
		}
		if wait := r.prove(ctx, key, d); wait > 0 {
			left = append(left, d)
			next = next.sooner(wait, queue.Due)
			continue
		}
		p := r.newPass(key, r.tree(d.object), d.memory, true)
		if err := p.run(ctx, d.news(n.child)); err != nil {
			return append(left, n.gone[i:]...), next, err
		}
		if d.memory == n.memory { // should a selector bring it back, all begins anew
			n.memory = newMemory(d.memory.uid)
			n.memory.awaits = d.memory.awaits
		}
		if !d.memory.parted && p.next.after > 0 {
			left = append(left, d)
			next = next.sooner(p.next.after, queue.Due)
		}
	}
	return left, next, nil
}

// seenOff reports whether nothing is to be done for an object that is gone.
func (r *resource) seenOff(d *departed) bool {
	return d.memory.parted && (d.told || !r.rules.events)
}

// news are those of a pass over an object that is gone. Handlers of events hear of it once.
func (d *departed) news(child bool) news {
	if d.told {
		return news{child: child}
	}
	d.told = true
	return news{child: child, event: apiwatch.Deleted}
}

// together makes one of those that are of one object: first a listing did not have it, and then it was
// seen to go.
func together(all []*departed) []*departed {
	var out []*departed
	for _, d := range all {
		uid := d.object.GetUID()
		i := slices.IndexFunc(out, func(o *departed) bool { return uid != "" && o.object.GetUID() == uid })
		if i < 0 {
			out = append(out, d)
			continue
		}
		out[i].unseen = out[i].unseen && d.unseen
	}
	return out
}

// back reports whether the cache shows the object: it only was out of sight, and what is remembered
// of it holds on.
func (r *resource) back(key cache.ObjectName, d *departed, n *news) bool {
	there, found := r.own.Get(key)
	if !found || there.GetUID() != d.object.GetUID() && d.object.GetUID() != "" {
		return false
	}
	if d.unseen && d.memory != nil && (n.memory == nil || n.memory.uid != d.memory.uid) {
		n.memory = d.memory
	}
	r.cleared(d)
	return true
}

// prove returns how long to wait before the delete handlers of an object may run; zero when they may
// now. Of a deletion that nobody saw, the object itself is asked first.
func (r *resource) prove(ctx context.Context, key cache.ObjectName, d *departed) time.Duration {
	if !d.unseen {
		if d.looks > 0 {
			r.cleared(d)
		}
		return 0
	}
	if wait := time.Until(d.next); wait > 0 {
		return wait
	}
	found, err := r.fateOf(ctx, key, d.object.GetUID())
	if found == isGone {
		d.unseen = false
		r.cleared(d)
		return 0
	}
	if ctx.Err() == nil {
		r.doubted(key, d, err)
	}
	if apierrors.IsForbidden(err) {
		r.refused(key, passItself, err)
	}
	wait := proofAgain << min(d.looks, 12)
	d.looks++
	wait = min(wait, proofAgainMost)
	wait -= rand.N(wait / 5)
	d.next = time.Now().Add(wait)
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
		return unclear, err
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
		return unclear, why
	}
	if r.engine.scope.Lacks(key.Namespace) {
		return isGone, nil
	}
	gone, err := r.engine.namespaceGone(ctx, key.Namespace)
	switch {
	case gone:
		return isGone, nil
	case err != nil:
		return unclear, fmt.Errorf("%w (%w)", why, err)
	}
	return unclear, why
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
func (r *resource) doubted(key cache.ObjectName, d *departed, err error) {
	reason := "it is there, and a listing did not have it"
	if err != nil {
		reason = err.Error()
	}
	r.mu.Lock()
	_, known := r.unclear[d.object.GetUID()]
	r.unclear[d.object.GetUID()] = reason
	r.mu.Unlock()
	if !known {
		r.log.Info("object is not in the cache any more and not known to be gone; its delete handlers wait", dsl.LogWarning, true,
			"namespace", key.Namespace, "name", key.Name, "reason", reason)
	}
}

// cleared notes that it is known what became of the object.
func (r *resource) cleared(d *departed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.unclear, d.object.GetUID())
}

// doubt says how many objects wait for a proof that they are gone, and why one of them does; empty
// when there are none.
func (r *resource) doubt() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var reasons []string
	for _, reason := range r.unclear {
		reasons = append(reasons, reason)
	}
	if len(reasons) == 0 {
		return ""
	}
	return fmt.Sprintf("not served, and not known to be gone: %d (%s)", len(reasons), slices.Min(reasons))
}
