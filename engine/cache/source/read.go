// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// Reader reads the caches of a resource's informers, and reports whether they have all objects. Its methods may be
// called by any number of goroutines.
type Reader struct {
	at        *Location
	informers *informers
	health    *Health
	scope     extent
}

// namespaces returns the namespaces of the scope; [""] means all at once. Known is false until they are known.
func (r *Reader) namespaces() (names []string, known bool) {
	return r.scope.Names(r.at.Resource().Namespaced)
}

// Informer returns the informer with the namespace's objects, or nil. For the empty namespace it returns the informer of all
// namespaces, or of a cluster-scoped resource.
func (r *Reader) Informer(namespace string) *watch.Handle {
	if i := r.informers.of(namespace); i != nil {
		return i.Handle
	}
	return nil
}

// Informers returns the informers that have objects of the namespace; if it is empty, all informers.
func (r *Reader) Informers(namespace string) []*watch.Handle {
	if namespace == "" {
		return r.informers.all()
	}
	if h := r.Informer(namespace); h != nil {
		return []*watch.Handle{h}
	}
	return nil
}

// IsBehind reports whether the API server's versions have gone back, and some informer has not listed again.
func (r *Reader) IsBehind() bool {
	return r.informers.watches.HasRolledBack() && slices.ContainsFunc(r.informers.all(), (*watch.Handle).Behind)
}

// Get returns the object that the cache has under the key.
func (r *Reader) Get(key cache.ObjectName) (*cached.Object, bool) {
	h := r.Informer(key.Namespace)
	if h == nil {
		return nil, false
	}
	return h.Object(key)
}

// Undelivered reports whether the deletion of an object that the cache no longer has is not delivered yet. It is
// delivered when the handler has called [Reader.Found] or returned.
func (r *Reader) Undelivered(key cache.ObjectName) bool {
	i := r.informers.of(key.Namespace)
	return i != nil && i.ledger.names(key)
}

// Found must be called by a handler when it has found whom an event of an object concerns, before it wakes them.
// Otherwise they would find the deletion undelivered, and nothing would wake them again.
func (r *Reader) Found(key cache.ObjectName) {
	if i := r.informers.of(key.Namespace); i != nil {
		i.ledger.found(key)
	}
}

// Objects returns the cached objects of a namespace, in no order; if it is empty, all objects.
func (r *Reader) Objects(namespace string) []*cached.Object {
	var out []*cached.Object
	for _, h := range r.Informers(namespace) {
		for _, o := range h.Objects() {
			if namespace == "" || o.GetNamespace() == namespace {
				out = append(out, o)
			}
		}
	}
	return out
}

// OwnedBy returns the objects that the owner of this uid controls, or that have its label, in no order.
func (r *Reader) OwnedBy(owner string) []*cached.Object {
	var out []*cached.Object
	for _, h := range r.informers.all() {
		out = append(out, h.OwnedBy(owner)...)
	}
	return out
}

// Stats returns the number of objects in the cache, and the time of the last event.
func (r *Reader) Stats() (objects int, last time.Time) {
	for _, h := range r.informers.all() {
		objects += h.Len()
		if at := h.State().LastEvent; at.After(last) {
			last = at
		}
	}
	return objects, last
}

// Size returns the number of bytes that the cache holds of the objects. It looks at each of them.
func (r *Reader) Size() (bytes int) {
	for _, h := range r.informers.all() {
		for _, o := range h.Objects() {
			bytes += o.Size()
		}
	}
	return bytes
}

// Whole reports whether the cache has all objects of a resource in the namespace, with all fields, and follows changes.
// The empty namespace stands for all.
func (r *Reader) Whole(gvr schema.GroupVersionResource, namespace string) bool {
	src := r.informers.source
	compact := src.Keep == "" && src.Notes == "" && (src.Profile == "" || src.Profile == dsl.CacheCompact)
	if !compact || src.LabelSelector != "" || src.FieldSelector != "" || r.at.Resource().GVR != gvr {
		return false
	}
	h := r.Informer(namespace)
	return h != nil && h.Synced() && !h.State().Blind
}

// Partial reports whether the cache omits fields of objects.
func (r *Reader) Partial() bool { return !r.informers.source.IsWhole() }

// CanDeselect reports whether an object may leave the cache without being deleted.
func (r *Reader) CanDeselect() bool {
	src := r.informers.source
	return src.LabelSelector != "" || src.FieldSelector != "" || r.scope.Live()
}

// Leaves reports whether a namespace is outside the scope. While the cache has objects of it, their deletions are about
// to be delivered. The caches of other resources may have none already.
func (r *Reader) Leaves(namespace string) bool {
	return namespace != "" && r.scope.IsOutside(namespace)
}

