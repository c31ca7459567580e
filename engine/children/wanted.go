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

// wanted is a child that is to be applied, or compared with what is to be applied.
type wanted struct {
	id
	// reader is that of the handler that applies it, or of a filter that compares it.
	reader *Reader
	// spec is what the handler gave.
	spec dsl.ChildSpec
	// object is what is applied, whole.
	object *unstructured.Unstructured
	// enters: it has to be in the owner's record, as title: it counts only with the record, or it is to stay and the garbage
	// collector would take it. An owner that is being deleted lists none of the latter.
	enters bool
	title  string
	// holds: something has to be done about it before the owner goes.
	holds bool
	// maker applies it: the handler, or that step of it which the child names.
	maker string
	// feed has the children of this kind; nil for an unowned one of another kind.
	feed    *source.Source
	applier apply.Applier
}

// admits says why a child cannot be entered, if so: something that this owner may not have is there.
func (w *wanted) admits(live *unstructured.Unstructured) error {
	if live == nil {
		return nil
	}
	_, err := w.applier.Stale(w.object, live)
	return err
}

// place is where it is.
func (w *wanted) place() ownership.Place { return ownership.PlaceOf(w.object) }

// want works out what applying desired comes to. Errors that need another template are permanent.
func (c *Reader) want(ctx context.Context, desired any, spec dsl.ChildSpec) (*wanted, error) {
	if err := spec.Validate(); err != nil {
		return nil, dsl.Permanent(fmt.Errorf("applying child: %w", err))
	}
	object, err := dsl.Object(desired)
	if err != nil {
		return nil, dsl.Permanent(err)
	}
	version := object.GetResourceVersion()
	object.SetResourceVersion("") // it is no part of what is compared
	s, handler := c.session, c.attempt.Handler
	kind, served, err := s.family.locate(ctx, object, cmp.Or(object.GetNamespace(), s.pass.Object.GetNamespace()), spec)
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
		return nil, fmt.Errorf("applying %s: %w", ownership.PlaceOf(object).People(), err)
	}
	stays := spec.ByReference() && spec.OnDelete == dsl.OrphanChild && !s.pass.Deleting
	w := &wanted{
		id: id{served.GVR, cache.MetaObjectToName(object)}, reader: c, spec: given, object: object, holds: owner.Needs(spec, object.GetNamespace()), enters: stays || owner.Enters(spec, object.GetNamespace()), title: ownership.Which(spec),
		maker: s.Claims.Maker(handler, spec.Handler), feed: kind,
	}
	if w.enters && kind.Informer(w.key.Namespace) == nil {
		// It would never be found again, and so never be deleted.
		return nil, fmt.Errorf("applying %s: %w", w.place().People(), kind.Unwatched(w.key.Namespace))
	}
	w.applier = apply.Applier{
		Version: version, Owner: owner, Scale: s.family.settings.Catalog, Manager: s.family.settings.Operator.Name, Adopt: spec.Adopt,
		Settled: &s.pass.Memory.settled, Found: &drift.Drift{}, Note: ownership.Note(spec, handler), Drift: spec.Drift, Allow: spec.Allow, Update: spec.Update,
		Lacking: kind != nil && kind.Informer(w.key.Namespace).Lacks(w.key, object.GetLabels()),
	}
	w.applier.Observer = w
	return w, nil
}

// ready makes all ready for applying a child, and returns the child as it is, nil where it is not there.
func (w *wanted) ready(ctx context.Context) (*unstructured.Unstructured, error) {
	s, with := w.reader.session, w.reader.session.family.settings
	if w.feed != nil && w.spec.Ownership != dsl.Unowned {
		if err := with.Register.Enter(ctx, with.Resource.Name, w.feed.Resource().GroupKind()); err != nil {
			return nil, fmt.Errorf("applying %s: %w", w.place().People(), err)
		}
		s.family.sweeper.Note(w.spec.Handler)
	}
	s.Claims.Reach(w.id, w.maker)
	live, err := w.present(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", w.place().People(), err)
	}
	if late := with.Ending.Refusal(w.key.Namespace); live == nil && late != nil {
		return nil, fmt.Errorf("applying %s: %w", w.place().People(), late)
	}
	if err := w.prepare(ctx, live); err != nil {
		return live, err
	}
	return w.entire(ctx, live)
}

