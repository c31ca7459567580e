// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package apply applies children with server-side apply. It ties them to their owner, adopts no object silently, and
// sends no request if nothing differs.
package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/decide/drift"
)

// Applier applies the children of one owner.
type Applier struct {
	Owner ownership.Owner
	// Manager is the field manager.
	Manager string
	// Adopt says what happens to an object without an owner.
	Adopt dsl.Adoption
	// Settled belongs to the owner, and lives as long as the process. Children of one owner may be applied at the same
	// time.
	Settled *Settled
	// Drift says which changes by others are reverted. Allow are field managers whose fields stay if it is strict.
	Drift dsl.DriftPolicy
	Allow []string
	// Update says what happens to a child whose template has changed.
	Update dsl.UpdatePolicy
	// Vacant is true if the place of the child was entered into the owner's inventory a moment ago, because nothing was
	// known to be there. If an object is found there, the entry alone does not make it a child.
	Vacant bool
	// Lacking is true if the cache would show an object of the child's name and has none. The child is created without a
	// read.
	Lacking bool
	// Found, if it is not nil, is filled in with the reverted changes by others.
	Found *drift.Drift
	// Version is the version of the child that desired was made from; empty for any. A later version is not changed.
	Version string
	// Note is written into the child annotation of a child without a name, see [ownership.Note]. It alone causes no
	// write.
	Note string
	// Observer is optional.
	Observer Observer
	// Scale finds the field with the number of replicas of a kind; optional.
	Scale Scale
	// kept are the fields whose values stay if the template drops them.
	kept []dsl.Path
}

// Scale knows which field the scale subresource of a kind shows.
type Scale interface {
	// ScalePath returns the path of that field; nil if the kind has no such subresource.
	ScalePath(ctx context.Context, kind schema.GroupVersionKind) (dsl.Path, error)
}

// KeptFields returns the fields of a kind whose values stay if a template drops them: its number of replicas. Others than
// the operator change it while the object lives, and its default is one.
func KeptFields(ctx context.Context, scale Scale, kind schema.GroupVersionKind) ([]dsl.Path, error) {
	if scale == nil {
		return nil, nil
	}
	path, err := scale.ScalePath(ctx, kind)
	if err != nil || path == nil {
		return nil, err
	}
	return []dsl.Path{path}, nil
}

// Observer may veto a change of this owner's child, and sees the writes.
type Observer interface {
	// Contest returns an error if the child must not be changed; nil if it may.
	Contest(live *unstructured.Unstructured) error
	// Wrote is called with the result of a write if another write of the child follows.
	Wrote(*unstructured.Unstructured)
}

// SettledMemory has what is known of an owner's children from one reconcile to the next. Its zero value is empty.
type SettledMemory struct {
	// of has the content of children that differ from the applied objects, because the server rewrote a value, by name.
	of map[string]string
	// values has digests of the last desired objects, including the values of Secrets, for children whose drift is
	// ignored.
	values map[string]string
}

// Settled remembers children that the server rewrote, in a reconcile that may apply several at the same time.
type Settled struct {
	mu sync.Mutex
	// Memory is used by one reconcile at a time. It is required.
	Memory *SettledMemory
}

// same reports whether the desired object equals the one of the last call or the last apply in this process. The first
// call returns true.
func (s *Settled) same(desired *unstructured.Unstructured) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := digest(desired.Object)
	if was, known := s.Memory.values[name(desired)]; known {
		return was == is
	}
	s.Memory.keep(desired)
	return true
}

// knows reports whether the process has applied a child that the server rewrote.
func (s *Settled) knows(live *unstructured.Unstructured) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.Memory.of[name(live)]
	return known
}

func (m *SettledMemory) keep(desired *unstructured.Unstructured) {
	if m.values == nil {
		m.values = map[string]string{}
	}
	m.values[name(desired)] = digest(desired.Object)
}

// Apply applies the child as desired, which [ownership.Owner.Complete] has completed. Cached is the object of that name
// in the cache; nil for none. Operation is empty if nothing was written. Result is the object after the write, even if it
// was left to somebody else. An object that the owner may not have is left alone. The error is then a *dsl.NotOwnedError, or
// one of dsl.Waiting if the garbage collector has yet to delete it with an earlier owner. Other errors wrap those of the
// API machinery and name the child.
func (a Applier) Apply(ctx context.Context, c dynamic.ResourceInterface, desired, cached *unstructured.Unstructured) (result *unstructured.Unstructured, operation Operation, err error) {
	live := cached
	if live == nil {
		if live, result, operation, err = a.obtain(ctx, c, desired); live == nil {
			return result, operation, err
		}
		if a.Vacant {
			a.Owner.Inventory = a.Owner.Inventory.Without(ownership.PlaceOf(desired))
		}
	}
	stale, adopts, err := a.judge(desired, live)
	if err != nil || !stale {
		return live, "", err
	}
	if a.kept, err = KeptFields(ctx, a.Scale, desired.GroupVersionKind()); err != nil {
		return nil, "", fmt.Errorf("applying %s: %w", name(desired), err)
	}
	if !adopts && a.fromAnother(desired, live) {
		if a.Update == dsl.UpdateOnDelete {
			return live, "", nil
		}
		if err := a.replace(ctx, c, desired, live); err != nil {
			return nil, "", err
		}
	}
	return a.update(ctx, c, desired, live, adopts)
}

