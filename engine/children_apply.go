// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/catalog"
	"github.com/handwerk-dev/handwerk/engine/child"
	"github.com/handwerk-dev/handwerk/engine/feed"
)

// wanted is a child that is to be applied.
type wanted struct {
	spec dsl.ChildSpec
	// object is what is applied, whole.
	object *unstructured.Unstructured
	served catalog.Resource
	// enters: it has to be in the owner's record.
	enters bool
	// feed has the children of this kind; nil for an unowned one of another kind.
	feed    *feed.Feed
	key     cache.ObjectName
	applier child.Applier
	client  dynamic.ResourceInterface
}

// id names the child within the pass.
func (w *wanted) id() childID { return idOf(w.served.GVR, w.key) }

// Apply makes a child as desired says.
func (c *children) Apply(ctx context.Context, desired any, specs ...dsl.ChildSpec) (*unstructured.Unstructured, error) {
	ctx, done, err := c.write(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	var spec dsl.ChildSpec
	switch {
	case len(specs) > 1:
		return nil, dsl.Permanent(errors.New("applying child: there is more than one ChildSpec"))
	case len(specs) == 1:
		spec = specs[0]
	}
	w, err := c.want(ctx, desired, spec)
	if err != nil {
		return nil, err
	}
	c.pass.claims.Reach(w.id(), c.maker(w.spec))
	live := c.pass.known(w)
	if w.enters {
		if err := c.pass.enrol(ctx, w, live); err != nil {
			return nil, err
		}
	}
	result, deed, err := w.applier.Apply(ctx, w.client, w.object, live)
	if deed != "" {
		c.pass.wrote(w.feed, w.served.GVR, result)
		c.did(deed, nameFor(result), w.applier.Found.String())
	}
	if err != nil {
		return nil, c.pass.unapplied(ctx, w, err)
	}
	c.pass.hold(w.id(), result)
	return result, nil
}

// unapplied sees to the record after a child could not be applied.
func (p *pass) unapplied(ctx context.Context, w *wanted, err error) error {
	switch {
	case !w.enters:
	case !errors.Is(err, dsl.ErrNotOwned):
		p.doubt(w.place()) // the answer may be all that was lost
	case w.applier.Vacant:
		if struck := p.strike(ctx, w.place()); struck != nil {
			return errors.Join(err, struck)
		}
	}
	return err
}

// Stale reports whether Apply would change a child.
func (c *children) Stale(ctx context.Context, desired any, spec dsl.ChildSpec) (bool, *unstructured.Unstructured, error) {
	ctx, done := c.read(ctx)
	defer done()
	w, err := c.want(ctx, desired, spec)
	if err != nil {
		return false, nil, err
	}
	if c.attempt.Handler != "" && c.pass.deletion == "" {
		c.pass.claims.Reach(w.id(), c.maker(w.spec))
	}
	live := c.pass.known(w)
	if live == nil && (w.feed == nil || w.feed.Informer(w.key.Namespace) == nil) {
		live, err = c.pass.r.engine.reader(ctx, w.served.GVR, w.key)
		if err != nil {
			return false, nil, fmt.Errorf("reading %s %s: %w", w.object.GetKind(), w.key, err)
		}
	}
	if live == nil {
		return false, nil, nil
	}
	stale, err := w.applier.Stale(w.object, live)
	if err != nil {
		return false, nil, err
	}
	return stale, live, nil
}

// maker names who applies a child: the handler, or that step of it which the child names.
func (c *children) maker(spec dsl.ChildSpec) string {
	return c.pass.claims.Maker(c.attempt.Handler, spec.Handler)
}

// answerSoon is how long a handler waits for another one to say whether it keeps a child.
const answerSoon = time.Second

// contest returns an error where a child that is there, and that this handler would change, is kept otherwise by
// another handler of the object.
func (c *children) contest(w *wanted, live *unstructured.Unstructured) error {
	holder, asked := c.pass.claims.Contest(w.id(), c.maker(w.spec), c.attempt, w.applier.Owner.Keys.Maker(live))
	switch {
	case holder == "":
		return nil
	case asked:
		return dsl.Waiting(fmt.Sprintf("%s: handler %s made it, and is to say whether it keeps it", nameFor(w.object), holder), answerSoon)
	}
	return &dsl.CollisionError{Kind: w.object.GetKind(), Namespace: w.key.Namespace, Name: w.key.Name, Handler: holder}
}

// want works out what applying desired comes to. What is wrong with it for good is permanent.
func (c *children) want(ctx context.Context, desired any, spec dsl.ChildSpec) (*wanted, error) {
	if err := spec.Validate(); err != nil {
		return nil, dsl.Permanent(fmt.Errorf("applying child: %w", err))
	}
	plain, err := child.Plain(desired)
	if err != nil {
		return nil, dsl.Permanent(err)
	}
	w := &wanted{spec: spec}
	if err := c.pass.r.place(ctx, w, plain, cmp.Or(plain.GetNamespace(), c.pass.object.GetNamespace())); err != nil {
		return nil, err
	}
	owner := c.pass.owner()
	if w.object, err = owner.Desired(plain, w.served.Namespaced, spec); err != nil {
		return nil, err
	}
	w.key = nameOf(w.object)
	w.enters = owner.Enters(spec, w.key.Namespace)
	if w.enters && w.feed.Informer(w.key.Namespace) == nil {
		// It would never be found again, and so never be deleted.
		return nil, fmt.Errorf("applying %s %s: %w", w.object.GetKind(), w.key, w.feed.Unwatched(w.key.Namespace))
	}
	w.client = c.pass.r.engine.writer(w.served.GVR, w.key.Namespace)
	w.applier = child.Applier{
		Owner: owner, Manager: c.pass.r.engine.op.Name, Adopt: spec.Adopt,
		Settled: c.pass.settled(), Guard: &c.pass.mu, Found: &child.Drift{}, Note: child.Note(spec, c.attempt.Handler),
	}
	if c.attempt.Handler != "" {
		w.applier.Contest = func(live *unstructured.Unstructured) error { return c.contest(w, live) }
	}
	return w, nil
}

// place finds where an object of this kind goes, in this namespace if it has one. Only an unowned child may be of a kind that is not
// declared, or not readable.
func (r *resource) place(ctx context.Context, w *wanted, o *unstructured.Unstructured, namespace string) (err error) {
	kind := o.GroupVersionKind()
	w.feed, err = r.childFeed(kind, namespace)
	switch {
	case err == nil:
		w.served = w.feed.Resource()
	case w.spec.Ownership == dsl.Unowned:
		w.feed = nil
		if w.served, err = r.engine.catalog.KindOf(ctx, kind); err != nil {
			return fmt.Errorf("applying %s %s: %w", kind.Kind, o.GetName(), err)
		}
	default:
		return fmt.Errorf("applying %s %s: %w", kind.Kind, o.GetName(), err)
	}
	return nil
}

// childFeed returns the feed of the owned resource that serves this kind, once its objects in the
// namespace can be read.
func (r *resource) childFeed(kind schema.GroupVersionKind, namespace string) (*feed.Feed, error) {
	for _, f := range r.children {
		served := f.Resource()
		if !f.Known() || served.Kind != kind.Kind || served.GVR.Group != kind.Group {
			continue
		}
		if served.GVR.Version != kind.Version {
			return nil, dsl.Permanent(fmt.Errorf("its apiVersion is %s, but children of its kind are watched as %s",
				kind.GroupVersion(), served.GVR.GroupVersion()))
		}
		return f, f.Readable(namespace)
	}
	for _, f := range r.children {
		if now := f.Status(); !f.Known() && f.Name().Group == kind.Group {
			return nil, fmt.Errorf("%s is %s: %s", f.Name(), now.Phase, now.Message)
		}
	}
	return nil, dsl.Permanent(errors.New("no resource of that kind is declared with owns"))
}

// known returns the object of a wanted child's name, as far as it is known without asking.
func (p *pass) known(w *wanted) *unstructured.Unstructured {
	if w.feed == nil {
		return p.asApplied(w.id())
	}
	return p.cached(w.feed, w.key)
}

// settled are the children that the server rewrote.
func (p *pass) settled() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.memory.settled == nil {
		p.memory.settled = map[string]string{}
	}
	return p.memory.settled
}
