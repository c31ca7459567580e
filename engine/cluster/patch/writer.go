// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package patch writes the changes of a reconcile: with at most one request for the object and one for its status, and
// with no request if the object already is so.
package patch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/engine/cluster/notfound"
)

// conflictRetries is how often a write is recomputed after a conflict.
const conflictRetries = 5

// ErrGone means that the object is gone, or that another object has its name now.
var ErrGone = errors.New("the object is gone")

// Note is the desired state of an annotation.
type Note struct {
	// Text is its value. An empty text removes the annotation, unless its value is no longer Was.
	Text, Was string
	// Alone: it is written also without other changes.
	Alone bool
}

// Marks are the engine's own changes of an object.
type Marks struct {
	// Annotation is the key of the state annotation; if it is empty, the annotation stays as it is.
	Annotation string
	// State is its value; empty removes it.
	State string
	// Annotations are further annotations, by their keys. Only a [Note] with Alone is written if nothing else changes.
	Annotations map[string]Note
	// RemoveAnnotations are annotations to remove, with their values. One that has another value by now stays.
	RemoveAnnotations map[string]string
	// Finalizer is the operator's finalizer, Earlier are those of its earlier names.
	Finalizer string
	Earlier   []string
	// Add and Remove add or remove the finalizer; at most one is set.
	Add, Remove bool
	// Conditions are conditions of the engine to set; RemoveConditions are the types of conditions to remove.
	Conditions       []metav1.Condition
	RemoveConditions []string
	// Ready are the condition [dsl.Ready] and those beside it, if the engine sets them. One without a status is removed.
	Ready []metav1.Condition
	// Observed is the value for status.observedGeneration; zero leaves the field to handlers. It is written with other
	// changes of the status, and without any if ObservedAlone is set.
	Observed      int64
	ObservedAlone bool
}

// Client is the part of [dynamic.ResourceInterface] that is needed here.
type Client interface {
	Get(ctx context.Context, name string, options metav1.GetOptions, sub ...string) (*unstructured.Unstructured, error)
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, sub ...string) (*unstructured.Unstructured, error)
}

var _ Client = dynamic.ResourceInterface(nil)

// Target is an object to write to.
type Target struct {
	// Client is the client of the object's resource, in its namespace.
	Client Client
	// Object is the object as it was read. It is not changed.
	Object *unstructured.Unstructured
	// Resource is the object's resource. A 404 that does not name it is not about the object.
	Resource schema.GroupResource
	// Subresource: the resource has a status subresource.
	Subresource bool
	// Manager is the field manager.
	Manager string
	// Earlier are the operator's field managers under its earlier names. Their fields count as its own.
	Earlier []string
	// Prefix is the prefix of the engine's annotations; empty if it is not known.
	Prefix string
	// Ignored identifies changes that the server did not make, from Result.Ignored. They are not sent again while
	// the object is unchanged.
	Ignored []uint64
	// Generation is the object's generation that handlers saw, for their conditions. Now is the time of
	// transitions.
	Generation int64
	Now        time.Time
	// tried is the result of earlier calls of Write for the same write, which have met a conflict.
	tried Result
}

// After returns the target for the next call of [Write], after a conflict.
func (t Target) After(r Result) Target {
	t.Object, t.tried = r.Conflict.Live, r
	return t
}

// Conflict says that the rest of a write was not sent, because somebody else has written the object.
type Conflict struct {
	// Live is the object as it is now.
	Live *unstructured.Unstructured
	// count is how often that has happened since the last successful request. inObject: it was the request to the object.
	count    int
	inObject bool
}

// Result is the result of a write, including earlier calls of [Write] that have met a conflict.
type Result struct {
	// Object is the object after the last request, or as it was if there was none.
	Object *unstructured.Unstructured
	// Conflict is set if the write has to be decided again over another version of the object.
	Conflict *Conflict
	// Written is the object after each request, in order.
	Written []*unstructured.Unstructured
	// Status and Whole say which requests were sent: to the status subresource, and to the object.
	Status, Whole bool
	// Dropped are fields that the server dropped, because the schema does not have them.
	Dropped []dsl.Path
	// Ignored are digests of the changes that the server dropped or rewrote.
	Ignored []uint64
}

