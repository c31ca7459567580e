// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/notfound"
)

// Renamer moves the marks that an operator has left under its earlier names to its current name: labels and
// annotations with its prefix, its finalizer, and its entries in managedFields. A nil Renamer finds nothing.
type Renamer struct {
	now *dsl.Operator
	was []*dsl.Operator
}

// NewRenamer returns the renamer of an operator; nil if it has no earlier names.
func NewRenamer(op *dsl.Operator) *Renamer {
	if was := op.Earlier(); len(was) > 0 {
		return &Renamer{now: op, was: was}
	}
	return nil
}

// Finds reports whether an object has marks of an earlier name that can be moved. The server accepts no new
// finalizer for an object that is being deleted, so such an object keeps the earlier finalizer.
func (r *Renamer) Finds(o metav1.Object) bool {
	if r == nil {
		return false
	}
	for key := range o.GetAnnotations() {
		if r.key(key) != key {
			return true
		}
	}
	for key := range o.GetLabels() {
		if r.key(key) != key {
			return true
		}
	}
	return o.GetDeletionTimestamp() == nil && slices.ContainsFunc(o.GetFinalizers(), func(f string) bool { return r.key(f) != f })
}

// Joins reports whether an earlier name is a field manager of applied fields of an object.
func (r *Renamer) Joins(o *unstructured.Unstructured) bool {
	return r != nil && slices.ContainsFunc(o.GetManagedFields(), r.applied)
}

// applied reports whether an entry has the applied fields of an earlier name.
func (r *Renamer) applied(e metav1.ManagedFieldsEntry) bool {
	return e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "" && r.manager(e.Manager) != e.Manager
}

// Renamed returns a copy of an object with its labels and annotations moved.
func (r *Renamer) Renamed(o *unstructured.Unstructured) *unstructured.Unstructured {
	out := o.DeepCopy()
	if labels := out.GetLabels(); labels != nil {
		out.SetLabels(changed(labels, r.moved(labels)))
	}
	if notes := out.GetAnnotations(); notes != nil {
		out.SetAnnotations(changed(notes, r.moved(notes)))
	}
	return out
}

func changed(values map[string]string, change map[string]any) map[string]string {
	for key, value := range change {
		if text, is := value.(string); is {
			values[key] = text
		} else {
			delete(values, key)
		}
	}
	return values
}

// Move moves the marks of a target. It reads the object first, because caches do not hold all of its managedFields.
// The result has each write, even if a later one fails. Its object is nil if the object is gone, or another one has its
// name.
//
// The earlier marks are removed last, so the object has one of the two at any time. Applied marks are first added
// in a write of their own: that write makes this operator their updater, and a label that an updater owns would
// stay when it is not applied any more. The last write adds nothing, so it can make this operator their applier.
func (r *Renamer) Move(ctx context.Context, t Target) (out Result, err error) {
	for attempt := 0; attempt == 0 || CanRetry(err, attempt); attempt++ {
		if out.Object, err = t.Live(ctx); out.Object != nil {
			out, err = r.move(ctx, t.Client, out)
		}
	}
	if err != nil {
		return out, fmt.Errorf("moving marks of %s on %s %s: %w", strings.Join(r.now.Was, ", "), t.Object.GetKind(), t.Object.GetName(), err)
	}
	return out, nil
}

// CanRetry reports whether a write to a live object may be tried again after an error. Attempt counts the failed ones.
func CanRetry(err error, attempt int) bool {
	return apierrors.IsConflict(err) && attempt <= conflictRetries
}

// Live reads the target's object. It returns nil if the object is gone, or another one has its name.
func (t Target) Live(ctx context.Context) (*unstructured.Unstructured, error) {
	live, err := t.Client.Get(ctx, t.Object.GetName(), metav1.GetOptions{})
	switch {
	case notfound.IsGone(err, t.Resource, t.Object.GetName()):
		return nil, nil
	case err != nil || live.GetUID() != t.Object.GetUID():
		return nil, err
	}
	return live, nil
}

// move moves the marks of the object of a result, and returns the result with its writes.
func (r *Renamer) move(ctx context.Context, c Client, out Result) (Result, error) {
	live := out.Object
	if !r.Finds(live) && !r.Joins(live) {
		return out, nil
	}
	labels, notes, marks := r.markedAs(live)
	if first := additions(live, labels, notes); len(first) > 0 {
		var err error
		if out, err = r.send(ctx, c, out, first); err != nil {
			return out, err
		}
		live = out.Object
	}
	last := map[string]any{"managedFields": r.entries(live, marks)}
	if moved := r.moved(live.GetLabels()); len(moved) > 0 {
		last["labels"] = moved
	}
	if moved := r.moved(live.GetAnnotations()); len(moved) > 0 {
		last["annotations"] = moved
	}
	if live.GetDeletionTimestamp() == nil && len(live.GetFinalizers()) > 0 {
		last["finalizers"] = r.finalizers(live.GetFinalizers())
	}
	return r.send(ctx, c, out, last)
}