// obtain creates a child that the cache does not have, or returns the live one. The cache may lag, or cover too little.
// If the cache would not show the child, obtain reads it first. After a doubtful rejection, it reads and creates again.
func (a Applier) obtain(ctx context.Context, c dynamic.ResourceInterface, desired *unstructured.Unstructured) (live, result *unstructured.Unstructured, operation Operation, err error) {
	for _, version := range []string{noVersion, ""} {
		if !a.Lacking || version == "" {
			if live, err = c.Get(ctx, desired.GetName(), metav1.GetOptions{}); err == nil {
				return live, nil, "", nil
			}
			if !apierrors.IsNotFound(err) {
				return nil, nil, "", fmt.Errorf("applying %s: reading it: %w", name(desired), err)
			}
		}
		result, operation, err = a.create(ctx, c, desired, version)
		if !doubtful(err, desired.GetName()) {
			break
		}
	}
	return nil, result, operation, err
}

// Stale reports whether Apply would change a live object. The error is a *dsl.NotOwnedError if the owner may not have
// the object, or the observer's error.
func (a Applier) Stale(desired, live *unstructured.Unstructured) (bool, error) {
	stale, _, err := a.judge(desired, live)
	return stale, err
}

// judge decides what applying desired would do to a live object.
func (a Applier) judge(desired, live *unstructured.Unstructured) (stale, adopts bool, err error) {
	ours, by := a.Owner.Owned(live)
	ours = ours || by == "" && a.made(desired, live)
	going := live.GetDeletionTimestamp() != nil
	switch {
	case !ours && a.Owner.IsGarbage(live):
		return false, false, dsl.Waiting(fmt.Sprintf("%s of an earlier %s to be collected", name(live), a.Owner.Name().Describe()), 0)
	case !ours && (by != "" || going || a.Adopt != dsl.AdoptIfUnowned):
		return false, false, a.refusal(live, by)
	case !ours:
		return true, true, nil
	}
	if going || a.Holds(desired, live) {
		return false, false, nil
	}
	if a.Observer != nil {
		err = a.Observer.Contest(live)
	}
	return err == nil, false, err
}

// made reports whether an object without an owner was made from desired, which names its owner. Somebody has removed the
// tie by hand then, and it is restored like any other change.
func (a Applier) made(desired, live *unstructured.Unstructured) bool {
	return a.Owner.Keys.Made(live) && a.sameMark(desired, live)
}

// mark returns the annotation of an object that identifies the template it was applied from.
func (a Applier) mark(o *unstructured.Unstructured) string {
	return ownership.Annotation(o, a.Owner.Keys.Applied)
}

func (a Applier) sameMark(desired, live *unstructured.Unstructured) bool {
	return a.mark(live) == a.mark(desired)
}

// Holds reports whether applying desired would change nothing.
func (a Applier) Holds(desired, live *unstructured.Unstructured) bool {
	if !a.sameMark(desired, live) {
		return false
	}
	if a.Drift == dsl.DriftIgnore {
		return a.tied(desired, live) && a.Settled.same(desired)
	}
	if a.asWanted(desired, live) {
		return true
	}
	a.Settled.mu.Lock()
	defer a.Settled.mu.Unlock()
	return a.Settled.Memory.of[name(live)] == a.content(live)
}

// asWanted reports whether live has all that is desired, and no additions by others that have to be removed.
func (a Applier) asWanted(desired, live *unstructured.Unstructured) bool {
	return drift.Covers(desired, live) && a.added(desired, live, a.Drift == dsl.DriftStrict).Empty()
}

// tied reports whether live has the same ties to its owner as desired.
func (a Applier) tied(desired, live *unstructured.Unstructured) bool {
	keys := a.Owner.Keys
	for _, key := range []string{keys.Child, keys.Owner} {
		if wanted := ownership.Annotation(desired, key); wanted != "" && ownership.Annotation(live, key) != wanted {
			return false
		}
	}
	ref, has := metav1.GetControllerOfNoCopy(desired), metav1.GetControllerOfNoCopy(live)
	return live.GetLabels()[keys.Label] == desired.GetLabels()[keys.Label] && (ref == nil || has != nil && has.UID == ref.UID)
}