// Write sends the changes that the target does not have yet. The request to the object goes last, because it marks
// the object as handled: after a crash between the two requests, the object must not be marked with changes missing.
//
// Each request has the version that it was computed from, because a cache may be late, and nothing that others have
// written is overwritten unseen. After a conflict, the caller decides again and calls Write with [Target.After]. The
// error wraps ErrGone if the object is gone, as confirmed by a read; other errors are the server's.
func Write(ctx context.Context, t Target, wanted *dsl.Patch, marks Marks) (Result, error) {
	w := writing{to: t, wanted: wanted, marks: marks, out: t.tried}
	w.out.Object, w.out.Conflict = t.Object, nil
	if before := t.tried.Conflict; t.Subresource && (before == nil || !before.inObject) {
		if err := w.send(ctx, "status"); err != nil || w.out.Conflict != nil {
			return w.out, err
		}
	}
	return w.out, w.send(ctx, "")
}

// writing is a write in progress.
type writing struct {
	to     Target
	wanted *dsl.Patch
	marks  Marks
	out    Result
	// succeeded: a request of this call was successful.
	succeeded bool
}

// change returns the changes for one of the requests.
func (w *writing) change(o *unstructured.Unstructured, subresource string) change {
	if subresource != "" {
		return w.to.statusChange(o, w.wanted, w.marks)
	}
	c := w.to.objectChange(o, w.wanted, w.marks)
	if !w.to.Subresource {
		c = c.join(w.to.statusChange(o, w.wanted, w.marks))
	}
	return c
}

// Change returns the merge patch of p's changes, status included; empty if the object already is so. It ignores
// transformations. Generation and now are as in Target.
func Change(o *unstructured.Unstructured, p *dsl.Patch, generation int64, now time.Time) map[string]any {
	t := Target{Generation: generation, Now: now}
	return t.objectChange(o, p, Marks{}).join(t.statusChange(o, p, Marks{})).tree
}

// Apply returns an object with p's changes, the merge patch that leads there, and p as from Resolve. If nothing
// changes, the object is o itself. Generation and now are as in Target.
func Apply(o *unstructured.Unstructured, p *dsl.Patch, generation int64, now time.Time) (laid *unstructured.Unstructured, change map[string]any, wants *dsl.Patch, err error) {
	if wants, err = Resolve(o, p, generation, now); err != nil || wants.Empty() {
		return o, nil, wants, err
	}
	if change = Change(o, wants, generation, now); len(change) == 0 {
		return o, change, wants, nil
	}
	return &unstructured.Unstructured{Object: plain.Patched(o.Object, change)}, change, wants, nil
}

// Resolve returns p with transformations replaced by their changes of an object; p itself if there are none. The
// error is that of a transformation. Generation and now are as in Target.
func Resolve(o *unstructured.Unstructured, p *dsl.Patch, generation int64, now time.Time) (*dsl.Patch, error) {
	if len(p.Transforms) == 0 {
		return p, nil
	}
	laid := &unstructured.Unstructured{Object: plain.Patched(o.Object, Change(o, p, generation, now))}
	return p.Transformed(laid)
}

// ResolveMost is Resolve, but if transformations fail, it returns the patch without them. It does the same for a
// nil object, whose transformations cannot be evaluated.
func ResolveMost(o *unstructured.Unstructured, p *dsl.Patch, generation int64, now time.Time) (made *dsl.Patch, err error) {
	if o != nil {
		if made, err = Resolve(o, p, generation, now); err == nil {
			return made, nil
		}
	}
	bare := *p
	bare.Transforms = nil
	return &bare, err
}

