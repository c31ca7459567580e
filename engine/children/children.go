// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expiry"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/children/apply"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
	"github.com/handwerk-dev/handwerk/engine/cluster/notfound"
	"github.com/handwerk-dev/handwerk/engine/decide/limits"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// children implements [dsl.Children] for one attempt of a handler.
type children struct {
	Reader
	// cause is why children are deleted.
	cause limits.Cause
}

var _ dsl.Children = (*children)(nil)

// Shared returns the same children without copies; see [dsl.SharedChildren].
func (c *children) Shared() dsl.Children {
	shared := &children{c.Reader, c.cause}
	shared.shares = true
	return shared
}

// The memory that a child takes, as a multiple of its values. While it is applied, the request and the answer are built
// and read piece by piece. Until the reconcile ends, the wanted and the actual child are held.
const (
	inFlight = 6
	held     = 2
)

// Apply creates or updates a child, so that it is as desired.
func (c *children) Apply(ctx context.Context, desired any, specs ...dsl.ChildSpec) (*unstructured.Unstructured, error) {
	ctx, done, err := c.span.Write(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if len(specs) > 1 {
		return nil, dsl.Permanent(errors.New("applying child: there is more than one ChildSpec"))
	}
	var spec dsl.ChildSpec
	if len(specs) == 1 {
		spec = specs[0]
	}
	w, err := c.want(ctx, desired, spec)
	if err != nil {
		return nil, err
	}
	out, err := c.apply(ctx, w)
	if err != nil && w.key.Namespace == "" {
		err = &dsl.ClusterScopedError{Err: err}
	}
	return out, err
}

// apply applies a prepared child.
func (c *children) apply(ctx context.Context, w *wanted) (*unstructured.Unstructured, error) {
	s := c.session
	if err := expiry.Check(ctx, w.object); err != nil {
		return nil, fmt.Errorf("applying %s: %w", w.place().Describe(), err)
	}
	if err := s.family.kinds.listed("applying "+w.place().Describe(), w.feed); err != nil {
		return nil, err
	}
	size := progress.WeightOf(w.object.Object)
	if err := s.in.Share.Grow(ctx, inFlight*size); err != nil {
		return nil, fmt.Errorf("applying %s: %w", w.place().Describe(), err)
	}
	defer s.in.Share.shrink((inFlight - held) * size)
	live, err := w.ready(ctx)
	if err == nil {
		err = w.confirmOwner(ctx, live)
	}
	if err != nil {
		return nil, err
	}
	result, operation, err := c.send(ctx, w, live)
	if err != nil {
		return nil, w.unapplied(ctx, operation, err)
	}
	if operation == "" {
		s.unchanged(w, live, result)
	}
	s.lister.keep(w.id, result)
	if !c.shares {
		result = result.DeepCopy() // the handler may change it
	}
	if result.GetDeletionTimestamp() != nil {
		return result, awaitsEnd(w.place())
	}
	return result, nil
}

// unchanged records that a child was already as wanted, and nothing was sent. Live is nil if the cache does not show the
// child.
func (s *Session) unchanged(w *wanted, live, result *unstructured.Unstructured) {
	if live == nil && (w.enters || w.holds) {
		s.unconfirmed.add(w.place())
	}
	if live != nil && !s.lister.has(w.id) {
		s.judged.add(w, result)
	}
}

// send applies a child to its live state, and records the write. Operation is empty if nothing was written.
func (c *children) send(ctx context.Context, w *wanted, live *unstructured.Unstructured) (result *unstructured.Unstructured, operation apply.Operation, err error) {
	s := c.session
	var uid types.UID
	if live != nil {
		uid = live.GetUID()
		defer s.in.Walk.Writing(uid, c.attempt.Handler)()
	}
	client := s.family.settings.Host.Client(w.gvr, w.key.Namespace)
	result, operation, err = w.applier.Apply(ctx, client, w.object, live)
	renewed, err := s.family.settings.Renewer.RenewRejected(ctx, client, w.key.Name, uid, err)
	if renewed != nil {
		live = renewed
		w.Wrote(live)
		result, operation, err = w.applier.Apply(ctx, client, w.object, live)
	}
	if live == nil {
		s.family.settings.Ending.Record(w.key.Namespace, err)
	}
	if operation != "" {
		c.wrote(w.feed, operation, w.applier.Found.String(), w.gvr, result)
	}
	if fixed, found := errors.AsType[*apply.FixedError](err); found && w.spec.OnImmutable == dsl.RecreateChild {
		fields := fixed.Fields()
		if dsl.Discreet(ctx) {
			fields = fixed.Places()
		}
		err = c.recreate(ctx, w.feed, fixed.Live, false, strings.Join(fields, ", "))
	}
	if outdated, found := errors.AsType[*apply.OutdatedError](err); found {
		err = c.recreate(ctx, w.feed, outdated.Live, true, "its template has changed")
	}
	return result, operation, err
}

// awaitsEnd returns the error for a child that can be made again only after it is gone.
func awaitsEnd(place ownership.Place) error {
	return dsl.Waiting(place.Describe()+" to be gone, so that it can be made again", 0)
}

// locate returns the source and the resource for an object of a kind, in a namespace if it has one. Only an unowned
// child may be of a kind that is undeclared or unreadable. Its source is nil.
func (f *Family) locate(ctx context.Context, o *unstructured.Unstructured, namespace string, spec dsl.ChildSpec) (*source.Source, discovery.Resource, error) {
	gvk := o.GroupVersionKind()
	kind, err := f.kinds.declared(gvk, namespace)
	if err == nil {
		return kind, kind.Resource(), nil
	}
	var served discovery.Resource
	if spec.Ownership == dsl.Unowned {
		served, err = f.settings.Catalog.KindOf(ctx, gvk)
	}
	if err != nil {
		return nil, served, fmt.Errorf("applying %s %s: %w", gvk.Kind, o.GetName(), err)
	}
	return nil, served, nil
}

// Enter enters children into the inventory before they are applied, if they need an entry.
func (c *children) Enter(ctx context.Context, all ...dsl.DesiredChild) error {
	ctx, done, err := c.span.Write(ctx)
	if err != nil {
		return err
	}
	defer done()
	s := c.session
	titles := map[ownership.Place]string{}
	for _, each := range all {
		if !each.ByLabel() && each.OnDelete != dsl.OrphanChild && s.family.settings.Own.Resource().Namespaced {
			continue
		}
		w, err := c.want(ctx, each.Object, each.ChildSpec)
		if err != nil {
			continue // Apply returns the error
		}
		if err := s.family.kinds.listed("applying "+w.place().Describe(), w.feed); err != nil {
			return err
		}
		if !w.enters {
			continue
		}
		if w.admits(s.lister.get(w.feed, w.id)) != nil {
			continue
		}
		titles[w.place()] = w.title
		if w.holds {
			s.writer.need()
		}
	}
	return s.inventory.enter(ctx, titles)
}

// recreate deletes a child that the next attempt makes again, and logs why. If exactly is true, it deletes only the
// version that was read. It always returns an error: the failure, or a wait for the end of the child.
func (c *children) recreate(ctx context.Context, f *source.Source, live *unstructured.Unstructured, exactly bool, why string) error {
	again := &children{c.Reader, limits.Recreation}
	if err := again.deleteChild(ctx, f, live.DeepCopy(), metav1.DeletePropagationBackground, exactly, why); err != nil {
		return err
	}
	return awaitsEnd(ownership.PlaceOf(live))
}

// Delete deletes a child by its resource and name.
func (c *children) Delete(ctx context.Context, resource, name string) error {
	ctx, done, err := c.span.Write(ctx)
	if err != nil {
		return err
	}
	defer done()
	f, found, err := c.get(resource, name)
	if err != nil || found == nil {
		return err
	}
	return c.deleteChild(ctx, f, found, metav1.DeletePropagationBackground, false, "")
}

// Remove deletes or releases a child, as its policy says.
func (c *children) Remove(ctx context.Context, gone dsl.ChildObject) error {
	ctx, done, err := c.span.Write(ctx)
	if err != nil {
		return err
	}
	defer done()
	if gone.Object == nil {
		return dsl.Permanent(errors.New("removing child: there is no object in it"))
	}
	if gone.Ownership == dsl.Unowned || gone.OnDelete == dsl.RetainChild {
		return nil
	}
	key := cache.MetaObjectToName(gone.Object)
	f, err := c.session.family.kinds.present(gone.Object.GroupVersionKind(), key.Namespace)
	if err != nil {
		return fmt.Errorf("removing %s: %w", ownership.PlaceOf(gone.Object).Describe(), err)
	}
	found := c.session.lister.get(f, id{f.Resource().GVR, key})
	if found == nil || found.GetUID() != gone.Object.GetUID() || !c.session.owner().Has(found) {
		return nil
	}
	if s := c.session; !s.in.Deleting { // at a deletion, the inventory decides
		if stays, err := s.undecided.stays(found, c.attempt.Handler, c.others); stays {
			return err
		}
	}
	if err := c.session.family.kinds.settled("removing " + ownership.PlaceOf(found).Describe()); err != nil {
		return err
	}
	switch {
	case gone.OnDelete == dsl.OrphanChild:
	case gone.DeleteOrder == dsl.DeleteReverse:
		return c.deleteChild(ctx, f, found, metav1.DeletePropagationForeground, true, "")
	default:
		return c.deleteChild(ctx, f, found, metav1.DeletePropagationBackground, false, "")
	}
	return c.release(ctx, f, found)
}

// release removes the ties of a child to its owner.
func (c *children) release(ctx context.Context, f *source.Source, found *unstructured.Unstructured) error {
	with, gvr := c.session.family.settings, f.Resource().GVR
	result, err := apply.Release(ctx, c.session.owner(), with.Host.Client(gvr, found.GetNamespace()), with.Operator.Name, found)
	if result != nil {
		c.wrote(f, apply.Released, "", gvr, result)
	}
	return err
}

// deleteChild deletes a child, if it still is that object. For the rest of the reconcile the child counts as being
// deleted. If exactly is true, it deletes only the given version. Somebody may be about to orphan a child that only an
// owner reference ties to its owner, as kubectl delete --cascade=orphan does. The error is a [heldError] if a limit holds
// the deletion.
func (c *children) deleteChild(ctx context.Context, f *source.Source, o *unstructured.Unstructured, how metav1.DeletionPropagation, exactly bool, why string) error {
	if o.GetDeletionTimestamp() != nil {
		return nil
	}
	s, key, gvr := c.session, cache.MetaObjectToName(o), f.Resource().GVR
	if err := s.family.kinds.settled("deleting " + ownership.PlaceOf(o).Describe()); err != nil {
		return err
	}
	if err := c.mayDelete(f, o); err != nil {
		return err
	}
	uid, version := o.GetUID(), o.GetResourceVersion()
	must := &metav1.Preconditions{UID: &uid}
	if exactly {
		must.ResourceVersion = &version
	}
	err := s.family.settings.Host.Client(gvr, key.Namespace).Delete(ctx, key.Name, metav1.DeleteOptions{Preconditions: must, PropagationPolicy: &how})
	if notfound.IsGone(err, gvr.GroupResource(), key.Name) || apierrors.IsConflict(err) {
		return nil // gone, or another object has the name: the cache will show it
	}
	if err != nil {
		return fmt.Errorf("deleting %s %s: %w", o.GetKind(), key, err)
	}
	now := metav1.NewTime(time.Now())
	o.SetDeletionTimestamp(&now)
	s.lister.keep(id{gvr, key}, o)
	s.journal.noteGone(c.write(), f, key, uid)
	s.journal.count(ops.Child)
	c.say(apply.Deleted, o, why)
	return nil
}
