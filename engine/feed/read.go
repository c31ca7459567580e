// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/engine/cached"
	"github.com/handwerk-dev/handwerk/engine/transport"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// UnreadError is why a feed's objects cannot be read from the cache. Where a right is missing it comes with the
// answer that the API server would give, so that apierrors.IsForbidden tells.
type UnreadError struct {
	// Feed names the resource.
	Feed string
	// Phase and Reason are how the feed is, for a namespace or as a whole.
	Phase  Phase
	Reason string
	// answer is what the API server would say, nil where that is not asked for.
	answer error
}

// Error names the resource and the reason, in the words of the API server where they are known.
func (e *UnreadError) Error() string {
	if e.answer != nil {
		return e.answer.Error()
	}
	return fmt.Sprintf("reading %s: it is %s: %s", e.Feed, e.Phase, e.Reason)
}

// Unwrap returns the answer of the API server.
func (e *UnreadError) Unwrap() error { return e.answer }

// Unread reports whether an error is that of a feed which may not read, or cannot, and logs so itself.
func Unread(err error) bool {
	unread, is := errors.AsType[*UnreadError](err)
	return is && (unread.Phase == Forbidden || unread.Phase == Faulty)
}

// Unanswered reports whether an error says that the API server did not answer, also to a feed.
func Unanswered(err error) bool {
	unread, is := errors.AsType[*UnreadError](err)
	return is && unread.Phase == Faulty || transport.Unanswered(err)
}

// refusal says why objects cannot be read in the words of the API server, when it is that a right is missing:
// then it is known from other errors by who handles them.
func (f *Feed) refusal(err error) error {
	unread, is := errors.AsType[*UnreadError](err)
	if !is || unread.Phase != Forbidden {
		return err
	}
	unread.answer = apierrors.NewForbidden(f.Resource().GVR.GroupResource(), "", fmt.Errorf("the operator may not %s", unread.Reason))
	return unread
}

// unread returns why the objects of a namespace cannot be read.
func (f *Feed) unread(namespace string) error {
	now := f.health.In(namespace)
	return &UnreadError{Feed: f.settings.Name.String(), Phase: now.Phase, Reason: now.Text}
}

// Readable returns why the cache cannot be asked for objects of the namespace, or of any when it is empty; nil
// when it can. In namespaces out of scope there is nothing, which can be told.
func (f *Feed) Readable(namespace string) error {
	found := f.Informers(namespace)
	for _, h := range found {
		if err := f.complete(h); err != nil {
			return f.refusal(err)
		}
	}
	if names, _ := f.namespaces(); len(found) == 0 && (len(f.opened()) == 0 || slices.Contains(names, namespace)) {
		return f.refusal(f.unread(namespace))
	}
	return nil
}

// Complete returns why the cache may not have every object in the scope as it is; nil when it has. A resource
// without a CRD has no objects; that it is not served says nothing.
func (f *Feed) Complete() error {
	if f.Absent() {
		return nil
	}
	return f.refusal(f.lists("", f.unread))
}

// Listed returns why the cache may not have every object of a namespace, or of all when it is empty, as it is; nil
// when it has. Other than [Feed.Complete] it makes no difference for a missing right: who needs what is not listed has
// failed, whatever the reason.
func (f *Feed) Listed(namespace string) error {
	return f.lists(namespace, func(in string) error {
		now := f.health.In(in)
		return fmt.Errorf("%s is %s: %s", f.settings.Name, now.Phase, now.Text)
	})
}

// lists is Listed; unwatched says why a namespace has no informer.
func (f *Feed) lists(namespace string, unwatched func(string) error) error {
	names, known := f.namespaces()
	if !known || !f.Known() {
		return unwatched("")
	}
	for _, ns := range names {
		if namespace != "" && ns != "" && ns != namespace {
			continue
		}
		h := f.Informer(ns)
		if h == nil {
			return unwatched(ns)
		}
		if err := f.complete(h); err != nil {
			return err
		}
	}
	return nil
}

// complete returns why an informer's cache is not to be taken for what there is: it is not complete yet, or it has
// not been told of changes for long.
func (f *Feed) complete(h *watch.Handle) error {
	if !h.Synced() {
		return fmt.Errorf("reading %s: its first listing is not complete", f.settings.Name)
	}
	now := h.State()
	if !now.Blind {
		return nil
	}
	if ns := h.Source().Namespace; f.health.In(ns).Phase == Forbidden {
		return f.unread(ns)
	}
	return &UnreadError{Feed: f.settings.Name.String(), Phase: Faulty, Reason: now.Fault.Error()}
}

// ListingLook is how long to wait before one looks again whether a listing that runs is complete.
const ListingLook = time.Second

// Unwatched says why the objects of a namespace that has no informer are not watched.
func (f *Feed) Unwatched(namespace string) error {
	names, _ := f.settings.Scope.Names(true)
	switch {
	case slices.Contains(names, namespace):
		return f.refusal(f.unread(namespace))
	case f.settings.Scope.Live() && f.settings.Scope.Matches(namespace): // and so does not exist, or the names would have it
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, namespace)
	}
	return errors.New("the namespace is not one that the operator watches")
}

// Blank returns an object with nothing but the kind.
func (f *Feed) Blank() *unstructured.Unstructured {
	served := f.Resource()
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(served.GVR.GroupVersion().WithKind(served.Kind))
	return o
}

// Tree returns an object of the cache as it was last seen, as much of it as is held: at least its kind, name, UID and
// version. It is the caller's.
func (f *Feed) Tree(o *cached.Object) *unstructured.Unstructured {
	if t := o.Tree(); t != nil {
		return t
	}
	t := f.Blank()
	t.SetNamespace(o.GetNamespace())
	t.SetName(o.GetName())
	t.SetUID(o.GetUID())
	t.SetResourceVersion(o.GetResourceVersion())
	return t
}
