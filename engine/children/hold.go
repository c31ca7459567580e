// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/catalog"
	"github.com/handwerk-dev/handwerk/engine/children/apply"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/collision"
	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/notfound"
	"github.com/handwerk-dev/handwerk/engine/ops"
	"github.com/handwerk-dev/handwerk/engine/patch"
	"github.com/handwerk-dev/handwerk/engine/transport"
)

// endLook is how long it is until a deletion is looked at again that waits for children to be gone, should no event come.
const endLook = time.Minute

// holding returns the marks that put the finalizer on the owner, where children of this pass need it and it is not there.
func (s *Session) holding() patch.Marks {
	s.mu.Lock()
	defer s.mu.Unlock()
	finalizer := s.family.settings.Operator.Finalizer()
	if !s.holds || s.pass.Deleting || slices.Contains(s.base.GetFinalizers(), finalizer) {
		return patch.Marks{}
	}
	return patch.Marks{Finalizer: finalizer, Add: true}
}

// holdOwner puts the finalizer on the owner, unless it is there.
func (s *Session) holdOwner(ctx context.Context) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	marks := s.holding()
	if !marks.Add {
		return nil
	}
	result, err := patch.Write(ctx, s.target(s.Base()), func(*unstructured.Unstructured) (*dsl.Patch, patch.Marks) { return dsl.NewPatch(), marks })
	s.Wrote(result)
	if err != nil {
		return fmt.Errorf("holding %s %s until its children are seen to: %w", s.pass.Object.GetKind(), s.pass.Key, err)
	}
	s.Rebase(result.Object)
	return nil
}

// Holds reports whether there are children about which something has to be done before the owner goes. Where that is not known,
// the answer is held: whether the owner has the finalizer so far.
func (s *Session) Holds(held bool) bool {
	owner := s.owner()
	gone := s.outdated(owner.Record)
	for _, place := range owner.Record.Places() {
		if slices.Contains(gone, place) {
			continue
		}
		kind, _ := s.family.shows(place)
		var o *unstructured.Unstructured
		if kind != nil {
			o = s.known(kind, id{kind.Resource().GVR, cache.ObjectName{Namespace: place.Namespace, Name: place.Name}})
		}
		switch {
		case o == nil && held, o != nil && s.needs(owner, o):
			return true
		}
	}
	return held && s.orphans(owner)
}

// orphans reports whether there may be children with an owner reference that are to be left behind. A record that was lost does
// not list them.
func (s *Session) orphans(owner ownership.Owner) bool {
	if s.family.current() != nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.applied {
		if owner.Leaves(o) {
			return true
		}
	}
	for kind := range s.family.kinds {
		for _, o := range kind.OwnedBy(string(s.pass.Object.GetUID())) {
			newer := s.applied[id{kind.Resource().GVR, cache.MetaObjectToName(o)}] != nil
			if !newer && owner.Leaves(o) {
				return true
			}
		}
	}
	return false
}

// needs reports whether something has to be done about a child before its owner goes. A child of a handler that
// runs for deletions alone is left to that handler.
func (s *Session) needs(owner ownership.Owner, o *unstructured.Unstructured) bool {
	spec, _ := owner.Spec(o)
	record := owner.Record
	all := s.family.settings.Handlers
	at := collision.HandlerOf(all, collision.Renamed(all, s.family.keys.Maker(o)))
	if s.pass.Deleting && (at >= 0 && collision.Lasts(all[at]) || s.family.farewell(record, ownership.PlaceOf(o))) {
		return false
	}
	return owner.Needs(spec, o.GetNamespace())
}

// EndChildren deletes or releases children before their owner goes, whichever handlers this version has: the record lists
// them, and each child says how it is kept. Open: some are left, or it is not known which there are; the
// deletion has to wait, and again is when to look. Alone: no handler wants the finalizer that is there, so it is there for children.
// The span is not begun yet.
func (s *Session) EndChildren(ctx context.Context, span *transport.Span, alone bool) (again time.Duration, open bool, err error) {
	span.Begin(ctx)
	defer span.End()
	owner, seen := s.owner(), map[ownership.Place]bool{}
	c := &children{Reader{session: s, span: span, attempt: collision.Attempt{Why: "its owner is being deleted"}}}
	var faults []error
	for kind := range s.family.kinds {
		for _, o := range s.toEnd(kind, owner) {
			seen[ownership.PlaceOf(o)] = true
			if s.needs(owner, o) {
				stays, err := c.end(ctx, kind, o)
				open, faults = open || stays, append(faults, err)
			}
		}
	}
	for _, place := range owner.Record.Places() {
		if seen[place] {
			continue
		}
		look, stays, err := c.endListed(ctx, owner, place)
		again, open, faults = max(again, look), open || stays, append(faults, err)
	}
	switch {
	case s.doubtful(owner, alone):
		again, open = searchLook, true
	case open && again == 0:
		again = endLook
	}
	return again, open, errors.Join(faults...)
}

