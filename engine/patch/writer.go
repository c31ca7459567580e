// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package patch writes what a pass wants: at most one request for the object and one for its status, and no request for what
// the object has already.
package patch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/engine/notfound"
)

// conflictRetries is how often a write that needs the newest list (finalizers, conditions) is
// worked out again after somebody else wrote in between.
const conflictRetries = 5

// ErrGone means that the object is gone, or that another one has its name now.
var ErrGone = errors.New("the object is gone")

// Note is an annotation as it is to be.
type Note struct {
	// Text is its value. An empty one removes the annotation, unless it has another value than Was meanwhile.
	Text, Was string
}

// Marks are the engine's own wishes for an object.
type Marks struct {
	// Annotation is the key of the state annotation; empty leaves it alone.
	Annotation string
	// State is its value; empty removes it.
	State string
	// Along are annotations that are written when the object is written to anyhow.
	Along map[string]Note
	// Finalizer is the operator's finalizer, Earlier are those of its earlier names.
	Finalizer string
	Earlier   []string
	// Add and Remove say what to do with the finalizer; at most one is set.
	Add, Remove bool
	// Condition is a condition of the engine's own to be set, nil when there is none; Mended is the
	// type of one to be taken away, empty when there is none.
	Condition *metav1.Condition
	Mended    string
	// Ready is the condition [dsl.Ready] where the engine keeps it, nil where it is to stay as it is.
	Ready *metav1.Condition
	// Locked: what is asked for holds only for the version that it was worked out from.
	Locked bool
	// Observed is the value for status.observedGeneration: the generation that was handled; zero leaves the field alone. Where
	// Write itself makes a new generation of that one, it sends the new one.
	Observed int64
	// Unobserved: status.observedGeneration is taken away.
	Unobserved bool
	// Late: Observed marks the object as handled, so the status is written after the object.
	Late bool
}

// Wish tells what is wanted of an object. It is asked with the object as it was read, and again after
// somebody else has written to it.
type Wish func(live *unstructured.Unstructured) (*dsl.Patch, Marks)

// Client is a [dynamic.ResourceInterface], as far as it is needed here.
type Client interface {
	Get(ctx context.Context, name string, options metav1.GetOptions, sub ...string) (*unstructured.Unstructured, error)
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, sub ...string) (*unstructured.Unstructured, error)
}

var _ Client = dynamic.ResourceInterface(nil)

// Target is an object to write to.
type Target struct {
	// Client reaches the object's resource, in its namespace.
	Client Client
	// Object is the object as it was read. It is not changed.
	Object *unstructured.Unstructured
	// Resource is the object's resource. A 404 that does not name it says nothing of the object.
	Resource schema.GroupResource
	// Subresource: status is a subresource of its own.
	Subresource bool
	// Manager is the field manager; see [Marker].
	Manager string
	// Earlier are field managers that the operator had under other names: what they have set is its own.
	Earlier []string
	// Counts: status.observedGeneration is the engine's own, whatever handlers want of it.
	Counts bool
	// Prefix is that of the annotations of the engine's own; empty where none is known.
	Prefix string
	// Ignored are changes that the server did not make when they were sent, from Result.Ignored. They
	// are not sent again while the object is as it was then.
	Ignored []uint64
	// Wrote is called after each request that was bound to a resourceVersion: to is from with that write and no other
	// change. Optional.
	Wrote func(from, to *unstructured.Unstructured)
	// Generation is that of the object as handlers saw it, for the conditions that they set. Now is the
	// time of their transitions.
	Generation int64
	Now        time.Time
}

// Result tells what a write did.
type Result struct {
	// Object is the object after the last request, or as it was when there was none.
	Object *unstructured.Unstructured
	// Status and Whole tell which write requests there were: to the status subresource, and to
	// the object.
	Status, Whole bool
	// Dropped are fields that the server did not keep, because its schema does not have them.
	Dropped []dsl.Path
	// Ignored are digests of what is different still: what the server dropped, or rewrote.
	Ignored []uint64
}

// longUID is how much of an object's UID is in the name of a field manager, which the server limits. UIDs of Kubernetes are shorter.
const longUID = 40

// Marker is how the names of field managers begin that write the engine's mark into status.observedGeneration. They set the mark
// apart from the numbers that others write there, handlers included. Objects that were marked before markers had UIDs have one without
// the last slash.
func Marker(manager string) string { return manager + "/observed/" }

// MarkerOf is the field manager that writes the mark of one object. Its name has the object's UID, so a copy of the object that
// was restored with its status and its managedFields has no mark of its own.
func MarkerOf(marker string, o *unstructured.Unstructured) string {
	uid := string(o.GetUID())
	return marker + uid[:min(len(uid), longUID)]
}