// send writes metadata to the version of the object that a result has, and returns the result with this write.
func (r *Renamer) send(ctx context.Context, c Client, out Result, metadata map[string]any) (Result, error) {
	live := out.Object
	metadata["uid"], metadata["resourceVersion"] = string(live.GetUID()), live.GetResourceVersion()
	data, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return out, err
	}
	written, err := c.Patch(ctx, live.GetName(), types.MergePatchType, data, metav1.PatchOptions{FieldManager: r.now.Name})
	if err != nil {
		return out, err
	}
	out.Object, out.Written, out.Whole = written, append(out.Written, written), true
	return out, nil
}

// markedAs returns the labels and annotations that were applied under an earlier name, with their new keys, and the
// set of their fields.
func (r *Renamer) markedAs(live *unstructured.Unstructured) (labels, notes map[string]any, marks *fieldpath.Set) {
	own := fieldpath.NewSet()
	for _, e := range live.GetManagedFields() {
		if e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "" && r.manager(e.Manager) == r.now.Name {
			own = own.Union(fieldsOf(e))
		}
	}
	marks = fieldpath.NewSet()
	pick := func(field string, values map[string]string) map[string]any {
		out := map[string]any{}
		for key, value := range values {
			if to := r.key(key); to != key && own.Has(fieldpath.MakePathOrDie("metadata", field, key)) {
				out[to] = value
				marks.Insert(fieldpath.MakePathOrDie("metadata", field, to))
			}
		}
		return out
	}
	return pick("labels", live.GetLabels()), pick("annotations", live.GetAnnotations()), marks
}

// additions returns the labels and annotations that an object does not have yet.
func additions(live *unstructured.Unstructured, labels, notes map[string]any) map[string]any {
	out := map[string]any{}
	for field, add := range map[string]struct {
		wanted map[string]any
		there  map[string]string
	}{"labels": {labels, live.GetLabels()}, "annotations": {notes, live.GetAnnotations()}} {
		maps.DeleteFunc(add.wanted, func(key string, _ any) bool { _, has := add.there[key]; return has })
		if len(add.wanted) > 0 {
			out[field] = add.wanted
		}
	}
	return out
}

// moved returns the patch that moves the labels, or the annotations, of earlier names. If both keys exist, the new
// one keeps its value.
func (r *Renamer) moved(values map[string]string) map[string]any {
	out := map[string]any{}
	for key, value := range values {
		to := r.key(key)
		if to == key {
			continue
		}
		out[key] = nil
		if _, there := values[to]; !there {
			out[to] = value
		}
	}
	return out
}

func (r *Renamer) finalizers(before []string) (out []string) {
	for _, f := range before {
		if to := r.key(f); !slices.Contains(out, to) {
			out = append(out, to)
		}
	}
	return out
}

// entries returns the managedFields with the entries of earlier names merged into those of the current one. Marks
// are the fields for which it becomes the applier.
func (r *Renamer) entries(live *unstructured.Unstructured, marks *fieldpath.Set) []metav1.ManagedFieldsEntry {
	return merged(live, r.now.Name, func(e *metav1.ManagedFieldsEntry) *fieldpath.Set {
		e.Manager = r.manager(e.Manager)
		switch fields := fieldsOf(*e); {
		case e.Subresource != "":
			return fields
		case e.Operation == metav1.ManagedFieldsOperationApply:
			return fields.Union(marks)
		default:
			return fields.Difference(marks)
		}
	})
}

// merged returns the managedFields with the entries of one manager merged. Renamed sets the manager of an entry, and
// returns its fields. Entries of other managers keep theirs.
func merged(live *unstructured.Unstructured, manager string, renamed func(e *metav1.ManagedFieldsEntry) *fieldpath.Set) (out []metav1.ManagedFieldsEntry) {
	for _, e := range live.GetManagedFields() {
		fields := renamed(&e)
		own := e.Manager == manager
		at := slices.IndexFunc(out, func(o metav1.ManagedFieldsEntry) bool {
			return own && o.Manager == e.Manager && o.Operation == e.Operation && o.Subresource == e.Subresource &&
				(o.APIVersion == e.APIVersion || e.Operation == metav1.ManagedFieldsOperationApply)
		})
		switch {
		case !own:
			out = append(out, e)
		case fields.Empty():
		case at < 0:
			e.FieldsV1 = encoded(fields)
			out = append(out, e)
		default:
			out[at].FieldsV1 = encoded(fieldsOf(out[at]).Union(fields))
		}
	}
	return out
}

func encoded(fields *fieldpath.Set) *metav1.FieldsV1 {
	data, err := fields.ToJSON()
	if err != nil {
		data = []byte("{}") // not reached: it was read from JSON
	}
	return metav1.NewFieldsV1(string(data))
}

// key returns the current key of a label, an annotation or a finalizer.
func (r *Renamer) key(key string) string {
	prefix, rest, _ := strings.Cut(key, "/")
	for _, was := range r.was {
		if prefix == was.Prefix() {
			return r.now.Prefix() + "/" + rest
		}
	}
	return key
}

// manager returns the current name of a field manager.
func (r *Renamer) manager(name string) string {
	for _, was := range r.was {
		if name == was.Name {
			return r.now.Name
		}
	}
	return name
}

// fieldsOf returns the fields of an entry; empty if they are invalid.
func fieldsOf(e metav1.ManagedFieldsEntry) *fieldpath.Set {
	out := fieldpath.NewSet()
	if e.FieldsV1 == nil || out.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())) != nil {
		return fieldpath.NewSet()
	}
	return out
}
