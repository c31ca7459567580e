// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/drift"
)

// Patching applies fields of one object that is no child, with a field manager of its own.
type Patching struct {
	Client dynamic.ResourceInterface
	Target ownership.Target
	// Kept are the fields whose values stay if the patch drops them; see [KeptOf].
	Kept []dsl.Path
}

// Yield gives back the fields that a handler owns of an object which is no child: it applies none with the target's field manager, so
// the server removes those that no other manager owns. Replicas stay as they are, and values that were replaced by force come
// back. It returns the object after each write; none if there was nothing to give back. Live is the object as the server has it; nil
// when it is gone.
func (p Patching) Yield(ctx context.Context, live *unstructured.Unstructured) (writes []*unstructured.Unstructured, err error) {
	for attempt := 0; ; attempt++ {
		if live == nil || !drift.Applies(live, p.Target.Manager) {
			return writes, nil
		}
		none := &unstructured.Unstructured{Object: map[string]any{}}
		none.SetGroupVersionKind(live.GroupVersionKind())
		none.SetNamespace(live.GetNamespace())
		none.SetName(live.GetName())
		some, err := p.Apply(ctx, none, live, Force{Always: true})
		if writes = append(writes, some...); err == nil || !gone(err) {
			return writes, err
		}
		now, failed := p.Client.Get(ctx, p.Target.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(failed) || failed == nil && now.GetUID() != live.GetUID():
			return writes, nil // it was deleted meanwhile, with its fields
		case failed != nil || !apierrors.IsConflict(err) || attempt == releaseRetries:
			return writes, err
		}
		live = now
	}
}

// Force says whether an apply takes fields from other managers.
type Force struct {
	// Always: it takes them. Exact: it takes them if the object has not changed since it was looked at.
	Always, Exact bool
}

// Apply applies the fields to the object that was looked at and to no other of its name. It returns the object after each write. Before
// it come the fields that change hands, see [drift.Handover]. After it, the manager gives up fields whose replaced values came back.
func (p Patching) Apply(ctx context.Context, fields, live *unstructured.Unstructured, force Force) (writes []*unstructured.Unstructured, err error) {
	manager, back := p.Target.Manager, drift.PutBack(fields, live, p.Target.Manager, p.Target.Replaced(live))
	kept := slices.DeleteFunc(slices.Clone(p.Kept), func(path dsl.Path) bool {
		return slices.ContainsFunc(back, func(r drift.Replaced) bool { return r.At(path) })
	})
	if entries, changed := drift.HandoverOf(fields, live, manager, kept...).Entries(live, manager); changed {
		if live, err = Rewrite(ctx, p.Client, live, entries, manager, nil); err != nil {
			return nil, err
		}
		writes = append(writes, live)
	}
	if drift.IsBare(fields) && !drift.Applies(live, manager) {
		return writes, nil // it had nothing else
	}
	sent := drift.With(fields, back)
	sent.SetUID(live.GetUID()) // so that the server creates no object where this one is gone
	if force.Exact || len(back) > 0 {
		sent.SetResourceVersion(live.GetResourceVersion())
	}
	if len(back) > 0 {
		p.Target.SetNote(sent, p.Target.NoteKey(live), p.Target.Note(live))
	}
	result, err := p.Client.Apply(ctx, p.Target.Name, sent, metav1.ApplyOptions{FieldManager: manager, Force: force.Always || force.Exact})
	if err != nil {
		return writes, err
	}
	if writes = append(writes, result); len(back) == 0 {
		return writes, nil
	}
	return p.giveUp(ctx, fields, result, back, writes)
}

// giveUp releases the fields whose values came back, so that no manager owns them. If nothing else is applied, the note
// of the values goes, too.
func (p Patching) giveUp(ctx context.Context, fields, now *unstructured.Unstructured, back []drift.Replaced, writes []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	for attempt := 0; ; attempt++ {
		given := drift.Handover{Released: drift.Paths(back), Claimed: drift.Paths(nil)}
		var notes map[string]any
		if drift.IsBare(fields) {
			given.Released, notes = drift.OwnFields(now, p.Target.Manager), map[string]any{p.Target.NoteKey(now): nil}
		}
		entries, changed := given.Entries(now, p.Target.Manager)
		if !changed {
			return writes, nil
		}
		result, err := Rewrite(ctx, p.Client, now, entries, p.Target.Manager, notes)
		if err == nil {
			return append(writes, result), nil
		}
		if !apierrors.IsConflict(err) || attempt == releaseRetries {
			return writes, err
		}
		uid := now.GetUID()
		if now, err = p.Client.Get(ctx, p.Target.Name, metav1.GetOptions{}); err != nil || now.GetUID() != uid {
			return writes, err
		}
	}
}

// Rewrite writes managedFields, and annotations, to the version that was looked at.
func Rewrite(ctx context.Context, c dynamic.ResourceInterface, now *unstructured.Unstructured, entries []metav1.ManagedFieldsEntry, manager string, notes map[string]any) (*unstructured.Unstructured, error) {
	if len(entries) == 0 {
		entries = []metav1.ManagedFieldsEntry{{}} // the server's form of none
	}
	metadata := map[string]any{"uid": string(now.GetUID()), "resourceVersion": now.GetResourceVersion(), "managedFields": entries}
	if len(notes) > 0 {
		metadata["annotations"] = notes
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return nil, err
	}
	return c.Patch(ctx, now.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager})
}

// gone reports whether an error may say that the object is gone, that another one has its name, or that it has changed.
func gone(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsInvalid(err) || apierrors.IsNotFound(err)
}