// Write sends what is wanted and the target does not have. The request that marks the object as handled goes last: a crash
// between the two must not leave it marked with something missing. That is the one to the object, or the one to its status
// where the marks are late.
//
// What handlers want, and lists that others write too (finalizers, conditions), is sent with the version
// that it was worked out from; after a conflict the wish is asked again. The error wraps ErrGone when the
// object is gone, which a read has confirmed; other errors are the server's.
func Write(ctx context.Context, t Target, wish Wish) (Result, error) {
	w := writing{to: t, out: Result{Object: t.Object}, wish: wish}
	w.ask()
	for {
		if done, err := w.both(ctx, t.Subresource && w.marks.Late); done || err != nil {
			return w.out, err
		}
	}
}

// writing is a write under way.
type writing struct {
	to   Target
	out  Result
	wish Wish
	// wanted and marks are what the wish said last.
	wanted *dsl.Patch
	marks  Marks
	// conflicts counts those since the last answer.
	conflicts int
	// made is the generation that the write itself made of another one, from.
	from, made int64
}

// ask asks what is wanted of the object as it is known now.
func (w *writing) ask() { w.wanted, w.marks = w.wish(w.out.Object) }

// both sends the two requests, as far as there is something to send: that to the status first, unless it is late. It is not done
// when the marks want the other order after a conflict.
func (w *writing) both(ctx context.Context, late bool) (done bool, err error) {
	order := []string{"status", ""}
	if late {
		slices.Reverse(order)
	}
	for _, subresource := range order {
		if subresource != "" && !w.to.Subresource {
			continue
		}
		if done, err = w.send(ctx, subresource, late); !done || err != nil {
			return false, err
		}
	}
	return true, nil
}

// change is what one of the requests is to change of an object.
func (w *writing) change(o *unstructured.Unstructured, subresource string) change {
	if subresource != "" {
		c := w.to.statusChange(o, w.wanted, w.handled())
		c.locked = true // the status endpoint of a custom resource does not look at the uid
		return c
	}
	c := w.to.objectChange(o, w.wanted, w.marks)
	if !w.to.Subresource {
		c = c.join(w.to.statusChange(o, w.wanted, w.marks))
	}
	return c
}

// handled are the marks, with the generation that the write has made of the one that was handled.
func (w *writing) handled() Marks {
	m := w.marks
	if m.Observed > 0 && m.Observed == w.from {
		m.Observed = w.made
	}
	return m
}

// Change returns the merge patch that makes an object what p asks for, status included; empty when it is
// so already. Transformations are left out. Generation and now are as in Target.
func Change(o *unstructured.Unstructured, p *dsl.Patch, generation int64, now time.Time) map[string]any {
	t := Target{Generation: generation, Now: now}
	return t.objectChange(o, p, Marks{}).join(t.statusChange(o, p, Marks{})).tree
}

// Lay returns an object with what p asks for, the change that leads there, and what is asked for as Resolve has it. The object
// is o itself where nothing changes. Generation and now are as in Target.
func Lay(o *unstructured.Unstructured, p *dsl.Patch, generation int64, now time.Time) (laid *unstructured.Unstructured, change map[string]any, wants *dsl.Patch, err error) {
	if wants, err = Resolve(o, p, generation, now); err != nil || wants.Empty() {
		return o, nil, wants, err
	}
	if change = Change(o, wants, generation, now); len(change) == 0 {
		return o, change, wants, nil
	}
	return &unstructured.Unstructured{Object: plain.Patched(o.Object, change)}, change, wants, nil
}

// Resolve returns what is wanted of an object with what transformations make of it in their place; p itself where there
// are none. The error is that of a transformation. Generation and now are as in Target.
func Resolve(o *unstructured.Unstructured, p *dsl.Patch, generation int64, now time.Time) (*dsl.Patch, error) {
	if len(p.Transforms) == 0 {
		return p, nil
	}
	laid := &unstructured.Unstructured{Object: plain.Patched(o.Object, Change(o, p, generation, now))}
	return p.Transformed(laid)
}

// ResolveMost is Resolve, but that a patch whose transformations fail is returned without them; so is one of an object that
// is nil, of which nobody knows what they could be made of.
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

