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

// Operation is an action on a child, or on another object.
type Operation string

// The operations. An empty one means that nothing was done.
const (
	// Created: it did not exist.
	Created Operation = "created"
	// Updated: the desired object has changed since it was last applied.
	Updated Operation = "updated"
	// Reverted: the desired object is the same, and somebody had changed the child.
	Reverted Operation = "put back"
	// Unchanged: it was applied, and already was so at the server, which writes a value in another way.
	Unchanged Operation = "unchanged"
	// Adopted: it had no owner.
	Adopted Operation = "adopted"
	// LeftToOther: somebody else created it at the same time, so it was left to them.
	LeftToOther Operation = "given back"
	// Deleted: it was deleted. Released: its ties to the owner were removed.
	Deleted  Operation = "deleted"
	Released Operation = "released"
	// Applied, Patched: an object that is not a child was written.
	Applied Operation = "applied"
	Patched Operation = "patched"
	// FieldsReleased: the fields that a handler owned in an object that is not a child were released.
	FieldsReleased Operation = "gave back the fields of"
)

// FixedError is the error for a child of the owner whose template has another value for a field that cannot be changed.
type FixedError struct {
	*dsl.ImmutableError
	Live *unstructured.Unstructured
}

// Unwrap returns the error that names the fields.
func (e *FixedError) Unwrap() error { return e.ImmutableError }

// change is one update of a live child.
type change struct {
	applier   Applier
	client    dynamic.ResourceInterface
	desired   *unstructured.Unstructured
	operation Operation
	// applied is true if the server has accepted the very same template before. If it rejects it now, the reason is a
	// change by others.
	applied bool
	// looked is true if the child was read or written, and had the applier's version before.
	looked bool
}