// entire returns a cached child as it is at the API server, if the cache holds less than all fields and what it holds does not
// show that the child is as wanted: a field that is left out is not one that is missing.
func (w *wanted) entire(ctx context.Context, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if live == nil || w.feed == nil || !w.feed.Partial() || w.reader.session.lister.has(w.id) || w.applier.Holds(w.object, live) {
		return live, nil
	}
	live, err := w.reader.session.family.settings.Host.Read(ctx, w.gvr, w.key)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", w.place().People(), err)
	}
	return live, nil
}

// confirmOwner reads the owner before a child that has lost its owner reference gets another one. Kubernetes cuts the ties of
// children when somebody deletes their owner with --cascade=orphan, and the caches may show that before they show the deletion: a
// child that was tied again would be deleted with its owner.
func (w *wanted) confirmOwner(ctx context.Context, live *unstructured.Unstructured) error {
	s := w.reader.session
	if live == nil || !w.spec.ByReference() || metav1.GetControllerOfNoCopy(live) != nil || !w.applier.Owner.Keys.Made(live) {
		return nil
	}
	owner, err := s.family.settings.Host.Read(ctx, s.family.settings.Own.Resource().GVR, s.pass.Key)
	switch {
	case err != nil:
		return fmt.Errorf("reading the owner of %s, which has lost its owner reference: %w", w.place().People(), err)
	case owner == nil || owner.GetUID() != s.pass.Object.GetUID() || owner.GetDeletionTimestamp() != nil:
		return dsl.Waiting("the cache to show that the owner of "+w.place().People()+" is being deleted", 0)
	}
	return nil
}

// present returns a child that is about to be applied as the reconcile knows it, nil where it is not there. An unowned or retained
// child with marks of an earlier name is found by its own name alone, so its marks are moved here. Where no cache has its kind,
// it is read.
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

// prepare makes the owner ready for a child that is about to be applied: the record lists it, and the finalizer holds the owner
// where something has to be done about the child before the owner goes.
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
		if err := s.record.enterChild(ctx, w, live); err != nil {
			return err
		}
	}
	if w.holds {
		return s.record.hold(ctx)
	}
	return nil
}

// unapplied sees to the record after a child could not be applied.
func (w *wanted) unapplied(ctx context.Context, deed apply.Deed, err error) error {
	s := w.reader.session
	switch {
	case !w.enters && !w.holds:
	case !errors.Is(err, dsl.ErrNotOwned):
		if deed != "" || !denied(err) {
			s.unconfirmed.add(w.place()) // the answer may be all that was lost
		}
	case w.applier.Vacant:
		if struck := s.record.strike(ctx, w.place()); struck != nil {
			return errors.Join(err, struck)
		}
	}
	return err
}

// Contest implements [apply.Observer]: it returns an error where a child that is there, and that this handler would change, is kept
// otherwise by another handler of the object.
func (w *wanted) Contest(live *unstructured.Unstructured) error {
	s, a := w.reader.session, w.reader.attempt
	if a.Handler == "" {
		return nil
	}
	a.Turns = w.reader.others.Turns()
	holder, asked := s.Claims.Contest(w.id, w.maker, a, collision.Renamed(s.family.settings.Handlers, w.applier.Owner.Keys.Maker(live)))
	return collision.Refusal(holder, asked, dsl.CollisionError{Kind: w.object.GetKind(), Namespace: w.key.Namespace, Name: w.key.Name}, w.place().People())
}

// Wrote implements [apply.Observer]: it notes a write that another one follows.
func (w *wanted) Wrote(o *unstructured.Unstructured) { w.reader.noted(w.feed, w.gvr, o, false) }
