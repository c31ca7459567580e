// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// enterChild enters a child into the inventory before the child is applied.
func (r *ownerInventory) enterChild(ctx context.Context, w *wanted, live *unstructured.Unstructured) error {
	place := w.place()
	if err := r.enter(ctx, map[ownership.Place]string{place: w.title}); err != nil {
		return err
	}
	w.applier.Owner = r.owner()
	r.mu.Lock()
	defer r.mu.Unlock()
	w.applier.Vacant = live == nil && r.entering[place]
	r.entering[place] = false // after one request, the object there may be our own child
	return nil
}

// enter writes places and the titles of their children into the owner's inventory, unless it has them. The same write
// removes former children. After the server has rejected one write, the reconcile sends no other.
func (r *ownerInventory) enter(ctx context.Context, titles map[ownership.Place]string) error {
	r.turn.Lock()
	defer r.turn.Unlock()
	if err := r.ensure(ctx); err != nil {
		return r.unentered(err)
	}
	r.mu.Lock()
	if r.entering == nil {
		r.entering = map[ownership.Place]bool{}
	}
	before, fault, missing := r.known.inventory, r.fault, false
	for place, title := range titles {
		r.entering[place] = r.entering[place] || !before.Lists(place)
		entered, known := before.Title(place)
		missing = missing || !known || entered != title
	}
	r.mu.Unlock()
	if !missing {
		return nil
	}
	if fault == nil && r.in.Gone {
		fault = r.writer.reread(ctx)
	}
	if fault == nil {
		if _, err := r.find(ctx, mostLooks); err != nil {
			r.in.Logger.Log().V(1).Info("child stays in the inventory", "reason", err.Error())
		}
		fault = r.write(ctx, func(known *ownership.Inventory) *ownership.Inventory {
			return known.With(time.Now(), titles).Without(r.outdated(known)...)
		})
	}
	return r.unentered(fault)
}

// unentered wraps the error that kept children out of the inventory; nil stays nil.
func (r *ownerInventory) unentered(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("entering children of %s %s into its inventory: %w", r.in.Object.GetKind(), r.in.Key, err)
}

// ensure reads the owner if a write of the inventory in an earlier reconcile got no answer: the cache may show the
// inventory before it.
func (r *ownerInventory) ensure(ctx context.Context) error {
	r.mu.Lock()
	unsure := r.in.Memory.unsure && !r.in.Gone
	r.mu.Unlock()
	if !unsure {
		return nil
	}
	if err := r.writer.reread(ctx); err != nil {
		return err
	}
	r.answered(r.writer.get())
	r.journal.await(r.writer.get())
	return nil
}

// strike removes a place from the inventory, because somebody else's object is there.
func (r *ownerInventory) strike(ctx context.Context, place ownership.Place) error {
	r.turn.Lock()
	defer r.turn.Unlock()
	r.mu.Lock()
	delete(r.entering, place)
	r.mu.Unlock()
	without := func(known *ownership.Inventory) *ownership.Inventory { return known.Without(place) }
	if err := r.write(ctx, without); err != nil {
		return fmt.Errorf("striking %s from the inventory of %s %s: %w", place, r.in.Object.GetKind(), r.in.Key, err)
	}
	return nil
}

// write changes the owner's inventory. Later writes of the reconcile start from the owner that this write returns.
// After a conflict, write applies the change to the owner's new state: the cache may be late, or another process may
// have entered something.
func (r *ownerInventory) write(ctx context.Context, change func(known *ownership.Inventory) *ownership.Inventory) error {
	for target := r.writer.target(); ; {
		next, marks, err := r.changed(target.Object, change)
		if err != nil {
			return err
		}
		result, err := patch.Write(ctx, target, dsl.NewPatch(), marks)
		if err != nil || result.Conflict == nil {
			return r.entered(next, result, err)
		}
		target = target.After(result)
	}
}

// changed applies a change to the inventory of an owner. It returns the new inventory, and the marks that write it. The
// marks are empty if somebody has removed the inventory.
func (r *ownerInventory) changed(owner *unstructured.Unstructured, change func(known *ownership.Inventory) *ownership.Inventory) (next knownInventory, marks patch.Marks, err error) {
	r.observe(owner)
	if next.inventory = change(r.owner().Inventory); next.inventory == nil {
		return next, marks, nil
	}
	if next.text, err = r.encode(next.inventory, owner); err != nil {
		return next, marks, err
	}
	r.sending()
	marks = r.writer.marks(owner)
	marks.Annotation, marks.State = r.family.names.keys.Inventory, next.text
	return next, marks, nil
}

// entered records the result of a write of the inventory.
func (r *ownerInventory) entered(next knownInventory, result patch.Result, err error) error {
	r.mu.Lock()
	if err == nil {
		next.closed = r.known.closed
		r.known = next
	}
	r.mu.Unlock()
	r.wrote(result)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.fault = err
		return err
	}
	r.in.Memory.unsure = false
	r.writer.set(result.Object)
	r.keep()
	r.family.inventories.set(r.in.Key, r.known.inventory)
	return nil
}

// encode returns an inventory as the annotation of the owner. The error is permanent if the annotation has no room.
func (r *ownerInventory) encode(inventory *ownership.Inventory, owner *unstructured.Unstructured) (string, error) {
	text, err := inventory.Encode(r.in.Object.GetUID())
	if err != nil {
		return "", err
	}
	if over := len(text) - progress.Room(owner.GetAnnotations(), r.family.names.keys.Inventory); over > 0 {
		return "", dsl.Permanent(fmt.Errorf("its annotations would have %d bytes, and the API server accepts %d: give one object fewer children that are labelled, or that stay when it is deleted",
			progress.MostOfAll+over, progress.MostOfAll))
	}
	return text, nil
}

// hold adds the finalizer to the owner if children of this reconcile need it and the owner lacks it.
func (r *ownerInventory) hold(ctx context.Context) error {
	r.turn.Lock()
	defer r.turn.Unlock()
	for target := r.writer.target(); ; {
		marks := r.writer.marks(target.Object)
		if !marks.Add {
			r.writer.set(target.Object)
			return nil
		}
		result, err := patch.Write(ctx, target, dsl.NewPatch(), marks)
		if err == nil && result.Conflict != nil {
			target = target.After(result)
			continue
		}
		r.wrote(result)
		if err != nil {
			return fmt.Errorf("adding the finalizer for children to %s %s: %w", r.in.Object.GetKind(), r.in.Key, err)
		}
		r.writer.set(result.Object)
		return nil
	}
}

// sending records that a write of the inventory is under way. Until the answer, it is unknown which inventory the owner
// has.
func (r *ownerInventory) sending() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.in.Memory.unsure = true
}
