// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package apply makes children as their templates say, by server-side apply: tied to their owner, without adopting an object
// silently, and without a request when nothing differs.
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
	// Settled is the owner's, and lives as long as the process. Children of one owner may be applied at the same time.
	Settled *Settled
	// Drift says what is put back. Allow are field managers whose fields stay where it is strict.
	Drift dsl.DriftPolicy
	Allow []string
	// Update says what happens to a child whose template has changed.
	Update dsl.UpdatePolicy
	// Vacant says that the place of the child was entered into the owner's record a moment ago
	// because nothing was known to be there: what is found there has not become a child by that.
	Vacant bool
	// Lacking: the cache, which would show an object of the child's name, has none. The child is made without a look.
	Lacking bool
	// Found, when it is not nil, is filled in with what somebody changed of a child that is put back.
	Found *drift.Drift
	// Version is that of the child from which what is desired was made; empty for any. A later version is not changed.
	Version string
	// Note is written into the child annotation of a child without a name, see [Note]. It is no reason to write.
	Note string
	// Observer is optional.
	Observer Observer
	// Scale finds where a kind has its number of replicas; optional.
	Scale Scale
	// kept are the fields whose values stay if the template drops them.
	kept []dsl.Path
}

// Scale knows which field the scale subresource of a kind shows.
type Scale interface {
	// ScalePath returns the path of that field; nil if the kind has no such subresource.
	ScalePath(ctx context.Context, kind schema.GroupVersionKind) (dsl.Path, error)
}

// KeptOf returns the fields of a kind whose values stay if a template drops them: others than the operator change them while the
// object lives, and its default is one replica.
func KeptOf(ctx context.Context, scale Scale, kind schema.GroupVersionKind) ([]dsl.Path, error) {
	if scale == nil {
		return nil, nil
	}
	path, err := scale.ScalePath(ctx, kind)
	if err != nil || path == nil {
		return nil, err
	}
	return []dsl.Path{path}, nil
}

// Observer is asked before this owner's child is changed, and sees the writes.
type Observer interface {
	// Contest says why the child is not to be changed after all; nil if it may be.
	Contest(live *unstructured.Unstructured) error
	// Wrote gets the child after a write that another one follows.
	Wrote(*unstructured.Unstructured)
}

// Settled remembers children that differ from what was applied: the server rewrote a value. The zero value has none.
type Settled struct {
	mu sync.Mutex
	of map[string]string // the content by the child's name
	// values digest what was desired last, with the values of a Secret, of children whose drift is ignored.
	values map[string]string
}

// same reports whether the same is desired as when it was asked or settled last in the life of the process.
func (s *Settled) same(desired *unstructured.Unstructured) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := digest(desired.Object)
	if was, known := s.values[name(desired)]; known {
		return was == is
	}
	s.keepLocked(desired)
	return true
}

// knows reports whether the process has applied a child that the server rewrote.
func (s *Settled) knows(live *unstructured.Unstructured) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.of[name(live)]
	return known
}

func (s *Settled) keepLocked(desired *unstructured.Unstructured) {
	if s.values == nil {
		s.values = map[string]string{}
	}
	s.values[name(desired)] = digest(desired.Object)
}

