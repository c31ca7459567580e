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

// release takes the marks of the operator from an object that is gone only from sight, because a selector
// does not select it any more. No later reconcile would do it, and the object could never be deleted. When it comes
// back it is new.
func (p *run) release(ctx context.Context, st State, marks patch.Marks) (State, error) {
	if !marks.Remove || !p.mayHaveMarks() {
		return st, nil
	}
	live, err := p.Writer.Live(ctx, p.Key, p.Object.GetUID())
	if err == nil {
		live, err = p.renamedLeaving(ctx, live)
	}
	if err == nil && live != nil && p.Writer.hasMarker(live) {
		live, err = p.Writer.takeOver(ctx, p.Key, live, func(now *unstructured.Unstructured) { p.family.Wrote(patch.Result{Object: now, Whole: true}) })
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

// sendRelease takes off the marks, with the inventory of children and the progress of machines.
func (p *run) sendRelease(ctx context.Context, st State, live *unstructured.Unstructured, marks patch.Marks) (State, error) {
	for target := p.target(st, live); ; {
		marks.Along = p.family.LeftBehind(target.Object)
		var result patch.Result
		var err error
		st, result, err = p.send(ctx, st, target, p.Machines.Left(target.Object), marks)
		if apierrors.IsInvalid(err) { // a schema may require the progress of a machine: nothing is held for that
			st, _, err = p.sendMarks(ctx, p.refused(st, err), target.Object, marks)
		}
		if err != nil || result.Conflict == nil {
			return st, err
		}
		target = target.After(result)
	}
}

// mayHaveMarks reports whether marks of the operator may be left on an object that is gone from sight.
func (p *run) mayHaveMarks() bool {
	return p.finalizer() || (p.ledger.HasText() || p.Machines.Any() || p.Writer.hasMarker(p.Object)) && p.Own.Chooses() ||
		(p.Rules.Finalizes || p.Rules.Spec.Owner() || p.Rules.Ledger.Stores && p.Own.Chooses()) && p.Rules.Spec.Cache == dsl.CacheLive // which does not show it
}

// renamedLeaving is renamed for an object that is about to be let go: marks of all names are taken off.
func (p *run) renamedLeaving(ctx context.Context, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if !p.Writer.Renamer.Finds(live) {
		return live, nil
	}
	moved, err := p.Writer.move(ctx, p.Key, live, func(now *unstructured.Unstructured) {
		p.family.Wrote(patch.Result{Object: now, Whole: true})
	})
	if err == nil && moved != nil {
		p.logMoved(p.Key, live)
	}
	return moved, err
}
