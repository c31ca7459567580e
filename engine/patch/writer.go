// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package patch writes what a pass accumulated: at most one request for the object and one for
// its status, and none for what the object has already.
package patch

import (
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
	"github.com/handwerk-dev/handwerk/engine/gone"
)

// conflictRetries is how often a write that needs the newest list (finalizers, conditions) is
// worked out again after somebody else wrote in between.
const conflictRetries = 5

// ErrGone means that the object is gone, or that another one has its name now.
var ErrGone = errors.New("the object is gone")

// Marks are the engine's own wishes for an object.
type Marks struct {
	// Annotation is the key of the state annotation; empty leaves it alone.
	Annotation string
	// State is its value; empty removes it.
	State string
	// Along are annotations that are written when the object is written to anyhow.
	Along map[string]string
	// Finalizer is the operator's finalizer.
	Finalizer string
	// Add and Remove say what to do with the finalizer; at most one is set.
	Add, Remove bool
	// Condition is a condition of the engine's own to be set, nil when there is none; Mended is the
	// type of one to be taken away, empty when there is none.
	Condition *metav1.Condition
	Mended    string
	// Locked: what is asked for holds only for the version that it was worked out from.
	Locked bool
	// Observed is what status.observedGeneration is to be; zero leaves it alone.
	Observed int64
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
	// Manager is the field manager.
	Manager string
	// Prefix is that of the annotations of the engine's own; empty where none is known.
	Prefix string
	// Ignored are changes that the server did not make when they were sent, from Result.Ignored. They
	// are not sent again while the object is as it was then.
	Ignored []uint64
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

// Write sends what is wanted and the target does not have. Status goes first: a crash between the two
// requests must not leave the object marked as handled with its status missing.
//
// What handlers want, and lists that others write too (finalizers, conditions), is sent with the version
// that it was worked out from; after a conflict the wish is asked again. The error wraps ErrGone when the
// object is gone, which a read has confirmed; other errors are the server's.
func Write(ctx context.Context, t Target, wish Wish) (Result, error) {
	r := Result{Object: t.Object}
	p, m := wish(t.Object)
	again := func(o *unstructured.Unstructured) { p, m = wish(o) }
	if t.Subresource {
		status := func(o *unstructured.Unstructured) change {
			c := t.statusChange(o, p, m)
			c.locked = true // the status endpoint of a custom resource does not look at the uid
			return c
		}
		if err := t.send(ctx, &r, "status", status, again); err != nil {
			return r, fmt.Errorf("writing status: %w", err)
		}
	}
	whole := func(o *unstructured.Unstructured) change {
		c := t.objectChange(o, p, m)
		if !t.Subresource {
			c = c.join(t.statusChange(o, p, m))
		}
		return c
	}
	if err := t.send(ctx, &r, "", whole, again); err != nil {
		return r, fmt.Errorf("writing object: %w", err)
	}
	return r, nil
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

// send works out a change and sends it, again from a fresh read after a conflict.
func (t Target) send(ctx context.Context, r *Result, subresource string, work func(*unstructured.Unstructured) change, again func(*unstructured.Unstructured)) error {
	for attempt := 0; ; attempt++ {
		c := work(r.Object)
		if len(c.tree) == 0 {
			return nil
		}
		if len(t.Ignored) > 0 {
			if ignored := c.digest(r.Object.Object); slices.Contains(t.Ignored, ignored) {
				r.Ignored = append(r.Ignored, ignored)
				return nil
			}
		}
		written, err := t.patch(ctx, r.Object, c, subresource)
		if err == nil {
			r.Dropped = append(r.Dropped, dropped(nil, c.tree, written.Object)...)
			r.Object = written
			if left := work(written); len(left.tree) > 0 {
				r.Ignored = append(r.Ignored, left.digest(written.Object))
			}
			r.Status = r.Status || subresource != ""
			r.Whole = r.Whole || subresource == ""
			return nil
		}
		if gone.Says(err, t.Resource, r.Object.GetName()) {
			return t.confirm(ctx, err)
		}
		if !apierrors.IsConflict(err) && !isForeignUID(err) || attempt == conflictRetries {
			return err
		}
		if r.Object, err = t.reread(ctx); err != nil {
			return err
		}
		again(r.Object)
	}
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
	return t.Client.Patch(ctx, base.GetName(), types.MergePatchType, data, metav1.PatchOptions{FieldManager: t.Manager}, sub...)
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
	if gone.Says(err, t.Resource, t.Object.GetName()) {
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
