// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
	"github.com/handwerk-dev/handwerk/engine/decide/collision"
)

// Reader implements [dsl.ChildReader] for filters, and for the attempt of a handler.
type Reader struct {
	session *Session
	// span and attempt belong to a handler. Filters have none.
	span    *transport.Span
	attempt collision.Attempt
	// others describes the handlers as they were when the attempt began.
	others Others
	failed *atomic.Bool
	// shares is true if the caller does not change the results, so nothing is copied.
	shares bool
}

var _ dsl.ChildReader = (*Reader)(nil)

// Shared returns the same reader without copies; see [dsl.SharedReader].
func (c *Reader) Shared() dsl.ChildReader {
	shared := *c
	shared.shares = true
	return &shared
}

// Failed reports whether a read has failed that may succeed a moment later.
func (c *Reader) Failed() bool { return c.failed.Load() }

// note records the error of a read, and returns it.
func (c *Reader) note(err error) error {
	if err != nil && !dsl.IsPermanent(err) {
		c.failed.Store(true)
	}
	return err
}

// Get returns one child from the cache, or as this reconcile has applied it.
func (c *Reader) Get(resource, name string) (*unstructured.Unstructured, error) {
	_, found, err := c.get(resource, name)
	return found, err
}

// get is Get, and also returns the child's source. The name is namespace/name if the child is not in the owner's
// namespace.
func (c *Reader) get(resource, name string) (*source.Source, *unstructured.Unstructured, error) {
	f, err := c.declared(resource)
	if err != nil {
		return nil, nil, err
	}
	key := cache.ObjectName{Name: name}
	if namespace, rest, both := strings.Cut(name, "/"); both {
		key = cache.ObjectName{Namespace: namespace, Name: rest}
	} else if f.Resource().Namespaced {
		key.Namespace = c.session.in.Object.GetNamespace()
	}
	found := c.session.lister.get(f, id{f.Resource().GVR, key})
	if found == nil || !c.session.owner().Has(found) {
		return f, nil, nil
	}
	return f, found, nil
}

// declared returns the source of an owned resource. It returns the source's error while the objects of the owner's
// namespace cannot be read.
func (c *Reader) declared(resource string) (*source.Source, error) {
	name, err := dsl.ParseResourceName(resource)
	if err != nil {
		return nil, dsl.Permanent(err)
	}
	if kind := c.session.family.kinds.named(name); kind != nil {
		return kind, c.note(kind.Readable(c.session.in.Object.GetNamespace()))
	}
	return nil, dsl.Permanent(fmt.Errorf("reading children: %s is not declared with owns", resource))
}

// List returns the children of a resource from the cache, or as this reconcile has applied them.
func (c *Reader) List(resource string) ([]*unstructured.Unstructured, error) {
	f, err := c.declared(resource)
	if err != nil {
		return nil, err
	}
	return c.session.lister.list(f, c.session.owner(), c.shares, nil), nil
}

// All returns the children that were applied with names. It fails if the children of a kind cannot be read, because
// callers take a missing child to be gone. Among children of one name, those that this reconcile has applied come first.
func (c *Reader) All() ([]dsl.ChildObject, error) { return c.all(nil) }

// all is All without the cached objects that a function selects.
func (c *Reader) all(skips func(*cached.Object) bool) ([]dsl.ChildObject, error) {
	s, owner := c.session, c.session.owner()
	if err := s.family.kinds.complete(); err != nil {
		return nil, c.note(err)
	}
	// Only the reconcile that applied unowned children knows them.
	found := s.lister.matching(func(o *unstructured.Unstructured) bool { return owner.IsOrphan(o) }, c.shares)
	for kind := range s.family.kinds.all {
		found = append(found, s.lister.list(kind, owner, c.shares, skips)...)
	}
	var out []dsl.ChildObject
	for _, o := range found {
		if spec, named := owner.Spec(o); named {
			spec.Handler = collision.Renamed(s.family.settings.Handlers, spec.Handler)
			out = append(out, dsl.ChildObject{ChildSpec: spec, Object: o})
		}
	}
	// A child that gets another object name exists twice until the old object is deleted.
	stale := s.lister.staleRank(out)
	slices.SortFunc(out, func(a, b dsl.ChildObject) int {
		return cmp.Or(cmp.Compare(a.Handler, b.Handler), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key),
			cmp.Compare(stale[a.Object.GetUID()], stale[b.Object.GetUID()]),
			cmp.Compare(a.Object.GetNamespace(), b.Object.GetNamespace()), cmp.Compare(a.Object.GetName(), b.Object.GetName()),
			cmp.Compare(a.Object.GetKind(), b.Object.GetKind()))
	})
	return out, nil
}

// Missed reports whether objects claim to be children of an owner that has no inventory.
func (c *Reader) Missed() (bool, error) {
	if c.session.owner().Inventory != nil {
		return false, nil
	}
	if err := c.session.family.kinds.complete(); err != nil {
		return false, err
	}
	return len(c.session.unlisted()) > 0, nil
}

// Stale reports whether Apply would change a child.
func (c *Reader) Stale(ctx context.Context, desired any, spec dsl.ChildSpec) (bool, *unstructured.Unstructured, error) {
	if c.span != nil {
		within, done, err := c.span.Enter(ctx)
		if err != nil {
			return false, nil, fmt.Errorf("comparing child: %w", err)
		}
		defer done()
		ctx = within
	}
	w, err := c.want(ctx, desired, spec)
	if err != nil {
		return false, nil, err
	}
	if c.attempt.Handler != "" && !c.session.in.Deleting {
		c.session.Claims.BeginApply(w.id, w.maker)
	}
	live := c.session.lister.get(w.feed, w.id)
	if live == nil && (w.feed == nil || w.feed.Informer(w.key.Namespace) == nil) {
		live, err = c.session.family.settings.Host.Read(ctx, w.gvr, w.key)
		if err != nil {
			return false, nil, fmt.Errorf("reading %s: %w", w.place().Describe(), err)
		}
	} else if live, err = w.entire(ctx, live); err != nil {
		return false, nil, err
	}
	if live == nil {
		return false, nil, nil
	}
	if c.session.family.renamer.Finds(live) {
		live = c.session.family.renamer.Renamed(live)
	}
	stale, err := w.applier.Stale(w.object, live)
	if err != nil {
		return false, nil, err
	}
	return stale, live, nil
}
