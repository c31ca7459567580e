// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
)

// OutdatedError is the error for a child of the owner whose template has changed, and which has to be recreated for
// that; see [dsl.UpdateRecreate].
type OutdatedError struct{ Live *unstructured.Unstructured }

// Error names the child.
func (e *OutdatedError) Error() string {
	return fmt.Sprintf("applying %s: its template has changed", name(e.Live))
}

// fromAnother reports whether a child was made from another template, as its mark shows, and its policy forbids an
// update in place. A child without a mark is updated in place: somebody has removed the mark.
func (a Applier) fromAnother(desired, live *unstructured.Unstructured) bool {
	if a.Update != dsl.UpdateRecreate && a.Update != dsl.UpdateOnDelete {
		return false
	}
	whole, was, known := strings.Cut(a.mark(live), bookkeeping.TemplateMark)
	wanted, is, _ := strings.Cut(a.mark(desired), bookkeeping.TemplateMark)
	if known {
		return was != is
	}
	made := digestOf(whole) // applied by a configuration without update: the digest includes the ties
	return made != "" && made != digestOf(wanted)
}

// digestOf returns the digest in a mark; empty if the mark has no digest.
func digestOf(mark string) string {
	if digest, strict := strings.CutPrefix(mark, bookkeeping.StrictMark); strict {
		return digest
	}
	return strings.TrimPrefix(mark, bookkeeping.AppliedMark)
}

// emptied returns a mark without its first digest.
func emptied(mark string) string {
	_, template, known := strings.Cut(mark, bookkeeping.TemplateMark)
	if !known {
		return bookkeeping.AppliedMark
	}
	return bookkeeping.AppliedMark + bookkeeping.TemplateMark + template
}

// isEmptied reports whether a mark has lost its first digest.
func isEmptied(mark string) bool {
	whole, _, _ := strings.Cut(mark, bookkeeping.TemplateMark)
	return whole == bookkeeping.AppliedMark
}

// replace returns an [OutdatedError] if the template would change the child, as a dry run shows. A mark alone is no
// reason to delete a child, and no child is deleted whose successor the server would reject. It returns nil if the child
// is updated in place.
func (a Applier) replace(ctx context.Context, c dynamic.ResourceInterface, desired, live *unstructured.Unstructured) error {
	now, err := c.Get(ctx, desired.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && now.GetUID() != live.GetUID():
		return dsl.Waiting("the cache to show "+name(desired), 0)
	case err != nil:
		return fmt.Errorf("applying %s: reading it: %w", name(desired), err)
	}
	if ours, by := a.Owner.Owned(now); !ours && (by != "" || !a.Owner.Keys.Made(now)) {
		return a.refusal(now, by)
	}
	// A new child would lack defaults that the template excludes.
	if now, err = a.take(ctx, c, desired, now, nothing); err != nil {
		return err
	}
	guarded := a.noted(desired)
	guarded.SetUID(now.GetUID())
	result, err := c.Apply(ctx, desired.GetName(), guarded, metav1.ApplyOptions{FieldManager: a.Manager, Force: true, DryRun: []string{metav1.DryRunAll}})
	err = a.classified(ctx, c, desired, now, err)
	if _, fixed := errors.AsType[*dsl.ImmutableError](err); fixed {
		return &OutdatedError{Live: now}
	}
	if err != nil {
		return fmt.Errorf("applying %s, whose update is %s: dry run: %w", name(desired), a.Update, err)
	}
	if digest(a.visible(result)) == digest(a.visible(now)) {
		return nil
	}
	return &OutdatedError{Live: now}
}

// visible returns the parts of a child that a template can set, without the operator's own marks.
func (a Applier) visible(u *unstructured.Unstructured) map[string]any {
	out := maps.Clone(u.Object)
	delete(out, "status")
	keys := a.Owner.Keys
	part := func(field string, own ...string) map[string]any {
		whole, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", field)
		given, _ := whole.(map[string]any)
		rest := maps.Clone(given)
		for _, key := range own {
			delete(rest, key)
		}
		return rest
	}
	out["metadata"] = []any{part("labels", keys.Label), part("annotations", keys.Child, keys.Owner, keys.Applied)}
	return out
}
