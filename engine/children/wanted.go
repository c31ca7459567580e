// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/children/apply"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/decide/collision"
	"github.com/handwerk-dev/handwerk/engine/decide/drift"
)

// wanted is a child to be applied, or to be compared with the live object.
type wanted struct {
	id
	// reader belongs to the handler that applies the child, or to the filter that compares it.
	reader *Reader
	// spec is the handler's spec.
	spec dsl.ChildSpec
	// object is the whole object to apply.
	object *unstructured.Unstructured
	// enters is true if the child has to be in the owner's inventory, as title. Either its tie only counts with the
	// inventory, or it outlives the owner and the garbage collector would delete it. An owner that is being deleted lists
	// no children of the second sort.
	enters bool
	title  string
	// holds is true if the child needs the owner's finalizer.
	holds bool
	// maker is the handler that applies the child, or the step of it that the child names.
	maker string
	// feed is the source of the child's kind; nil for an unowned child of an undeclared kind.
	feed    *source.Source
	applier apply.Applier
}

// admits returns an error if an object that this owner may not adopt has the name.
func (w *wanted) admits(live *unstructured.Unstructured) error {
	if live == nil {
		return nil
	}
	_, err := w.applier.Stale(w.object, live)
	return err
}

// place returns the place of the child.
func (w *wanted) place() ownership.Place { return ownership.PlaceOf(w.object) }

// want prepares a child to be applied or compared. Errors that need another template are permanent.
func (c *Reader) want(ctx context.Context, desired any, spec dsl.ChildSpec) (*wanted, error) {
	if err := spec.Validate(); err != nil {
		return nil, dsl.Permanent(fmt.Errorf("applying child: %w", err))
	}
	object, err := dsl.Object(desired)
	if err != nil {
		return nil, dsl.Permanent(err)
	}
	version := object.GetResourceVersion()
	object.SetResourceVersion("") // the version is not compared
	s, handler := c.session, c.attempt.Handler
	kind, served, err := s.family.locate(ctx, object, cmp.Or(object.GetNamespace(), s.in.Object.GetNamespace()), spec)
	if err != nil {
		return nil, err
	}
	given := spec
	if spec.Name == "" {
		spec.Handler = handler
	}
	owner := s.owner()
	if err := owner.Complete(object, served.Namespaced, spec); err != nil {
		return nil, err
	}
	if err := s.family.settings.Host.Refusal(served.GVR, cache.MetaObjectToName(object)); err != nil {
		return nil, err
	}
	if err := dsl.CheckData(object, dsl.Discreet(ctx)); err != nil {
		return nil, fmt.Errorf("applying %s: %w", ownership.PlaceOf(object).Describe(), err)
	}
	stays := spec.ByReference() && spec.OnDelete == dsl.OrphanChild && !s.in.Deleting
	w := &wanted{
		id: id{served.GVR, cache.MetaObjectToName(object)}, reader: c, spec: given, object: object, holds: owner.NeedsFinalizer(spec, object.GetNamespace()), enters: stays || owner.NeedsEntry(spec, object.GetNamespace()), title: ownership.TitleWithoutPolicy(spec),
		maker: s.Claims.Maker(handler, spec.Handler), feed: kind,
	}
	if w.enters && kind.Informer(w.key.Namespace) == nil {
		// Nothing would find the child again, so nothing would delete it.
		return nil, fmt.Errorf("applying %s: %w", w.place().Describe(), kind.Unwatched(w.key.Namespace))
	}
	w.applier = apply.Applier{
		Version: version, Owner: owner, Scale: s.family.settings.Catalog, Manager: s.family.settings.Operator.Name, Adopt: spec.Adopt,
		Settled: &s.settled, Found: &drift.Drift{}, Note: ownership.Note(spec, handler), Drift: spec.Drift, Allow: spec.Allow, Update: spec.Update,
		Lacking: kind != nil && kind.Informer(w.key.Namespace).Lacks(w.key, object.GetLabels()),
	}
	w.applier.Observer = w
	return w, nil
}

// ready makes the preparations for applying a child. It returns the live child; nil if there is none.
func (w *wanted) ready(ctx context.Context) (*unstructured.Unstructured, error) {
	s, with := w.reader.session, w.reader.session.family.settings
	if w.feed != nil && w.spec.Ownership != dsl.Unowned {
		if err := with.Register.Add(ctx, with.Resource.Name, w.feed.Resource().GroupKind()); err != nil {
			return nil, fmt.Errorf("applying %s: %w", w.place().Describe(), err)
		}
		s.family.sweeper.Note(w.spec.Handler)
	}
	s.Claims.BeginApply(w.id, w.maker)
	live, err := w.present(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", w.place().Describe(), err)
	}
	if late := with.Ending.Rejection(w.key.Namespace); live == nil && late != nil {
		return nil, fmt.Errorf("applying %s: %w", w.place().Describe(), late)
	}
	if err := w.prepare(ctx, live); err != nil {
		return live, err
	}
	return w.entire(ctx, live)
}

