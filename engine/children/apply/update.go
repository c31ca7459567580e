// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/decide/drift"
)

// Deed is what was done to a child, or to another object.
type Deed string

// The deeds. The empty one is nothing.
const (
	// Created: it was not there.
	Created Deed = "created"
	// Updated: something else was desired than when it was last applied.
	Updated Deed = "updated"
	// PutBack: the same was desired, and somebody had changed it.
	PutBack Deed = "put back"
	// Unchanged: it was applied, and the server had it so, which writes a value in another way.
	Unchanged Deed = "unchanged"
	// Adopted: it had no owner.
	Adopted Deed = "adopted"
	// GivenBack: somebody else made it at the same time, and it was left to them.
	GivenBack Deed = "given back"
	// Deleted: it was deleted. Released: it was cut loose from its owner.
	Deleted  Deed = "deleted"
	Released Deed = "released"
	// Applied, Patched: an object that is no child was written.
	Applied Deed = "applied"
	Patched Deed = "patched"
	// Yielded: the fields that a handler owned of an object that is no child were given back.
	Yielded Deed = "gave back the fields of"
)

// FixedError is that of a child that is there, and the owner's, whose template has come to another value of a field that
// cannot be changed.
type FixedError struct {
	*dsl.ImmutableError
	Live *unstructured.Unstructured
}

// Unwrap returns the error that names the fields.
func (e *FixedError) Unwrap() error { return e.ImmutableError }

// change is one update of a child that is there.
type change struct {
	applier Applier
	client  dynamic.ResourceInterface
	desired *unstructured.Unstructured
	deed    Deed
	// applied: the server has taken the very same before, so what it does not take now is what others changed.
	applied bool
	// looked: the child was read, or written, and had the applier's version before.
	looked bool
}

// update applies with force to the object that was looked at and to no other of its name. One that
// is adopted must not have changed since: somebody else may have taken it.
func (a Applier) update(ctx context.Context, c dynamic.ResourceInterface, desired, live *unstructured.Unstructured, adopts bool) (*unstructured.Unstructured, Deed, error) {
	ch := a.change(c, desired, live, adopts)
	now, err := ch.read(ctx, live)
	if err != nil {
		return nil, "", err
	}
	if ch.looked = now != nil; ch.looked && ch.late(now) {
		return nil, "", a.conflict(desired)
	}
	if adopts {
		if _, still, err := a.judge(desired, now); err != nil || !still {
			return now, "", err
		}
	}
	if ch.isAsLeft(now) {
		a.settle(desired, now)
		return now, "", nil
	}
	ch.deed = ch.describe(live, now)
	if now, err = ch.prepare(ctx, live, now); err != nil {
		return nil, "", err
	}
	result, err := ch.send(ctx, now)
	err = a.classified(ctx, c, desired, now, err)
	if fixed, is := errors.AsType[*dsl.ImmutableError](err); is {
		return nil, "", ch.fixed(ctx, live, fixed)
	}
	if err == nil {
		result, err = ch.takeAgain(ctx, result)
	}
	if err != nil {
		return nil, "", err
	}
	a.settle(desired, result)
	return result, ch.sum(live, result), nil
}

// change judges what is about to be done, as far as the cache shows.
func (a Applier) change(c dynamic.ResourceInterface, desired, live *unstructured.Unstructured, adopts bool) change {
	ch := change{applier: a, client: c, desired: desired, deed: Updated}
	switch mark := a.mark(live); {
	case adopts:
		ch.deed = Adopted
	case a.sameMark(desired, live):
		ch.deed, ch.applied = PutBack, true
		if a.Drift == dsl.DriftIgnore && a.tied(desired, live) {
			ch.deed = Updated // other values are desired in a Secret
		}
	case isEmptied(mark): // it was taken over from others, and then something came between
		ch.deed, ch.applied = PutBack, true
	case mark == "":
		ch.deed = PutBack // somebody has taken it off, or the operator has not applied the child yet
	}
	return ch
}

