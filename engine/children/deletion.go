// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/children/apply"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
	"github.com/handwerk-dev/handwerk/engine/cluster/notfound"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
	"github.com/handwerk-dev/handwerk/engine/decide/collision"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// How long a deletion waits before it looks at the children again, if no event comes.
const (
	// goneLook applies while children are being deleted.
	goneLook = time.Minute
	// searchLook applies while it is unknown which children there are.
	searchLook = 10 * time.Second
)

// deletion deletes or releases the children of an owner before the owner goes.
type deletion struct {
	*children
	owner ownership.Owner
	// alone is true if no handler wants the owner's finalizer: only children need it.
	alone bool
}

// FinalizeChildren deletes or releases the children before their owner goes. It does not depend on the handlers of this
// version: the inventory lists the children, and each child names its policy. Open is true if children are left, or if
// it is unknown which there are. The deletion waits then, and again is the delay until the next look. Alone is true if
// no handler wants the finalizer: only children need it. The span must not have begun.
func (s *Session) FinalizeChildren(ctx context.Context, span *transport.Span, alone bool) (again time.Duration, open bool, err error) {
	span.Begin(ctx)
	defer span.End()
	d := deletion{
		children: &children{Reader{session: s, span: span, attempt: collision.Attempt{Why: "its owner is being deleted"}}, s.whyDeleted()},
		owner:    s.owner(), alone: alone,
	}
	return d.run(ctx)
}

// run implements [Session.FinalizeChildren].
func (d *deletion) run(ctx context.Context) (again time.Duration, open bool, err error) {
	s, seen := d.session, map[ownership.Place]bool{}
	var faults []error
	turn := goneLook
	for kind := range s.family.kinds.all {
		for _, o := range d.listed(kind) {
			seen[ownership.PlaceOf(o)] = true
			if s.needs(d.owner, o) {
				stays, err := d.end(ctx, kind, o)
				if held, is := errors.AsType[*heldError](err); is {
					turn, err = min(turn, held.answer.After), nil
				}
				open, faults = open || stays, append(faults, err)
			}
		}
	}
	for _, place := range d.owner.Inventory.Places() {
		if seen[place] {
			continue
		}
		look, stays, err := d.endAbsent(ctx, place)
		if held, is := errors.AsType[*heldError](err); is {
			turn, err = min(turn, held.answer.After), nil
		}
		again, open, faults = max(again, look), open || stays, append(faults, err)
	}
	if err := s.endTargets(ctx); err != nil {
		open, faults = true, append(faults, err)
	}
	switch {
	case d.incomplete():
		again, open = searchLook, true
	case open && again == 0:
		again = turn
	}
	return again, open, errors.Join(faults...)
}

// incomplete reports whether the owner may have children that run has not seen.
func (d *deletion) incomplete() bool {
	s := d.session
	return s.family.Retired.Searching() ||
		d.alone && (d.blind() || s.family.kinds.current() != nil) || // a lost inventory does not list children that outlive the owner
		d.owner.Inventory != nil && s.family.kinds.settled("") != nil ||
		!s.in.Gone && len(s.unconfirmed.places()) > 0 // the next reconcile looks for them
}

// listed returns the owner's children from a source; nil if the garbage collector deletes all of them.
func (d *deletion) listed(kind *source.Source) []*unstructured.Unstructured {
	some := false
	for _, mark := range d.owner.IndexValues() {
		for _, o := range kind.OwnedBy(mark) {
			left := metav1.GetControllerOfNoCopy(o) != nil && !d.owner.Keys.IsOrphaned(o)
			some = some || !left
		}
	}
	if !some {
		return nil // saves decoding the objects
	}
	return d.session.lister.list(kind, d.owner, false, nil)
}

// end deletes or releases a child, as its policy says, and reports whether the owner has to wait for it.
func (d *deletion) end(ctx context.Context, kind *source.Source, o *unstructured.Unstructured) (open bool, err error) {
	spec, _ := d.session.owner().Spec(o)
	if spec.OnDelete == dsl.OrphanChild {
		return false, d.release(ctx, kind, o)
	}
	return true, d.deleteChild(ctx, kind, o, metav1.DeletePropagationBackground, false, "")
}