// entire returns a cached child. If the cache holds only some fields, and these do not show that the child is as wanted,
// entire reads the child from the server. A field that the cache leaves out may be set.
func (w *wanted) entire(ctx context.Context, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if live == nil || w.feed == nil || !w.feed.Partial() || w.reader.session.lister.has(w.id) || w.applier.Holds(w.object, live) {
		return live, nil
	}
	live, err := w.reader.session.family.settings.Host.Read(ctx, w.gvr, w.key)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", w.place().Describe(), err)
	}
	return live, nil
}

// confirmOwner reads the owner before a child that has lost its owner reference gets another one. If somebody deletes an
// owner with --cascade=orphan, Kubernetes removes these references. The caches may show that before the deletion. A
// child with a new reference would be deleted with its owner.
func (w *wanted) confirmOwner(ctx context.Context, live *unstructured.Unstructured) error {
	s := w.reader.session
	if live == nil || !w.spec.ByReference() || metav1.GetControllerOfNoCopy(live) != nil || !w.applier.Owner.Keys.Made(live) {
		return nil
	}
	owner, err := s.family.settings.Host.Read(ctx, s.family.settings.Own.Resource().GVR, s.in.Key)
	switch {
	case err != nil:
		return fmt.Errorf("reading the owner of %s, which has lost its owner reference: %w", w.place().Describe(), err)
	case owner == nil || owner.GetUID() != s.in.Object.GetUID() || owner.GetDeletionTimestamp() != nil:
		return dsl.Waiting("the cache to show that the owner of "+w.place().Describe()+" is being deleted", 0)
	}
	return nil
}

// present returns the live child as the reconcile knows it; nil if there is none. It moves the marks of an earlier
// operator name, because an unowned or retained child is found only by its own name. If no cache has the kind, it reads
// the child for that.
func (w *wanted) present(ctx context.Context) (*unstructured.Unstructured, error) {
	s := w.reader.session
	live := s.lister.get(w.feed, w.id)
	if s.family.renamer == nil {
		return live, nil
	}
	if live == nil && w.feed == nil {
		var err error
		if live, err = s.family.settings.Host.Read(ctx, w.gvr, w.key); err != nil {
			return nil, err
		}
	}
	if live == nil || !s.family.renamer.Finds(live) {
		return live, nil
	}
	return s.move(ctx, w.feed, w.id, live)
}

// prepare prepares the owner for a child that is about to be applied. It enters the child into the inventory, and adds
// the finalizer if the child needs it.
func (w *wanted) prepare(ctx context.Context, live *unstructured.Unstructured) error {
	if !w.enters && !w.holds {
		return nil
	}
	if err := w.admits(live); err != nil {
		return err
	}
	s := w.reader.session
	if w.holds {
		s.writer.need()
	}
	if w.enters {
		if err := s.inventory.enterChild(ctx, w, live); err != nil {
			return err
		}
	}
	if w.holds {
		return s.inventory.hold(ctx)
	}
	return nil
}

// unapplied updates the inventory after a child could not be applied.
func (w *wanted) unapplied(ctx context.Context, operation apply.Operation, err error) error {
	s := w.reader.session
	switch {
	case !w.enters && !w.holds:
	case !errors.Is(err, dsl.ErrNotOwned):
		if operation != "" || !denied(err) {
			s.unconfirmed.add(w.place()) // maybe only the answer was lost
		}
	case w.applier.Vacant:
		if struck := s.inventory.strike(ctx, w.place()); struck != nil {
			return errors.Join(err, struck)
		}
	}
	return err
}

// Contest implements [apply.Observer]. It returns an error if another handler of the object keeps the child in a
// different state.
func (w *wanted) Contest(live *unstructured.Unstructured) error {
	s, a := w.reader.session, w.reader.attempt
	if a.Handler == "" {
		return nil
	}
	a.Others = w.reader.others.States()
	holder, asked := s.Claims.Contest(w.id, w.maker, a, collision.Renamed(s.family.settings.Handlers, w.applier.Owner.Keys.Maker(live)))
	return collision.ErrorOf(holder, asked, dsl.CollisionError{Kind: w.object.GetKind(), Namespace: w.key.Namespace, Name: w.key.Name}, w.place().Describe())
}

// Wrote implements [apply.Observer]. It records a write that another one follows.
func (w *wanted) Wrote(o *unstructured.Unstructured) { w.reader.noted(w.feed, w.gvr, o, false) }
