// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package family

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
func (w *wanted) id() id { return id{w.served.GVR, w.key} }

// place is where it is.
func (w *wanted) place() child.Place { return child.PlaceOf(w.object) }

// Apply makes a child as desired says.
func (c *children) Apply(ctx context.Context, desired any, specs ...dsl.ChildSpec) (*unstructured.Unstructured, error) {
	ctx, done, err := c.span.Write(ctx)
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
	s := c.session
	s.Claims.Reach(w.id(), c.maker(w.spec))
	live := s.known(w)
	if w.enters {
		if err := s.enrol(ctx, w, live); err != nil {
			return nil, err
		}
	}
	result, deed, err := w.applier.Apply(ctx, w.client, w.object, live)
	if deed != "" {
		c.wrote(w.feed, deed, w.applier.Found.String(), w.served.GVR, result)
	}
	if err != nil {
		return nil, s.unapplied(ctx, w, err)
	}
	s.hold(w.id(), result)
	return result, nil
}

// unapplied sees to the record after a child could not be applied.
func (s *Session) unapplied(ctx context.Context, w *wanted, err error) error {
	switch {
	case !w.enters:
	case !errors.Is(err, dsl.ErrNotOwned):
		s.doubt(w.place()) // the answer may be all that was lost
	case w.applier.Vacant:
		if struck := s.strike(ctx, w.place()); struck != nil {
			return errors.Join(err, struck)
		}
	}
	return err
}

// maker names who applies a child: the handler, or that step of it which the child names.
func (c *Reader) maker(spec dsl.ChildSpec) string {
	return c.session.Claims.Maker(c.attempt.Handler, spec.Handler)
}

// answerSoon is how long a handler waits for another one to say whether it keeps a child.
const answerSoon = time.Second

// contest returns an error where a child that is there, and that this handler would change, is kept otherwise by
// another handler of the object.
func (c *Reader) contest(w *wanted, live *unstructured.Unstructured) error {
	holder, asked := c.session.Claims.Contest(w.id(), c.maker(w.spec), c.attempt, w.applier.Owner.Keys.Maker(live))
	switch {
	case holder == "":
		return nil
	case asked:
		return dsl.Waiting(fmt.Sprintf("%s: handler %s made it, and is to say whether it keeps it", nameFor(w.object), holder), answerSoon)
	}
	return &dsl.CollisionError{Kind: w.object.GetKind(), Namespace: w.key.Namespace, Name: w.key.Name, Handler: holder}
}

// want works out what applying desired comes to. What is wrong with it for good is permanent.
func (c *Reader) want(ctx context.Context, desired any, spec dsl.ChildSpec) (*wanted, error) {
	if err := spec.Validate(); err != nil {
		return nil, dsl.Permanent(fmt.Errorf("applying child: %w", err))
	}
	plain, err := child.Plain(desired)
	if err != nil {
		return nil, dsl.Permanent(err)
	}
	w := &wanted{spec: spec}
	s, with := c.session, c.session.family.settings
	if err := s.family.locate(ctx, w, plain, cmp.Or(plain.GetNamespace(), s.pass.Object.GetNamespace())); err != nil {
		return nil, err
	}
	owner := s.owner()
	if w.object, err = owner.Desired(plain, w.served.Namespaced, spec); err != nil {
		return nil, err
	}
	w.key = cache.MetaObjectToName(w.object)
	w.enters = owner.Enters(spec, w.key.Namespace)
	if w.enters && w.feed.Informer(w.key.Namespace) == nil {
		// It would never be found again, and so never be deleted.
		return nil, fmt.Errorf("applying %s %s: %w", w.object.GetKind(), w.key, w.feed.Unwatched(w.key.Namespace))
	}
	w.client = with.Client(w.served.GVR, w.key.Namespace)
	w.applier = child.Applier{
		Owner: owner, Manager: with.Operator.Name, Adopt: spec.Adopt,
		Settled: s.settled(), Guard: &s.mu, Found: &child.Drift{}, Note: child.Note(spec, c.attempt.Handler),
	}
	if c.attempt.Handler != "" {
		w.applier.Contest = func(live *unstructured.Unstructured) error { return c.contest(w, live) }
	}
	return w, nil
}

// locate finds where an object of this kind goes, in this namespace if it has one. Only an unowned child may be of a kind that is not
// declared, or not readable.
func (f *Family) locate(ctx context.Context, w *wanted, o *unstructured.Unstructured, namespace string) (err error) {
	kind := o.GroupVersionKind()
	w.feed, err = f.kind(kind, namespace)
	switch {
	case err == nil:
		w.served = w.feed.Resource()
	case w.spec.Ownership == dsl.Unowned:
		w.feed = nil
		if w.served, err = f.settings.Catalog.KindOf(ctx, kind); err != nil {
			return fmt.Errorf("applying %s %s: %w", kind.Kind, o.GetName(), err)
		}
	default:
		return fmt.Errorf("applying %s %s: %w", kind.Kind, o.GetName(), err)
	}
	return nil
}

// known returns the object of a wanted child's name, as far as it is known without asking.
func (s *Session) known(w *wanted) *unstructured.Unstructured {
	if w.feed == nil {
		return s.asApplied(w.id())
	}
	return s.cached(w.feed, w.key)
}

// Enter enters children that are about to be applied, those that have to be.
func (c *children) Enter(ctx context.Context, all ...dsl.DesiredChild) error {
	ctx, done, err := c.span.Write(ctx)
	if err != nil {
		return err
	}
	defer done()
	s := c.session
	titles := map[child.Place]string{}
	for _, each := range all {
		if !each.ByLabel() && s.family.settings.Own.Resource().Namespaced {
			continue
		}
		w, err := c.want(ctx, each.Object, each.ChildSpec)
		if err == nil && w.enters && w.admits(s.known(w)) == nil {
			titles[w.place()] = child.Which(w.spec)
		}
	}
	return s.enter(ctx, titles)
}
