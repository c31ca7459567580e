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

// enterChild enters a child before it is applied.
func (r *ownerRecord) enterChild(ctx context.Context, w *wanted, live *unstructured.Unstructured) error {
	place := w.place()
	if err := r.enter(ctx, map[ownership.Place]string{place: w.title}); err != nil {
		return err
	}
	w.applier.Owner = r.owner()
	r.mu.Lock()
	defer r.mu.Unlock()
	w.applier.Vacant = live == nil && r.entering[place]
	r.entering[place] = false // one request, and it may be our own child that is there
	return nil
}

// enter writes places and which children are there into the owner's record, unless it has them. The
// same write leaves out former children. A server that refuses is asked once in a reconcile.
func (r *ownerRecord) enter(ctx context.Context, titles map[ownership.Place]string) error {
	r.turn.Lock()
	defer r.turn.Unlock()
	if err := r.ensure(ctx); err != nil {
		return r.unentered(err)
	}
	r.mu.Lock()
	if r.entering == nil {
		r.entering = map[ownership.Place]bool{}
	}
	before, fault, missing := r.known.record, r.fault, false
	for place, title := range titles {
		r.entering[place] = r.entering[place] || !before.Lists(place)
		entered, known := before.Title(place)
		missing = missing || !known || entered != title
	}
	r.mu.Unlock()
	if !missing {
		return nil
	}
	if fault == nil && r.pass.Gone {
		fault = r.writer.reread(ctx)
	}
	if fault == nil {
		if _, err := r.find(ctx, mostLooks); err != nil {
			r.pass.Logger.Log().V(1).Info("child stays in the record", "reason", err.Error())
		}
		fault = r.write(ctx, func(known *ownership.Record) *ownership.Record {
			return known.With(time.Now(), titles).Without(r.outdated(known)...)
		})
	}
	return r.unentered(fault)
}

// unentered wraps the reason why children could not be entered into the record; nil stays nil.
func (r *ownerRecord) unentered(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("entering children of %s %s into its record: %w", r.pass.Object.GetKind(), r.pass.Key, err)
}

// ensure reads the owner when an earlier reconcile got no answer to a write of the record: the cache may show the record before it.
func (r *ownerRecord) ensure(ctx context.Context) error {
	r.mu.Lock()
	unsure := r.pass.Memory.unsure && !r.pass.Gone
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

// strike takes a place out of the record again, in which somebody else's object has turned up.
func (r *ownerRecord) strike(ctx context.Context, place ownership.Place) error {
	r.turn.Lock()
	defer r.turn.Unlock()
	r.mu.Lock()
	delete(r.entering, place)
	r.mu.Unlock()
	without := func(known *ownership.Record) *ownership.Record { return known.Without(place) }
	if err := r.write(ctx, without); err != nil {
		return fmt.Errorf("striking %s from the record of %s %s: %w", place, r.pass.Object.GetKind(), r.pass.Key, err)
	}
	return nil
}

// write changes the owner's record. What the reconcile writes later goes to the owner as it is then. After a conflict the record is worked
// out from the owner's new state: the cache may be late, and another process may have entered something.
func (r *ownerRecord) write(ctx context.Context, change func(known *ownership.Record) *ownership.Record) error {
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

// changed returns the record after a change of that which the owner has, and the marks that write it. There are none if somebody has removed
// the record.
func (r *ownerRecord) changed(owner *unstructured.Unstructured, change func(known *ownership.Record) *ownership.Record) (next knownRecord, marks patch.Marks, err error) {
	r.observe(owner)
	if next.record = change(r.owner().Record); next.record == nil {
		return next, marks, nil
	}
	if next.text, err = r.encode(next.record, owner); err != nil {
		return next, marks, err
	}
	r.sending()
	marks = r.writer.marks(owner)
	marks.Annotation, marks.State = r.family.names.keys.Record, next.text
	return next, marks, nil
}

// entered notes how a write of the record has ended.
func (r *ownerRecord) entered(next knownRecord, result patch.Result, err error) error {
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
	r.pass.Memory.unsure = false
	r.writer.set(result.Object)
	r.keep()
	r.family.records.set(r.pass.Key, r.known.record)
	return nil
}

// encode returns a record as the annotation of the owner. The error is permanent if there is no room for it.
func (r *ownerRecord) encode(record *ownership.Record, owner *unstructured.Unstructured) (string, error) {
	text, err := record.Encode(r.pass.Object.GetUID())
	if err != nil {
		return "", err
	}
	if over := len(text) - progress.Room(owner.GetAnnotations(), r.family.names.keys.Record); over > 0 {
		return "", dsl.Permanent(fmt.Errorf("its annotations would have %d bytes, and the API server takes %d: give one object fewer children that are labelled, or stay when it is deleted",
			progress.MostOfAll+over, progress.MostOfAll))
	}
	return text, nil
}

// hold puts the finalizer on the owner, unless it is there.
func (r *ownerRecord) hold(ctx context.Context) error {
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
			return fmt.Errorf("holding %s %s until its children are seen to: %w", r.pass.Object.GetKind(), r.pass.Key, err)
		}
		r.writer.set(result.Object)
		return nil
	}
}

// sending notes that a write of the record is about to be sent: until it is answered it is not known which record the owner has.
func (r *ownerRecord) sending() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pass.Memory.unsure = true
}
