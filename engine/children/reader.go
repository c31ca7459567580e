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

// Reader is dsl.ChildReader for filters, and for the attempt of a handler.
type Reader struct {
	session *Session
	// span and attempt are those of a handler; filters have none.
	span    *transport.Span
	attempt collision.Attempt
	// others tells of the handlers when the attempt began.
	others Others
	failed *atomic.Bool
	// shares: its user does not change what it gets, so nothing is copied.
	shares bool
}

var _ dsl.ChildReader = (*Reader)(nil)

// Shared implements what [dsl.SharedReader] asks for.
func (c *Reader) Shared() dsl.ChildReader {
	shared := *c
	shared.shares = true
	return &shared
}

// Failed reports whether some children could not be read that may be readable a moment later.
func (c *Reader) Failed() bool { return c.failed.Load() }

// note notes the error of a read, and returns it.
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

// get is Get that returns the child's feed, too. The name is namespace/name where it is not in the owner's.
func (c *Reader) get(resource, name string) (*source.Source, *unstructured.Unstructured, error) {
	f, err := c.declared(resource)
	if err != nil {
		return nil, nil, err
	}
	key := cache.ObjectName{Name: name}
	if namespace, rest, both := strings.Cut(name, "/"); both {
		key = cache.ObjectName{Namespace: namespace, Name: rest}
	} else if f.Resource().Namespaced {
		key.Namespace = c.session.pass.Object.GetNamespace()
	}
	found := c.session.lister.get(f, id{f.Resource().GVR, key})
	if found == nil || !c.session.owner().Has(found) {
		return f, nil, nil
	}
	return f, found, nil
}

// declared returns the feed of an owned resource, once its objects in the owner's namespace can be read.
func (c *Reader) declared(resource string) (*source.Source, error) {
	name, err := dsl.ParseResourceName(resource)
	if err != nil {
		return nil, dsl.Permanent(err)
	}
	if kind := c.session.family.kinds.named(name); kind != nil {
		return kind, c.note(kind.Readable(c.session.pass.Object.GetNamespace()))
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

// All returns the children that were applied with names. It fails rather than leave some out, for
// what it does not return is taken to be gone. Of those with one name, those come first that this reconcile has applied.
func (c *Reader) All() ([]dsl.ChildObject, error) { return c.all(nil) }

// all is All without cached objects that a function selects.
func (c *Reader) all(skips func(*cached.Object) bool) ([]dsl.ChildObject, error) {
	s, owner := c.session, c.session.owner()
	if err := s.family.kinds.complete(); err != nil {
		return nil, c.note(err)
	}
	// unowned ones are known to the reconcile that applied them alone
	found := s.lister.matching(func(o *unstructured.Unstructured) bool { return owner.Forgets(o) }, c.shares)
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
	// A child that has got another name is there twice until the one with the old name is deleted.
	stale := s.lister.staleRank(out)
	slices.SortFunc(out, func(a, b dsl.ChildObject) int {
		return cmp.Or(cmp.Compare(a.Handler, b.Handler), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key),
			cmp.Compare(stale[a.Object.GetUID()], stale[b.Object.GetUID()]),
			cmp.Compare(a.Object.GetNamespace(), b.Object.GetNamespace()), cmp.Compare(a.Object.GetName(), b.Object.GetName()),
			cmp.Compare(a.Object.GetKind(), b.Object.GetKind()))
	})
	return out, nil
}

// Missed reports whether objects say that they are children, and there is no record.
func (c *Reader) Missed() (bool, error) {
	if c.session.owner().Record != nil {
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
	if c.attempt.Handler != "" && !c.session.pass.Deleting {
		c.session.Claims.Reach(w.id, w.maker)
	}
	live := c.session.lister.get(w.feed, w.id)
	if live == nil && (w.feed == nil || w.feed.Informer(w.key.Namespace) == nil) {
		live, err = c.session.family.settings.Host.Read(ctx, w.gvr, w.key)
		if err != nil {
			return false, nil, fmt.Errorf("reading %s: %w", w.place().People(), err)
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