// read reads the child where the cache, which does not have what others manage, is not enough. It is nil where it is.
func (ch change) read(ctx context.Context, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	needed := ch.deed == Adopted || !ch.find(live).Empty() || ch.applier.inherits(live) || drift.MayHandOver(ch.desired, live, ch.applier.kept...)
	if !needed && ch.deed != PutBack && !ch.question(live, nil).Touched() {
		return nil, nil
	}
	now, err := ch.client.Get(ctx, ch.desired.GetName(), metav1.GetOptions{})
	switch {
	case err != nil && needed:
		return nil, fmt.Errorf("applying %s: reading it: %w", name(ch.desired), err)
	case err != nil: // the change has no known author
		return nil, nil
	case now.GetUID() != live.GetUID() && needed:
		return nil, fmt.Errorf("applying %s: it is another object than a moment ago", name(ch.desired))
	case now.GetUID() != live.GetUID():
		return nil, nil
	}
	return now, nil
}

// find finds what others have added.
func (ch change) find(now *unstructured.Unstructured) drift.Added {
	return ch.applier.added(ch.desired, now, ch.applier.Drift == dsl.DriftStrict)
}

// question asks who has changed what of the child.
func (ch change) question(live, now *unstructured.Unstructured) drift.Question {
	q := drift.Question{Desired: ch.desired, Live: live, Manager: ch.applier.Manager, Same: ch.deed == PutBack}
	if now != nil {
		q.Managed = append([]metav1.ManagedFieldsEntry{}, now.GetManagedFields()...)
	}
	return q
}

// describe fills in Found with what somebody has changed, and returns what is about to be done to the child.
func (ch change) describe(live, now *unstructured.Unstructured) Deed {
	if ch.applier.Found == nil || ch.deed == Adopted {
		return ch.deed
	}
	if ch.deed == PutBack && now != nil && ch.applier.mark(live) == "" && !slices.ContainsFunc(drift.Managers(now), ch.applier.isOwn) {
		return Updated // it is applied for the first time
	}
	q := ch.question(live, now)
	q.More = ch.find(live)
	*ch.applier.Found = drift.Of(q)
	if ch.deed == PutBack && ch.applied && now != nil && !isEmptied(ch.applier.mark(live)) && len(ch.applier.Found.Fields)+len(ch.applier.Found.Added) == 0 {
		return Updated
	}
	return ch.deed
}

// sum returns what was done to the child, and fills in Found with what was changed because something else is desired.
func (ch change) sum(live, result *unstructured.Unstructured) Deed {
	switch {
	case ch.deed == Adopted:
		return Adopted
	case result.GetResourceVersion() == live.GetResourceVersion():
		return Unchanged
	case ch.applier.Found == nil:
		return ch.deed
	}
	updated := drift.Write{Desired: ch.desired, Before: live, After: result, Own: ch.applier.Owner.Keys.All(), Manager: ch.applier.Manager, Same: ch.applier.sameMark(ch.desired, live)}.Updated(*ch.applier.Found)
	if ch.deed == PutBack && ch.applier.Found.String() == "" {
		ch.applier.Found.Fields = updated // the process that took it over knew who
		return ch.deed
	}
	ch.applier.Found.Updated = updated
	if len(updated) > 0 {
		return Updated
	}
	return ch.deed
}

// prepare sees to what others have set, before the template is applied. The result is the child as it is then.
func (ch change) prepare(ctx context.Context, live, now *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if now == nil {
		return live, nil
	}
	inherits := ch.applier.inherits(now)
	if ch.deed != Adopted && !inherits {
		return ch.applier.take(ctx, ch.client, ch.desired, now, ch.find)
	}
	// Fields that an adopted child had before are removed by a later apply, when it is ours.
	now, err := ch.applier.take(ctx, ch.client, ch.desired, now, nothing)
	if err != nil || !inherits && ch.applier.Drift == dsl.DriftStrict {
		return now, err
	}
	return ch.applier.inherit(ctx, ch.client, now)
}

