// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
	"github.com/handwerk-dev/handwerk/engine/decide/drift"
)

// takeRetries bounds how often managedFields are computed again after somebody else wrote in between.
const takeRetries = 5

// inherits reports whether fields that people have set in an object stay, because the operator has not applied the
// object yet. The object may still be the owner's: by an owner reference that somebody else made, for example.
func (a Applier) inherits(live *unstructured.Unstructured) bool {
	return a.Adopt == dsl.AdoptIfUnowned && a.Drift != dsl.DriftStrict && a.mark(live) == ""
}

// added returns the additions by others to a child that have to be removed.
func (a Applier) added(desired, live *unstructured.Unstructured, strict bool) drift.Added {
	if a.Drift == dsl.DriftIgnore || a.inherits(live) {
		return drift.Added{}
	}
	return drift.Search{Own: a.Owner.Keys.All(), By: a.others(), Strict: strict}.Added(desired, live)
}

// others selects the field managers whose additions are removed.
func (a Applier) others() drift.Others { return drift.OthersOf(a.Drift, a.Manager, a.Allow) }

// isOwn reports whether an entry has fields that this operator has applied.
func (a Applier) isOwn(e metav1.ManagedFieldsEntry) bool {
	return e.Manager == a.Manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
}

// take moves fields that others have added to this operator's entry. The next apply does not have them, so it removes
// them, unless a manager that is not among the others has set them as well. The same write empties the mark, so that an
// apply follows even if the process ends here. The mark still says which template the child was made from. The result is
// the object after the write, or as it was if there is nothing to take.
func (a Applier) take(ctx context.Context, c dynamic.ResourceInterface, desired, now *unstructured.Unstructured, find func(now *unstructured.Unstructured) drift.Added) (*unstructured.Unstructured, error) {
	for attempt := 0; ; attempt++ {
		entries, moved := a.taken(desired, now, find(now).Fields)
		if !moved {
			return now, nil
		}
		result, err := a.rewrite(ctx, c, now, entries, map[string]any{a.Owner.Keys.Applied: emptied(a.mark(now))})
		if err == nil {
			return result, nil
		}
		uid := now.GetUID()
		if apierrors.IsConflict(err) && attempt < takeRetries {
			if now, err = c.Get(ctx, desired.GetName(), metav1.GetOptions{}); err == nil && now.GetUID() == uid {
				continue
			}
		}
		return nil, fmt.Errorf("applying %s: taking over what was added: %w", name(desired), err)
	}
}

// nothing is a search that finds no fields to remove.
func nothing(*unstructured.Unstructured) drift.Added { return drift.Added{} }

// taken returns the managedFields with these fields in this operator's entry, after the handover that the template
// needs. Moved is false if there is nothing to write.
func (a Applier) taken(desired, now *unstructured.Unstructured, fields *fieldpath.Set) (out []metav1.ManagedFieldsEntry, moved bool) {
	out, moved = drift.HandoverOf(desired, now, a.Manager, a.kept...).Entries(now, a.Manager)
	if fields == nil || fields.Empty() {
		return out, moved
	}
	given := out
	if !moved {
		given = now.GetManagedFields()
	}
	own, rest := -1, []metav1.ManagedFieldsEntry(nil)
	for _, e := range given {
		switch {
		case a.isOwn(e):
			own = len(rest)
		case a.others().Set(e) && e.APIVersion == desired.GetAPIVersion():
			left := drift.FieldsOf(e).Difference(fields)
			if left.Empty() {
				continue
			}
			e.FieldsV1 = drift.Encoded(left)
		}
		rest = append(rest, e)
	}
	if own < 0 {
		own = len(rest)
		rest = append(rest, drift.NewEntry(a.Manager, desired.GetAPIVersion()))
	}
	if rest[own].APIVersion != desired.GetAPIVersion() {
		return out, moved // its fields may have other names; the next apply has them in this version
	}
	rest[own].FieldsV1 = drift.Encoded(drift.FieldsOf(rest[own]).Union(fields))
	return rest, true
}

// inherit moves the fields that people have set in an object to a manager of its own, apart from fields that they set
// later.
func (a Applier) inherit(ctx context.Context, c dynamic.ResourceInterface, now *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var out, before []metav1.ManagedFieldsEntry
	for _, e := range now.GetManagedFields() {
		hand := e.Subresource == "" && (bookkeeping.HandOf(e.Manager) == bookkeeping.Editing || e.Manager == bookkeeping.Adopted)
		if !hand {
			out = append(out, e)
			continue
		}
		e.Manager, e.Operation = bookkeeping.Adopted, metav1.ManagedFieldsOperationUpdate
		i := slices.IndexFunc(before, func(b metav1.ManagedFieldsEntry) bool { return b.APIVersion == e.APIVersion })
		if i < 0 {
			before = append(before, e)
		} else { // a manager has one entry for each version
			before[i].FieldsV1 = drift.Encoded(drift.FieldsOf(before[i]).Union(drift.FieldsOf(e)))
		}
	}
	if len(before) == 0 {
		return now, nil
	}
	result, err := a.rewrite(ctx, c, now, append(out, before...), nil)
	if err != nil {
		return nil, fmt.Errorf("adopting %s: noting what it had before: %w", name(now), err)
	}
	return result, nil
}

// rewrite writes managedFields and annotations to the version that was read.
func (a Applier) rewrite(ctx context.Context, c dynamic.ResourceInterface, now *unstructured.Unstructured, entries []metav1.ManagedFieldsEntry, notes map[string]any) (*unstructured.Unstructured, error) {
	result, err := Rewrite(ctx, c, now, entries, a.Manager, notes)
	if err == nil && a.Observer != nil {
		a.Observer.Wrote(result)
	}
	return result, err
}