// Apply makes the child as desired, which [Owner.Complete] has completed. Cached is the object of that name in the cache, nil
// when there is none. The deed is empty when no write was done; result is what it made of the object, also where it is given
// back. An object that the owner may not have is left alone; the error is a *dsl.NotOwnedError then, or one of dsl.Waiting for
// what the garbage collector has yet to take from an earlier owner. Other errors wrap those of the API machinery and name the child.
func (a Applier) Apply(ctx context.Context, c dynamic.ResourceInterface, desired, cached *unstructured.Unstructured) (result *unstructured.Unstructured, deed Deed, err error) {
	live := cached
	if live == nil {
		if live, result, deed, err = a.obtain(ctx, c, desired); live == nil {
			return result, deed, err
		}
		if a.Vacant {
			a.Owner.Record = a.Owner.Record.Without(ownership.PlaceOf(desired))
		}
	}
	stale, adopts, err := a.judge(desired, live)
	if err != nil || !stale {
		return live, "", err
	}
	if a.kept, err = KeptOf(ctx, a.Scale, desired.GroupVersionKind()); err != nil {
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

// obtain makes a child that the cache does not have, or returns what is there. The cache may lag, and a narrower scope does not
// show everything: what it would not show is looked for first, and so is what the server does not make.
func (a Applier) obtain(ctx context.Context, c dynamic.ResourceInterface, desired *unstructured.Unstructured) (live, result *unstructured.Unstructured, deed Deed, err error) {
	for _, version := range []string{noVersion, ""} {
		if !a.Lacking || version == "" {
			if live, err = c.Get(ctx, desired.GetName(), metav1.GetOptions{}); err == nil {
				return live, nil, "", nil
			}
			if !apierrors.IsNotFound(err) {
				return nil, nil, "", fmt.Errorf("applying %s: reading it: %w", name(desired), err)
			}
		}
		result, deed, err = a.create(ctx, c, desired, version)
		if !doubtful(err, desired.GetName()) {
			break
		}
	}
	return nil, result, deed, err
}

// Stale reports whether Apply would change an object that is there. The error is a
// *dsl.NotOwnedError for one that the owner may not have, or what the observer says.
func (a Applier) Stale(desired, live *unstructured.Unstructured) (bool, error) {
	stale, _, err := a.judge(desired, live)
	return stale, err
}

// judge decides what applying desired would do to an object that is there.
func (a Applier) judge(desired, live *unstructured.Unstructured) (stale, adopts bool, err error) {
	ours, by := a.Owner.Owned(live)
	ours = ours || by == "" && a.made(desired, live)
	going := live.GetDeletionTimestamp() != nil
	switch {
	case !ours && a.Owner.Collected(live):
		return false, false, dsl.Waiting(fmt.Sprintf("%s of an earlier %s to be collected", name(live), a.Owner.Name().People()), 0)
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

// made reports whether an object without an owner reference was made from what is desired now, in which its owner is named: then
// somebody has cut the tie by hand, which is put back like any other change.
func (a Applier) made(desired, live *unstructured.Unstructured) bool {
	return a.Owner.Keys.Made(live) && a.sameMark(desired, live)
}

// mark is what an object says that it was applied from.
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
	return a.Settled.of[name(live)] == a.content(live)
}

// asWanted reports whether live has what is desired, and nothing that is to be taken away.
func (a Applier) asWanted(desired, live *unstructured.Unstructured) bool {
	return drift.Covers(desired, live) && a.added(desired, live, a.Drift == dsl.DriftStrict).Empty()
}

// tied reports whether live has what ties it to its owner as desired has it.
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

// noVersion is a version that no object has: the storage's own first one. With it an apply to an object that is there is a
// conflict; where there is none it makes one all the same.
const noVersion = "1"

// create applies without force, so that an object which somebody else made in this moment is not overwritten. It is not joined
// either with [noVersion]. One that is joined without, because nothing conflicted, is given back as it was.
func (a Applier) create(ctx context.Context, c dynamic.ResourceInterface, desired *unstructured.Unstructured, version string) (*unstructured.Unstructured, Deed, error) {
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
			return result, GivenBack, err
		}
	}
	a.settle(desired, result)
	return result, Created, nil
}

// doubtful reports whether a child was not made because there may be an object that the cache does not show, or because the
// server makes nothing that has a version, as custom ones may, and Kubernetes before 1.24 with a Service: its error has no reason. Others
// say that it is not valid.
func doubtful(err error, child string) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	status := answer.Status()
	switch status.Reason {
	case metav1.StatusReasonConflict: // a webhook that refuses a child as a conflict does not name it
		return status.Details != nil && cmp.Or(status.Details.Name, child) == child
	case metav1.StatusReasonNotFound: // of a quota or a namespace they have its name
		return status.Details == nil || cmp.Or(status.Details.Name, child) == child
	case metav1.StatusReasonUnknown, metav1.StatusReasonInvalid:
		return strings.Contains(status.Message, "resourceVersion")
	}
	return apierrors.IsBadRequest(err)
}

// giveBack drops every field that this operator has in an object, and says that it is not ours.
func (a Applier) giveBack(ctx context.Context, c dynamic.ResourceInterface, joined *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(joined.GroupVersionKind())
	empty.SetName(joined.GetName())
	empty.SetNamespace(joined.GetNamespace())
	back, err := c.Apply(ctx, joined.GetName(), empty, metav1.ApplyOptions{FieldManager: a.Manager, Force: true})
	if err != nil {
		return joined, fmt.Errorf("giving back %s: %w", name(joined), err)
	}
	return back, notOwned(joined)
}

// noted returns what is desired with the note on it. Its metadata, and the annotations in there, are the caller's; the rest is not
// copied.
func (a Applier) noted(desired *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: maps.Clone(desired.Object)}
	metadata := map[string]any{}
	if given, is := desired.Object["metadata"].(map[string]any); is {
		maps.Copy(metadata, given)
	}
	out.Object["metadata"] = metadata
	if a.Note != "" {
		notes := out.GetAnnotations()
		notes[a.Owner.Keys.Child] = a.Note // there is an annotation already: what it is applied from
		out.SetAnnotations(notes)
	}
	return out
}

func (a Applier) settle(desired, result *unstructured.Unstructured) {
	a.Settled.mu.Lock()
	defer a.Settled.mu.Unlock()
	delete(a.Settled.of, name(result))
	if a.Drift == dsl.DriftIgnore {
		a.Settled.keepLocked(desired)
		return
	}
	if !a.asWanted(desired, result) {
		if a.Settled.of == nil {
			a.Settled.of = map[string]string{}
		}
		a.Settled.of[name(result)] = a.content(result)
	}
}

// content digests what a child is, without what changes by itself.
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
func name(u *unstructured.Unstructured) string { return ownership.PlaceOf(u).People() }

// refusal is the error about an object that the owner may not have, with what can be done about it where that is not plain.
func (a Applier) refusal(live *unstructured.Unstructured, by string) error {
	out := notOwned(live)
	out.Owner = by
	name, _ := ownership.ParsePlace(live.GetAnnotations()[a.Owner.Keys.Owner])
	controller := metav1.GetControllerOfNoCopy(live)
	switch {
	case a.Owner.Says(live):
		says := "has the label of this object"
		if controller != nil {
			says = "names this object as its controller"
		}
		out.Owner = ""
		out.Advice = fmt.Sprintf("it %s, but is not in its record of children (annotation %s): delete it, or give the child another name",
			says, a.Owner.Keys.Record)
	case controller != nil:
	case name == a.Owner.Name():
		out.Advice = "it is not garbage-collected, as it has no owner reference: delete it, or give the child another name"
	}
	return out
}

func notOwned(u *unstructured.Unstructured) *dsl.NotOwnedError {
	return &dsl.NotOwnedError{Resource: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}