// Readable returns an error unless the cache has the objects of the namespace; if it is empty, of all. A namespace
// outside the scope is readable and has no objects.
func (r *Reader) Readable(namespace string) error {
	found := r.Informers(namespace)
	for _, h := range found {
		if err := r.complete(h); err != nil {
			return r.refusal(err)
		}
	}
	if names, _ := r.namespaces(); len(found) == 0 && (len(r.informers.opened()) == 0 || slices.Contains(names, namespace)) {
		return r.refusal(r.unread(namespace))
	}
	return nil
}

// Complete returns an error unless the cache has all objects in the scope. A resource without a CRD has no objects; a
// resource that is not served may have some.
func (r *Reader) Complete() error {
	if r.at.Absent() {
		return nil
	}
	return r.refusal(r.lists("", r.unread))
}

// Listed returns an error unless the cache has all objects of a namespace; if it is empty, of all. Unlike for
// [Reader.Complete], the error for a missing right does not wrap the API server's, because callers fail for any reason.
func (r *Reader) Listed(namespace string) error {
	return r.lists(namespace, func(in string) error {
		now := r.health.In(in)
		return fmt.Errorf("%s is %s: %s", r.at.name, now.Phase, now.Text)
	})
}

// lists implements Complete and Listed; unwatched returns the error for a namespace without an informer.
func (r *Reader) lists(namespace string, unwatched func(string) error) error {
	names, known := r.namespaces()
	if !known || !r.at.Known() {
		return unwatched("")
	}
	for _, ns := range names {
		if namespace != "" && ns != "" && ns != namespace {
			continue
		}
		h := r.Informer(ns)
		if h == nil {
			return unwatched(ns)
		}
		if err := r.complete(h); err != nil {
			return err
		}
	}
	return nil
}

// complete returns an error if an informer's first listing is not complete, or if the informer is blind.
func (r *Reader) complete(h *watch.Handle) error {
	if !h.Synced() {
		return fmt.Errorf("reading %s: its first listing is not complete", r.at.name)
	}
	now := h.State()
	if !now.Blind {
		return nil
	}
	if ns := h.Source().Namespace; r.health.In(ns).Phase == Forbidden {
		return r.unread(ns)
	}
	return &UnreadError{Source: r.at.name.String(), Phase: Faulty, Reason: now.Fault.Error()}
}

// Unwatched returns the reason why a namespace has no informer.
func (r *Reader) Unwatched(namespace string) error {
	names, _ := r.scope.Names(true)
	switch {
	case slices.Contains(names, namespace):
		return r.refusal(r.unread(namespace))
	case r.scope.IsMissing(namespace):
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, namespace)
	}
	return errors.New("the namespace is not one that the operator watches")
}

// unread returns the error of a read in a namespace.
func (r *Reader) unread(namespace string) error {
	now := r.health.In(namespace)
	return &UnreadError{Source: r.at.name.String(), Phase: now.Phase, Reason: now.Text}
}

// refusal adds the API server's error to an [UnreadError] about a missing right.
func (r *Reader) refusal(err error) error {
	unread, is := errors.AsType[*UnreadError](err)
	if !is || unread.Phase != Forbidden {
		return err
	}
	unread.answer = apierrors.NewForbidden(r.at.Resource().GVR.GroupResource(), "", fmt.Errorf("the operator may not %s", unread.Reason))
	return unread
}

// Status returns the status of the source.
func (r *Reader) Status() Status { return r.health.Status() }

// Settled is closed when the source runs for the first time, or its first fault is known.
func (r *Reader) Settled() <-chan struct{} { return r.health.Settled() }

// Missing returns the rights that the source lacks, in no order.
func (r *Reader) Missing() []ops.MissingRight {
	var out []ops.MissingRight
	for text, n := range r.health.Missing() {
		verb, subresource, found := strings.Cut(text, " ")
		one := ops.MissingRight{Resource: r.at.Resource().GVR.GroupResource().String(), Verb: verb, Namespaces: n}
		if found {
			one.Resource += "/" + subresource
		}
		out = append(out, one)
	}
	return out
}

// Check returns the status of the source as a check of that name. If a right is missing, the message ends with by, which
// names the account. A new listing only has another message, unless it fails or takes long.
func (r *Reader) Check(name, by string) ops.Check {
	c, now := ops.Check{Name: name}, r.Status()
	if now.Well() {
		if r.IsBehind() {
			c.Message = "listing again, because the API server's versions have gone back"
		}
		return c
	}
	c.State, c.Message = ops.Warn, string(now.Phase)
	switch {
	case now.Phase == Running:
		c.Message = "watched, but not in every namespace: " + now.Warning
	case now.Message != "":
		c.Message += ": " + now.Message
	}
	if len(r.Missing()) > 0 {
		c.Message += by
	}
	return c
}