// noVersion is a version that no object has: the storage's own first one. An apply with it conflicts with an existing
// object, and creates a missing one.
const noVersion = "1"

// create applies without force, so it does not overwrite an object that somebody else creates at this moment. With
// [noVersion] it does not join such an object either. Without it, an apply that conflicts with nothing joins the object,
// and is undone.
func (a Applier) create(ctx context.Context, c dynamic.ResourceInterface, desired *unstructured.Unstructured, version string) (*unstructured.Unstructured, Operation, error) {
	out := a.noted(desired)
	out.SetResourceVersion(version)
	result, err := c.Apply(ctx, desired.GetName(), out, metav1.ApplyOptions{FieldManager: a.Manager})
	if version == "" && apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
		return nil, "", notOwned(desired)
	}
	if err != nil {
		return nil, "", fmt.Errorf("creating %s: %w", name(desired), err)
	}
	for _, entry := range drift.Managers(result) {
		if entry.Manager != a.Manager {
			result, err = a.giveBack(ctx, c, result)
			return result, LeftToOther, err
		}
	}
	a.settle(desired, result)
	return result, Created, nil
}

// doubtful reports whether a create failed because an object may exist that the cache does not show. It also does so for
// a server that creates nothing with a version. Custom servers may do that, and Kubernetes before 1.24 does for a
// Service: its error has no reason. Other servers report an invalid object.
func doubtful(err error, child string) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	status := answer.Status()
	switch status.Reason {
	case metav1.StatusReasonConflict: // a webhook that rejects a child as a conflict does not name it
		return status.Details != nil && cmp.Or(status.Details.Name, child) == child
	case metav1.StatusReasonNotFound: // errors about a quota or a namespace have that name
		return status.Details == nil || cmp.Or(status.Details.Name, child) == child
	case metav1.StatusReasonUnknown, metav1.StatusReasonInvalid:
		return strings.Contains(status.Message, "resourceVersion")
	}
	return apierrors.IsBadRequest(err)
}

// giveBack removes every field of this operator from an object, and returns an error that the object is not ours.
func (a Applier) giveBack(ctx context.Context, c dynamic.ResourceInterface, joined *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(joined.GroupVersionKind())
	empty.SetName(joined.GetName())
	empty.SetNamespace(joined.GetNamespace())
	back, err := c.Apply(ctx, joined.GetName(), empty, metav1.ApplyOptions{FieldManager: a.Manager, Force: true})
	if err != nil {
		return joined, fmt.Errorf("releasing the fields of %s: %w", name(joined), err)
	}
	return back, notOwned(joined)
}

// noted returns the desired object with the note on it. The caller may change its metadata and annotations; the rest is
// shared.
func (a Applier) noted(desired *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: maps.Clone(desired.Object)}
	metadata := map[string]any{}
	if given, is := desired.Object["metadata"].(map[string]any); is {
		maps.Copy(metadata, given)
	}
	out.Object["metadata"] = metadata
	if a.Note != "" {
		notes := out.GetAnnotations()
		notes[a.Owner.Keys.Child] = a.Note // an annotation is there already: the mark
		out.SetAnnotations(notes)
	}
	return out
}

func (a Applier) settle(desired, result *unstructured.Unstructured) {
	a.Settled.mu.Lock()
	defer a.Settled.mu.Unlock()
	m := a.Settled.Memory
	delete(m.of, name(result))
	if a.Drift == dsl.DriftIgnore {
		m.keep(desired)
		return
	}
	if !a.asWanted(desired, result) {
		if m.of == nil {
			m.of = map[string]string{}
		}
		m.of[name(result)] = a.content(result)
	}
}

// content returns a digest of a child, without parts that change by themselves.
func (a Applier) content(u *unstructured.Unstructured) string {
	tree := make(map[string]any, len(u.Object))
	for key, value := range u.Object {
		if key != "status" && key != "metadata" {
			tree[key] = value
		}
	}
	tree["labels"], tree["annotations"] = u.GetLabels(), u.GetAnnotations()
	for _, e := range u.GetManagedFields() {
		if (bookkeeping.HandOf(e.Manager) != bookkeeping.NoHand || a.others().Set(e)) && e.FieldsV1 != nil {
			tree["managed by "+e.Manager+" "+string(e.Operation)+" "+e.APIVersion+" "+e.Subresource] = drift.FieldsOf(e).String()
		}
	}
	return digest(tree)
}

func digest(value any) string {
	text, err := plain.Digest(value)
	if err != nil {
		return "!" // not JSON: cannot come out of dsl.Object
	}
	return text
}

// name names an object for people.
func name(u *unstructured.Unstructured) string { return ownership.PlaceOf(u).Describe() }