// send computes a change and sends it.
func (w *writing) send(ctx context.Context, subresource string) error {
	c := w.change(w.out.Object, subresource)
	if len(c.tree) == 0 {
		return nil
	}
	if len(w.to.Ignored) > 0 {
		if ignored := c.digest(w.out.Object.Object); slices.Contains(w.to.Ignored, ignored) {
			w.out.Ignored = append(w.out.Ignored, ignored)
			return nil
		}
	}
	written, err := w.to.patch(ctx, w.out.Object, c, subresource)
	if err == nil {
		w.answered(written, c, subresource)
		return nil
	}
	if w.out.Conflict, err = w.conflict(ctx, subresource, err); err != nil {
		return fmt.Errorf("writing %s: %w", cmp.Or(subresource, "object"), err)
	}
	return nil
}

// answered takes the server's result of a change.
func (w *writing) answered(written *unstructured.Unstructured, c change, subresource string) {
	before := w.out.Object
	if len(w.wanted.Retired) > 0 && written.GetManagedFields() == nil {
		written.SetManagedFields(before.GetManagedFields()) // they say who has set the conditions
	}
	w.succeeded = true
	w.out.Dropped = append(w.out.Dropped, dropped(nil, c.tree, written.Object)...)
	w.out.Object, w.out.Written = written, append(w.out.Written, written)
	if left := w.change(written, subresource); len(left.tree) > 0 {
		w.out.Ignored = append(w.out.Ignored, left.digest(written.Object))
	}
	w.out.Status = w.out.Status || subresource != ""
	w.out.Whole = w.out.Whole || subresource == ""
}

// conflict reads the object again after a request has failed because somebody else wrote. The error says why the write
// cannot go on.
func (w *writing) conflict(ctx context.Context, subresource string, said error) (*Conflict, error) {
	if notfound.IsGone(said, w.to.Resource, w.out.Object.GetName()) {
		return nil, w.to.confirm(ctx, said)
	}
	count := 0
	if before := w.to.tried.Conflict; before != nil && !w.succeeded {
		count = before.count
	}
	if !apierrors.IsConflict(said) && !isForeignUID(said) || count == conflictRetries {
		return nil, said
	}
	count++
	live, err := w.to.reread(ctx)
	if err != nil {
		return nil, err
	}
	if apierrors.IsConflict(said) && live.GetResourceVersion() == w.out.Object.GetResourceVersion() {
		if count > 1 || !namesObject(said) {
			return nil, &refusedAsConflict{said}
		}
	}
	return &Conflict{Live: live, count: count, inObject: subresource == ""}, nil
}

func (t Target) patch(ctx context.Context, base *unstructured.Unstructured, c change, subresource string) (*unstructured.Unstructured, error) {
	// The status endpoint of a custom resource does not check the uid, but it does check the version.
	guard := map[string]any{"uid": string(base.GetUID()), "resourceVersion": base.GetResourceVersion()}
	data, err := plain.AppendJSON(nil, overlay(c.tree, map[string]any{"metadata": guard}))
	if err != nil {
		return nil, err
	}
	var sub []string
	if subresource != "" {
		sub = append(sub, subresource)
	}
	return t.Client.Patch(ctx, base.GetName(), types.MergePatchType, data, metav1.PatchOptions{FieldManager: t.Manager}, sub...)
}

// confirm checks whether an object is really gone after a write said so. A server that is behind the others, or a
// resource that is being registered again, says so of objects that live, and their handlers' changes would be lost
// silently.
func (t Target) confirm(ctx context.Context, said error) error {
	if _, err := t.reread(ctx); err != nil {
		return err
	}
	return fmt.Errorf("a read finds the object: %w", said)
}

// reread reads the current object. The error is ErrGone if it is gone, or another object has its name.
func (t Target) reread(ctx context.Context) (*unstructured.Unstructured, error) {
	live, err := t.Client.Get(ctx, t.Object.GetName(), metav1.GetOptions{})
	if notfound.IsGone(err, t.Resource, t.Object.GetName()) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("reading it again: %w", err)
	}
	if live.GetUID() != t.Object.GetUID() {
		return nil, ErrGone
	}
	return live, nil
}

// isForeignUID reports whether the server refused because another object has the name now: a merge patch with
// another uid is an attempt to change it, which is invalid.
func isForeignUID(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsInvalid(err) && errors.As(err, &status) && status.Status().Details != nil &&
		slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}