// endAbsent is end for a place that the inventory lists and where the caches show no child. Again is as for
// EndChildren.
func (d *deletion) endAbsent(ctx context.Context, place ownership.Place) (again time.Duration, open bool, err error) {
	f := d.session.family
	switch kind, h := f.kinds.shows(place); {
	case kind == nil && f.Retired.Searches(place.Kind): // run waits for the search
		return 0, false, nil
	case kind == nil && d.blind():
		return searchLook, true, nil
	case h != nil:
		if _, known := f.kinds.claimed(d.owner, place); !known {
			return searchLook, true, nil
		}
		return 0, false, nil
	}
	return d.endUnwatched(ctx, place)
}

// endUnwatched is endAbsent for a place that no cache covers: this version declares no children of the kind there.
func (d *deletion) endUnwatched(ctx context.Context, place ownership.Place) (again time.Duration, open bool, err error) {
	with := d.session.family.settings
	served, err := with.Catalog.KindOf(ctx, place.Kind.WithVersion(""))
	if errors.Is(err, discovery.ErrMissing) {
		return d.endUnserved(ctx, place)
	}
	key := cache.ObjectName{Namespace: place.Namespace, Name: place.Name}
	var live *unstructured.Unstructured
	if err == nil {
		live, err = with.Host.Read(ctx, served.GVR, key)
	}
	if err == nil && live != nil && d.session.family.renamer.Finds(live) {
		live, err = d.session.move(ctx, nil, id{served.GVR, key}, live)
	}
	if err != nil {
		return 0, true, fmt.Errorf("looking for %s: %w", place.Describe(), err)
	}
	if live == nil || !d.owner.Has(live) || !d.session.needs(d.owner, live) {
		return 0, false, nil
	}
	if spec, _ := d.owner.Spec(live); spec.OnDelete == dsl.OrphanChild {
		_, err = apply.Release(ctx, d.owner, with.Host.Client(served.GVR, key.Namespace), with.Operator.Name, live)
		return 0, false, err
	}
	open, err = d.deleteUnwatched(ctx, served.GVR, place, live)
	return 0, open, err
}

// endUnserved is endUnwatched for a kind that the API server serves in no version. If the CRD is gone, the child is
// gone: the API server removes a CRD after its last object.
func (d *deletion) endUnserved(ctx context.Context, place ownership.Place) (again time.Duration, open bool, err error) {
	extinct, doubt := d.session.family.settings.Sources.IsExtinct(ctx, place.Kind)
	if extinct {
		return 0, false, nil
	}
	if doubt != nil {
		d.warn(fmt.Sprintf("it is unknown whether its child %s is there: the API server does not serve %s, and %v", place.Describe(), place.Kind, doubt))
	}
	return searchLook, true, nil
}

// deleteUnwatched deletes a child that no cache shows, and reports whether it is still there.
func (d *deletion) deleteUnwatched(ctx context.Context, at schema.GroupVersionResource, place ownership.Place, live *unstructured.Unstructured) (open bool, err error) {
	if live.GetDeletionTimestamp() != nil {
		return true, nil
	}
	if err := d.mayDelete(nil, live); err != nil {
		return true, err
	}
	with, uid := d.session.family.settings, live.GetUID()
	background := metav1.DeletePropagationBackground // otherwise a Job would leave its Pods
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background}
	err = with.Host.Client(at, place.Namespace).Delete(ctx, place.Name, options)
	if err != nil && !notfound.IsGone(err, at.GroupResource(), place.Name) {
		return true, fmt.Errorf("deleting %s: %w", place.Describe(), err)
	}
	d.session.journal.count(ops.Child)
	d.say(apply.Deleted, live, "")
	live, err = with.Host.Read(ctx, at, cache.ObjectName{Namespace: place.Namespace, Name: place.Name})
	return err != nil || live != nil && live.GetUID() == uid, err
}

// blind reports whether the children of some kind cannot be read. If that may last, the owner gets an Event.
func (d *deletion) blind() bool {
	err := d.session.family.kinds.complete()
	if unread, is := errors.AsType[*source.UnreadError](err); is && (unread.Phase == source.Unserved || unread.Phase == source.Forbidden) {
		d.warn(err.Error())
	}
	return err != nil
}

// warn sends an Event of the owner with the reason why its deletion waits.
func (d *deletion) warn(why string) {
	d.session.family.settings.Events.Warn(d.session.in.Object, "children", "DeletionHeld", "Deletion is held: "+why)
}