// send works out a change and sends it, again from a fresh read after a conflict. It is not done
// when the marks want the other order then.
func (w *writing) send(ctx context.Context, subresource string, late bool) (done bool, err error) {
	for {
		c := w.change(w.out.Object, subresource)
		if len(c.tree) == 0 {
			return true, nil
		}
		if len(w.to.Ignored) > 0 {
			if ignored := c.digest(w.out.Object.Object); slices.Contains(w.to.Ignored, ignored) {
				w.out.Ignored = append(w.out.Ignored, ignored)
				return true, nil
			}
		}
		written, err := w.to.patch(ctx, w.out.Object, c, subresource)
		if err == nil {
			w.answered(written, c, subresource)
			return true, nil
		}
		if err = w.refused(ctx, err); err != nil {
			return false, fmt.Errorf("writing %s: %w", cmp.Or(subresource, "object"), err)
		}
		if w.to.Subresource && w.marks.Late != late {
			return false, nil
		}
	}
}

// answered takes in what the server made of a change.
func (w *writing) answered(written *unstructured.Unstructured, c change, subresource string) {
	before := w.out.Object
	// A change that is bound to no version may follow somebody else's, and that generation was not handled.
	if m := w.handled(); c.locked && m.Observed > 0 && m.Observed == before.GetGeneration() {
		w.from, w.made = w.marks.Observed, written.GetGeneration()
	}
	if len(w.wanted.Retired) > 0 && written.GetManagedFields() == nil {
		written.SetManagedFields(before.GetManagedFields()) // they say who set the conditions
	}
	if c.locked && w.to.Wrote != nil {
		w.to.Wrote(before, written)
	}
	w.conflicts = 0
	w.out.Dropped = append(w.out.Dropped, dropped(nil, c.tree, written.Object)...)
	w.out.Object = written
	if left := w.change(written, subresource); len(left.tree) > 0 {
		w.out.Ignored = append(w.out.Ignored, left.digest(written.Object))
	}
	w.out.Status = w.out.Status || subresource != ""
	w.out.Whole = w.out.Whole || subresource == ""
}

// refused reads the object again, and asks what is wanted of it, where a request has failed because somebody else wrote. The
// error says why there is no more to do.
func (w *writing) refused(ctx context.Context, said error) error {
	if notfound.Says(said, w.to.Resource, w.out.Object.GetName()) {
		return w.to.confirm(ctx, said)
	}
	if !apierrors.IsConflict(said) && !isForeignUID(said) || w.conflicts == conflictRetries {
		return said
	}
	w.conflicts++
	live, err := w.to.reread(ctx)
	if err != nil {
		return err
	}
	w.out.Object = live
	w.ask()
	return nil
}

func (t Target) patch(ctx context.Context, base *unstructured.Unstructured, c change, subresource string) (*unstructured.Unstructured, error) {
	guard := map[string]any{"uid": string(base.GetUID())}
	if c.locked {
		guard["resourceVersion"] = base.GetResourceVersion()
	}
	data, err := plain.AppendJSON(nil, overlay(c.tree, map[string]any{"metadata": guard}))
	if err != nil {
		return nil, err
	}
	var sub []string
	if subresource != "" {
		sub = append(sub, subresource)
	}
	manager := t.Manager
	if c.marks {
		manager = MarkerOf(Marker(manager), base)
	}
	return t.Client.Patch(ctx, base.GetName(), types.MergePatchType, data, metav1.PatchOptions{FieldManager: manager}, sub...)
}

// confirm looks whether an object is gone of which a write was told so. A server that is behind the
// others, or a resource that is registered anew, says so of objects that live, and what their
// handlers want would be dropped without a word.
func (t Target) confirm(ctx context.Context, said error) error {
	if _, err := t.reread(ctx); err != nil {
		return err
	}
	return fmt.Errorf("a read finds the object: %w", said)
}

// reread reads the object as it is now. The error is ErrGone when it is gone, or another one has its
// name.
func (t Target) reread(ctx context.Context) (*unstructured.Unstructured, error) {
	live, err := t.Client.Get(ctx, t.Object.GetName(), metav1.GetOptions{})
	if notfound.Says(err, t.Resource, t.Object.GetName()) {
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

// Refused reports whether an error is the server's refusal of what a write says, by a schema or by those who admit requests: the
// same write would be refused again, and another one may not be. That of a request which nobody may make is none.
func Refused(err error) bool {
	if apierrors.IsForbidden(err) { // the authorizer's words begin with who cannot do what
		return !strings.Contains(err.Error(), "cannot patch resource")
	}
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// isForeignUID reports whether the server refused because another object has the name now: a
// merge patch that names a uid is an attempt to change it, which is invalid.
func isForeignUID(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsInvalid(err) && errors.As(err, &status) && status.Status().Details != nil &&
		slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}
