// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
)

// release removes the operator's marks from an object that has only left the selector. No later reconcile would do it,
// and its finalizer would block a deletion. If the object comes back, it is new.
func (p *run) release(ctx context.Context, st State, marks patch.Marks) (State, error) {
	if !marks.Remove || !p.mayHaveMarks() {
		return st, nil
	}
	live, err := p.Writer.Live(ctx, p.Key, p.Object.GetUID())
	if err == nil {
		live, err = p.renamedLeaving(ctx, live)
	}
	if err == nil && live != nil && p.Writer.hasMarker(live) {
		var taken patch.Result
		taken, err = p.Writer.takeOver(ctx, p.Key, live)
		live = p.noteMoved(taken)
	}
	if err == nil && live != nil {
		marks.Annotation, marks.State = p.Rules.Operator.StateAnnotation(), ""
		st, err = p.sendRelease(ctx, st, live, marks)
	}
	if err != nil && !errors.Is(err, patch.ErrGone) {
		p.memory.Finalized = false
		return st, fmt.Errorf("letting object go: %w", err)
	}
	return st, nil
}

// sendRelease removes the marks, the inventory of children and the progress of machines.
func (p *run) sendRelease(ctx context.Context, st State, live *unstructured.Unstructured, marks patch.Marks) (State, error) {
	for target := p.target(st, live); ; {
		marks.Annotations = p.family.InventoryAnnotation(target.Object)
		var result patch.Result
		var err error
		st, result, err = p.send(ctx, st, target, p.Machines.Left(target.Object), marks)
		if apierrors.IsInvalid(err) { // a schema may require the progress of a machine; the finalizer goes anyway
			st, _, err = p.sendMarks(ctx, p.noteRejected(st, err), target.Object, marks)
		}
		if err != nil || result.Conflict == nil {
			return st, err
		}
		target = target.After(result)
	}
}

// mayHaveMarks reports whether an object that is gone from the cache may have marks of the operator.
func (p *run) mayHaveMarks() bool {
	return p.hasFinalizer() || (p.progress.HasText() || p.Machines.Any() || p.Writer.hasMarker(p.Object)) && p.Own.CanDeselect() ||
		(p.Rules.Finalizes || p.Rules.Spec.Owner() || p.Rules.Progress.Stores && p.Own.CanDeselect()) && p.Rules.Spec.Cache == dsl.CacheLive // which shows no marks
}

// renamedLeaving is renamed for an object that is released: marks under all names are removed.
func (p *run) renamedLeaving(ctx context.Context, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if !p.Writer.Renamer.Finds(live) {
		return live, nil
	}
	moved, err := p.Writer.move(ctx, p.Key, live)
	if now := p.noteMoved(moved); err != nil || now == nil {
		return nil, err
	}
	p.logMoved(p.Key, live)
	return moved.Object, nil
}

// noteMoved records the writes that have moved marks, and returns the object after them.
func (p *run) noteMoved(moved patch.Result) *unstructured.Unstructured {
	for _, now := range moved.Written {
		p.family.Wrote(patch.Result{Object: now, Whole: true})
	}
	return moved.Object
}