// doubtful reports whether the owner may have children that EndChildren has not come to. Alone is as for EndChildren.
func (s *Session) doubtful(owner ownership.Owner, alone bool) bool {
	return s.family.Retired.Searching() ||
		alone && (s.blind() || s.family.current() != nil) || // a record that was lost does not list those that stay
		owner.Record != nil && s.family.settled("") != nil ||
		!s.pass.Gone && len(s.open()) > 0 // the next pass looks for them
}

// toEnd returns the owner's children among the objects of a feed that are not left to the garbage collector.
func (s *Session) toEnd(kind *feed.Feed, owner ownership.Owner) (out []*unstructured.Unstructured) {
	some := false
	for _, mark := range owner.Marks() {
		for _, o := range kind.OwnedBy(mark) {
			left := metav1.GetControllerOfNoCopy(o) != nil && !s.family.keys.Orphans(o)
			some = some || !left
		}
	}
	if !some {
		return nil // so no trees are built
	}
	return s.childrenIn(kind, owner)
}

// end does with a child what its policy says, and reports whether the owner has to wait for it.
func (c *children) end(ctx context.Context, kind *feed.Feed, o *unstructured.Unstructured) (open bool, err error) {
	spec, _ := c.session.owner().Spec(o)
	if spec.OnDelete == dsl.OrphanChild {
		return false, c.release(ctx, kind, o)
	}
	return true, c.deleteChild(ctx, kind, o, "")
}

// endListed is end for a place that the record lists, and where no child was seen. Again is as for EndChildren.
func (c *children) endListed(ctx context.Context, owner ownership.Owner, place ownership.Place) (again time.Duration, open bool, err error) {
	f := c.session.family
	switch kind, h := f.shows(place); {
	case kind == nil && f.Retired.Searches(place.Kind): // EndChildren waits for the search
		return 0, false, nil
	case kind == nil && c.session.blind():
		return searchLook, true, nil
	case h != nil:
		if _, known := f.claimed(owner, place); !known {
			return searchLook, true, nil
		}
		return 0, false, nil
	}
	return c.endUnseen(ctx, owner, place)
}

// endUnseen is end for a place that the record lists and no cache shows: this version declares no children of the kind there.
func (c *children) endUnseen(ctx context.Context, owner ownership.Owner, place ownership.Place) (again time.Duration, open bool, err error) {
	with := c.session.family.settings
	served, err := with.Catalog.KindOf(ctx, place.Kind.WithVersion(""))
	if errors.Is(err, catalog.ErrMissing) {
		return c.session.unserved(ctx, place)
	}
	key := cache.ObjectName{Namespace: place.Namespace, Name: place.Name}
	var live *unstructured.Unstructured
	if err == nil {
		live, err = with.Host.Read(ctx, served.GVR, key)
	}
	if err == nil && live != nil && c.session.family.renamer.Finds(live) {
		live, err = c.session.move(ctx, nil, id{served.GVR, key}, live)
	}
	if err != nil {
		return 0, true, fmt.Errorf("looking for %s: %w", place.People(), err)
	}
	if live == nil || !owner.Has(live) || !c.session.needs(owner, live) {
		return 0, false, nil
	}
	if spec, _ := owner.Spec(live); spec.OnDelete == dsl.OrphanChild {
		_, err = apply.Release(ctx, owner, with.Host.Client(served.GVR, key.Namespace), with.Operator.Name, live)
		return 0, false, err
	}
	open, err = c.deleteUnseen(ctx, served.GVR, place, live)
	return 0, open, err
}

// deleteUnseen deletes a child that no cache shows, and reports whether it is still there.
func (c *children) deleteUnseen(ctx context.Context, at schema.GroupVersionResource, place ownership.Place, live *unstructured.Unstructured) (open bool, err error) {
	if live.GetDeletionTimestamp() != nil {
		return true, nil
	}
	with, uid := c.session.family.settings, live.GetUID()
	background := metav1.DeletePropagationBackground // a Job would leave its Pods otherwise
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background}
	err = with.Host.Client(at, place.Namespace).Delete(ctx, place.Name, options)
	if err != nil && !notfound.Says(err, at.GroupResource(), place.Name) {
		return true, fmt.Errorf("deleting %s: %w", place.People(), err)
	}
	c.session.count(ops.Child)
	c.say(apply.Deleted, live, "")
	live, err = with.Host.Read(ctx, at, cache.ObjectName{Namespace: place.Namespace, Name: place.Name})
	return err != nil || live != nil && live.GetUID() == uid, err
}