// update applies with force to the object that was read, and to no other of its name. An object to adopt must not have
// changed since: somebody else may have adopted it.
func (a Applier) update(ctx context.Context, c dynamic.ResourceInterface, desired, live *unstructured.Unstructured, adopts bool) (*unstructured.Unstructured, Operation, error) {
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
	ch.operation = ch.describe(live, now)
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

// change prepares an update, and derives the operation from the cached child.
func (a Applier) change(c dynamic.ResourceInterface, desired, live *unstructured.Unstructured, adopts bool) change {
	ch := change{applier: a, client: c, desired: desired, operation: Updated}
	switch mark := a.mark(live); {
	case adopts:
		ch.operation = Adopted
	case a.sameMark(desired, live):
		ch.operation, ch.applied = Reverted, true
		if a.Drift == dsl.DriftIgnore && a.tied(desired, live) {
			ch.operation = Updated // the values of a Secret have changed
		}
	case isEmptied(mark): // its fields were taken over, and the apply did not follow
		ch.operation, ch.applied = Reverted, true
	case mark == "":
		ch.operation = Reverted // somebody has removed it, or the operator has not applied the child yet
	}
	return ch
}

// read reads the child if the cache is not enough, because it lacks the managedFields. It returns nil if the cache is
// enough.
func (ch change) read(ctx context.Context, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	needed := ch.operation == Adopted || !ch.find(live).Empty() || ch.applier.inherits(live) || drift.MayHandOver(ch.desired, live, ch.applier.kept...)
	if !needed && ch.operation != Reverted && !ch.question(live, nil).Touched() {
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

// find returns the additions by others.
func (ch change) find(now *unstructured.Unstructured) drift.Added {
	return ch.applier.added(ch.desired, now, ch.applier.Drift == dsl.DriftStrict)
}

// question returns a query for who has changed which fields of the child.
func (ch change) question(live, now *unstructured.Unstructured) drift.Question {
	q := drift.Question{Desired: ch.desired, Live: live, Manager: ch.applier.Manager, Same: ch.operation == Reverted}
	if now != nil {
		q.Managed = append([]metav1.ManagedFieldsEntry{}, now.GetManagedFields()...)
	}
	return q
}

// describe fills in Found with the changes by others, and returns the operation.
func (ch change) describe(live, now *unstructured.Unstructured) Operation {
	if ch.applier.Found == nil || ch.operation == Adopted {
		return ch.operation
	}
	if ch.operation == Reverted && now != nil && ch.applier.mark(live) == "" && !slices.ContainsFunc(drift.Managers(now), ch.applier.isOwn) {
		return Updated // this is the first apply
	}
	q := ch.question(live, now)
	q.More = ch.find(live)
	*ch.applier.Found = drift.Of(q)
	if ch.operation == Reverted && ch.applied && now != nil && !isEmptied(ch.applier.mark(live)) && len(ch.applier.Found.Fields)+len(ch.applier.Found.Added) == 0 {
		return Updated
	}
	return ch.operation
}

// sum returns what was done to the child, and fills in Found with the changes that the new template caused.
func (ch change) sum(live, result *unstructured.Unstructured) Operation {
	switch {
	case ch.operation == Adopted:
		return Adopted
	case result.GetResourceVersion() == live.GetResourceVersion():
		return Unchanged
	case ch.applier.Found == nil:
		return ch.operation
	}
	updated := drift.Write{Desired: ch.desired, Before: live, After: result, Own: ch.applier.Owner.Keys.All(), Manager: ch.applier.Manager, Same: ch.applier.sameMark(ch.desired, live)}.Updated(*ch.applier.Found)
	if ch.operation == Reverted && ch.applier.Found.String() == "" {
		ch.applier.Found.Fields = updated // the process that took it over knew who
		return ch.operation
	}
	ch.applier.Found.Updated = updated
	if len(updated) > 0 {
		return Updated
	}
	return ch.operation
}

// prepare deals with fields that others have set, before the template is applied. The result is the child after that.
func (ch change) prepare(ctx context.Context, live, now *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if now == nil {
		return live, nil
	}
	inherits := ch.applier.inherits(now)
	if ch.operation != Adopted && !inherits {
		return ch.applier.take(ctx, ch.client, ch.desired, now, ch.find)
	}
	// A later apply removes the fields that an adopted child had before, when the child is ours.
	now, err := ch.applier.take(ctx, ch.client, ch.desired, now, nothing)
	if err != nil || !inherits && ch.applier.Drift == dsl.DriftStrict {
		return now, err
	}
	return ch.applier.inherit(ctx, ch.client, now)
}

// isAsLeft reports whether a child differs from its template only as the server left it when this template was applied.
// An earlier process applied the template, and nobody has changed these fields since. If this process applied it,
// Settled knows.
func (ch change) isAsLeft(now *unstructured.Unstructured) bool {
	a := ch.applier
	if now == nil || ch.operation != Reverted || !ch.applied || !a.sameMark(ch.desired, now) || ch.isSecret() || a.Settled.knows(now) {
		return false
	}
	return ch.find(now).Empty() && ch.question(now, now).Left()
}

// isSecret reports whether the child is a Secret. Its mark lacks the values, so the same mark does not mean the same template.
func (ch change) isSecret() bool { return ch.desired.GetKind() == "Secret" }

// send applies the template. If the server rejects it because others have changed the child, their other additions are
// removed, too. An added field may be invalid or useless without a change that is reverted.
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
	if ch.operation == Adopted {
		doing = "adopting"
	}
	guarded.SetResourceVersion(ch.version(now))
	result, err := ch.client.Apply(ctx, ch.desired.GetName(), guarded, metav1.ApplyOptions{FieldManager: ch.applier.Manager, Force: true})
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", doing, name(ch.desired), err)
	}
	return result, nil
}

// late reports whether the child has another version than the one that desired was made from.
func (ch change) late(now *unstructured.Unstructured) bool {
	return ch.applier.Version != "" && now.GetResourceVersion() != ch.applier.Version
}

// version returns the version that the child must still have when the template is applied; empty for any. Now is the
// child as it was last read or written.
func (ch change) version(now *unstructured.Unstructured) string {
	if ch.operation == Adopted || ch.looked && ch.applier.Version != "" {
		return now.GetResourceVersion()
	}
	return ch.applier.Version
}

// conflict returns the error for a child that others have changed since the template read it.
func (a Applier) conflict(desired *unstructured.Unstructured) error {
	kind := schema.GroupResource{Group: desired.GroupVersionKind().Group, Resource: desired.GetKind()}
	return fmt.Errorf("applying %s: %w", name(desired), apierrors.NewConflict(kind, desired.GetName(), errors.New("it has changed since it was read")))
}

// takeAgain removes additions that were unknown before: fields of an adopted object, and fields that the cache did not
// show.
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
	if ch.operation == Adopted {
		ch.operation = Updated // it is ours now, and has another version
	}
	return ch.apply(ctx, taken)
}

func union(a, b []string) []string {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}
