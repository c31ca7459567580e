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

// UnreadError is the error of a read from a cache that is not complete. If a right is missing, it wraps the error that the API server
// would return, so that apierrors.IsForbidden is true.
type UnreadError struct {
	// Feed names the resource.
	Feed string
	// Phase and Reason are those of the feed, in a namespace or as a whole.
	Phase  Phase
	Reason string
	// answer is the error that the API server would return, or nil.
	answer error
}

// Error returns the error of the API server, or the resource and the reason.
func (e *UnreadError) Error() string {
	if e.answer != nil {
		return e.answer.Error()
	}
	return fmt.Sprintf("reading %s: it is %s: %s", e.Feed, e.Phase, e.Reason)
}

// Unwrap returns the answer of the API server.
func (e *UnreadError) Unwrap() error { return e.answer }

// Unread reports whether an error is that of a forbidden or faulty feed. Such a feed logs its state itself.
func Unread(err error) bool {
	unread, is := errors.AsType[*UnreadError](err)
	return is && (unread.Phase == Forbidden || unread.Phase == Faulty)
}

// Unanswered reports whether an error says that the API server did not answer, also to a feed.
func Unanswered(err error) bool {
	unread, is := errors.AsType[*UnreadError](err)
	return is && unread.Phase == Faulty || transport.Unanswered(err)
}

// refusal adds the API server's error to an [UnreadError] about a missing right.
func (f *Feed) refusal(err error) error {
	unread, is := errors.AsType[*UnreadError](err)
	if !is || unread.Phase != Forbidden {
		return err
	}
	unread.answer = apierrors.NewForbidden(f.Resource().GVR.GroupResource(), "", fmt.Errorf("the operator may not %s", unread.Reason))
	return unread
}

// unread returns the error of a read in a namespace.
func (f *Feed) unread(namespace string) error {
	now := f.health.In(namespace)
	return &UnreadError{Feed: f.settings.Name.String(), Phase: now.Phase, Reason: now.Text}
}

// Readable returns an error unless the cache has the objects of the namespace, or of all when it is empty. A namespace out of scope
// is readable and has no objects.
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

// Complete returns an error unless the cache has all objects in the scope. A resource without a CRD has no objects; one that is not
// served may have some.
func (f *Feed) Complete() error {
	if f.Absent() {
		return nil
	}
	return f.refusal(f.lists("", f.unread))
}

// Listed returns an error unless the cache has all objects of a namespace, or of all when it is empty. Unlike [Feed.Complete], its error
// for a missing right is not that of the API server, because the caller fails for any reason.
func (f *Feed) Listed(namespace string) error {
	return f.lists(namespace, func(in string) error {
		now := f.health.In(in)
		return fmt.Errorf("%s is %s: %s", f.settings.Name, now.Phase, now.Text)
	})
}

// lists implements Complete and Listed; unwatched returns the error for a namespace without an informer.
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

// complete returns an error if an informer's first listing is not complete, or if the informer is blind.
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

// ListingLook is the interval of checks whether a listing is complete.
const ListingLook = time.Second

// Unwatched returns the reason why a namespace has no informer.
func (f *Feed) Unwatched(namespace string) error {
	names, _ := f.cluster.Scope.Names(true)
	switch {
	case slices.Contains(names, namespace):
		return f.refusal(f.unread(namespace))
	case f.cluster.Scope.Live() && f.cluster.Scope.Matches(namespace): // and so does not exist, or the names would have it
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

// Tree returns a copy of an object of the cache, with the fields that the cache holds: at least kind, name, UID and version.
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