// isAsLeft reports whether a child differs from its template only as the server left it when this template was applied: an earlier
// process applied it, and nobody has changed these fields since. A process knows that of what it has applied itself.
func (ch change) isAsLeft(now *unstructured.Unstructured) bool {
	a := ch.applier
	if now == nil || ch.deed != PutBack || !ch.applied || !a.sameMark(ch.desired, now) || ch.isSecret() || a.Settled.knows(now) {
		return false
	}
	return ch.find(now).Empty() && ch.question(now, now).Left()
}

// isSecret reports whether the child is a Secret. Its mark lacks the values, so the same mark does not mean the same template.
func (ch change) isSecret() bool { return ch.desired.GetKind() == "Secret" }

// send applies the template. Where others have changed the child so that the server does not take it, what they have set
// besides is taken away with it: a field that no manager has set may be of no use, or not allowed, without one that was put back.
func (ch change) send(ctx context.Context, now *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	result, err := ch.apply(ctx, now)
	if !apierrors.IsInvalid(err) || !ch.applied || ch.isSecret() {
		return result, err
	}
	all := func(now *unstructured.Unstructured) drift.Added { return ch.applier.added(ch.desired, now, true) }
	read, failed := ch.client.Get(ctx, ch.desired.GetName(), metav1.GetOptions{})
	if failed != nil || read.GetUID() != now.GetUID() || ch.applier.Version != "" && read.GetResourceVersion() != ch.version(now) || all(read).Empty() {
		return nil, err
	}
	more := all(read)
	if now, failed = ch.applier.take(ctx, ch.client, ch.desired, read, all); failed != nil {
		return nil, failed
	}
	ch.looked = true
	if ch.applier.Found != nil {
		ch.applier.Found.Added, ch.applier.Found.Managers = union(ch.applier.Found.Added, more.Paths), union(ch.applier.Found.Managers, more.Managers)
	}
	return ch.apply(ctx, now)
}

func (ch change) apply(ctx context.Context, now *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	guarded, doing := ch.applier.noted(ch.desired), "applying"
	guarded.SetUID(now.GetUID())
	if ch.deed == Adopted {
		doing = "adopting"
	}
	guarded.SetResourceVersion(ch.version(now))
	result, err := ch.client.Apply(ctx, ch.desired.GetName(), guarded, metav1.ApplyOptions{FieldManager: ch.applier.Manager, Force: true})
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", doing, name(ch.desired), err)
	}
	return result, nil
}

// late reports whether the child is another version than that from which what is desired was made.
func (ch change) late(now *unstructured.Unstructured) bool {
	return ch.applier.Version != "" && now.GetResourceVersion() != ch.applier.Version
}

// version is the one that the child must still have when the template is applied; empty for any. Now is the child as it was read or
// written last.
func (ch change) version(now *unstructured.Unstructured) string {
	if ch.deed == Adopted || ch.looked && ch.applier.Version != "" {
		return now.GetResourceVersion()
	}
	return ch.applier.Version
}

// conflict returns the error for a child that others have changed since the template read it.
func (a Applier) conflict(desired *unstructured.Unstructured) error {
	kind := schema.GroupResource{Group: desired.GroupVersionKind().Group, Resource: desired.GetKind()}
	return fmt.Errorf("applying %s: %w", name(desired), apierrors.NewConflict(kind, desired.GetName(), errors.New("it has changed since it was read")))
}

// takeAgain takes away what could not be known before: what an object had that is adopted, and what the cache did not show.
func (ch change) takeAgain(ctx context.Context, result *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	more := ch.find(result)
	if more.Empty() {
		return result, nil
	}
	ch.looked = true
	taken, err := ch.applier.take(ctx, ch.client, ch.desired, result, ch.find)
	if err != nil || taken == result {
		return result, err
	}
	if ch.applier.Found != nil && ch.applier.Found.String() == "" {
		ch.applier.Found.Added, ch.applier.Found.Managers = more.Paths, more.Managers
	}
	if ch.deed == Adopted {
		ch.deed = Updated // it is ours now, and another version
	}
	return ch.apply(ctx, taken)
}

func union(a, b []string) []string {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}
