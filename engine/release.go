// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/patch"
)

// releaseObject takes the marks of the operator from an object that is gone only from sight, because a selector
// does not select it any more: nobody would do it later, it could never be deleted, and when it comes
// back it is new.
func (p *run) releaseObject(ctx context.Context, marks patch.Marks) error {
	if !marks.Remove || !p.mayHaveMarks() {
		return nil
	}
	live, err := p.r.live(ctx, p.key, p.object.GetUID())
	if err == nil {
		live, err = p.renamedLeaving(ctx, live)
	}
	if err == nil && live != nil {
		if live.GetAnnotations()[p.r.engine.op.StateAnnotation()] != "" {
			marks.Annotation, marks.State = p.r.engine.op.StateAnnotation(), ""
		}
		marks.Along, marks.Unobserved = p.family.LeftBehind(live), p.r.numbered(live)
		_, err = p.send(ctx, live, func(live *unstructured.Unstructured) (*dsl.Patch, patch.Marks) { return p.r.machines.Left(live), marks })
		// A schema may require the book, and a number of an earlier version may take a right that is not there any more:
		// nothing is held for that.
		if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) && marks.Unobserved && !p.r.own.KeepsGeneration() {
			p.refused(err)
			marks.Unobserved = false
			_, err = p.send(ctx, live, func(*unstructured.Unstructured) (*dsl.Patch, patch.Marks) { return dsl.NewPatch(), marks })
		}
	}
	if err != nil && !errors.Is(err, patch.ErrGone) {
		p.memory.Finalized = false
		return fmt.Errorf("letting object go: %w", err)
	}
	return nil
}

// mayHaveMarks reports whether marks of the operator may be left on an object that is gone from sight.
func (p *run) mayHaveMarks() bool {
	return p.finalizer() || (p.ledger.HasText() || p.r.machines.Any() || p.r.numbered(p.object)) && p.r.own.Chooses() ||
		(p.r.rules.Finalizes || p.r.spec.Owner() || p.r.rules.Ledger.Stores && p.r.own.Chooses()) && p.r.spec.Cache == dsl.CacheLive // which does not show it
}

// numbered reports whether an object has a status.observedGeneration that counts as a mark of the operator.
func (r *resource) numbered(o *unstructured.Unstructured) bool {
	if !r.rules.Ledger.Stores {
		return false
	}
	if !r.own.KeepsGeneration() {
		return book.HasMarker(o, r.engine.markers())
	}
	_, found, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	return found
}
