// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/decide/drift"
)

// Patching applies fields to one object that is not a child, with a field manager of its own.
type Patching struct {
	Client dynamic.ResourceInterface
	// Renewer renews own entries of dropped versions if the API server rejects the apply because of them.
	Renewer *Renewer
	Target  ownership.Target
	// Prefix begins the key of the annotation with the replaced values. It is not needed to release the fields.
	Prefix string
	// Kept are the fields whose values stay if the patch drops them; see [KeptFields].
	Kept []dsl.Path
}

// Force says whether an apply takes fields from other managers.
type Force struct {
	// Always takes them. Exact takes them if the object has not changed since it was read.
	Always, Exact bool
}

// PatchResult is the outcome of a patch, or of a failed attempt.
type PatchResult struct {
	// Writes has the object after each write.
	Writes []*unstructured.Unstructured
	// Large are the fields whose replaced values are too large for the note. Left are fields that the manager has given up and
	// whose values stay, because the API server requires them.
	Large, Left []string
	// Unread is the reason why the note of replaced values cannot be read; nil if it can.
	Unread error
}

// Apply applies the fields to the object that was read, and to no other of its name. First it moves fields between
// managers, see [drift.Handover]. A dry run then shows which values the fields replace, and an annotation of the object
// notes them. After the apply, the manager gives up fields whose replaced values came back.
func (p Patching) Apply(ctx context.Context, fields, live *unstructured.Unstructured, force Force) (PatchResult, error) {
	a := patchAttempt{Patching: p, fields: p.Target.WithoutNote(fields), live: live, force: force}
	if force.Exact {
		err := a.run(ctx)
		return a.out, err
	}
	renewed, err := p.Renewer.RenewRejected(ctx, p.Client, p.Target.Name, live.GetUID(), a.retry(ctx))
	if renewed != nil {
		a.wrote(renewed)
		err = a.retry(ctx)
	}
	return a.out, err
}

// outdated reports whether an error says that the object has changed since it was read.
func outdated(err error) bool {
	return apierrors.IsConflict(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}

// patchAttempt is one apply. Live is the newest known state of the object; out has the states that were written.
type patchAttempt struct {
	Patching
	fields, live *unstructured.Unstructured
	force        Force
	out          PatchResult
	// runs counts the calls of run: one call may cause the next.
	runs int
}

// retry repeats run if the object has changed meanwhile, a limited number of times.
func (a *patchAttempt) retry(ctx context.Context) error {
	for {
		err := a.run(ctx)
		if err == nil || a.runs > releaseRetries || !outdated(err) {
			return err
		}
		now, failed := a.Client.Get(ctx, a.Target.Name, metav1.GetOptions{})
		if failed != nil || now.GetUID() != a.live.GetUID() {
			return err
		}
		a.live = now
	}
}

// run applies the fields. If values are replaced or come back, the object must still have the version that was read.
func (a *patchAttempt) run(ctx context.Context) error {
	a.runs++
	manager := a.Target.Manager
	earlier, unread := a.Target.Replaced(a.live)
	back := drift.Restored(a.fields, a.live, manager, earlier)
	if err := a.handOver(ctx, back); err != nil {
		return err
	}
	bare := drift.IsBare(a.fields)
	if bare && !drift.Applies(a.live, manager) {
		return nil // the manager owns nothing else
	}
	sent := drift.With(a.fields, back)
	news, err := a.replaced(ctx, sent)
	if err != nil {
		return a.refused(ctx, sent, err)
	}
	var large []string
	if !bare || len(back) > 0 {
		sent, large = a.Target.Note(a.Prefix, sent, a.live, drift.After(earlier, news, a.live, manager))
	}
	options := metav1.ApplyOptions{FieldManager: manager, Force: a.force.Always || a.force.Exact}
	result, err := a.Client.Apply(ctx, a.Target.Name, a.addressed(sent, a.force.Exact || len(news)+len(back) > 0), options)
	if err != nil {
		return a.refused(ctx, sent, err)
	}
	a.wrote(result)
	a.out.Unread, a.out.Large = unread, large
	if len(back) == 0 {
		return nil
	}
	over := drift.Lacking(a.fields, result, manager)
	if note := a.notePath(); !bare && note != nil {
		over = over.Difference(fieldpath.NewSet(note))
	}
	return a.giveUp(ctx, over)
}

// handOver writes the fields that move between managers. Fields whose values come back are not released before.
func (a *patchAttempt) handOver(ctx context.Context, back []drift.Replaced) error {
	kept := slices.DeleteFunc(slices.Clone(a.Kept), func(path dsl.Path) bool {
		return slices.ContainsFunc(back, func(r drift.Replaced) bool { return r.At(path) })
	})
	entries, changed := drift.HandoverOf(a.fields, a.live, a.Target.Manager, kept...).Entries(a.live, a.Target.Manager)
	if !changed {
		return nil
	}
	result, err := Rewrite(ctx, a.Client, a.live, entries, a.Target.Manager, nil)
	if err == nil {
		a.wrote(result)
	}
	return err
}

// replaced returns the values that fields replace. A dry run shows the paths of the fields, which depend on the server's
// schema. It is skipped if the object has no such values.
func (a *patchAttempt) replaced(ctx context.Context, fields *unstructured.Unstructured) ([]drift.Replaced, error) {
	taking := drift.Taking{Desired: fields, Live: a.live, Manager: a.Target.Manager, Noted: ownership.ReplacedBy(a.live)}
	if !a.force.Always {
		taking.Kept = a.Kept
	}
	if a.Target.IsSecret() || !taking.MayReplace() {
		return nil, nil
	}
	options := metav1.ApplyOptions{FieldManager: a.Target.Manager, Force: true, DryRun: []string{metav1.DryRunAll}}
	result, err := a.Client.Apply(ctx, a.Target.Name, a.addressed(fields, true), options)
	if err != nil {
		return nil, err
	}
	taking.Fields = drift.OwnFields(result, a.Target.Manager)
	return taking.Replaced(), nil
}

// addressed returns fields for the object that was read, so that the server does not create a missing one. If exact is
// true, they are for that version of it.
func (a *patchAttempt) addressed(fields *unstructured.Unstructured, exact bool) *unstructured.Unstructured {
	out := fields.DeepCopy()
	out.SetUID(a.live.GetUID())
	if exact {
		out.SetResourceVersion(a.live.GetResourceVersion())
	}
	return out
}

// refused handles a rejection. It gives up the fields that the server requires, keeps their values, and applies the
// rest. Sent lacks these fields because their original values are unknown, and the owner would wait for ever. Any other
// rejection is returned.
func (a *patchAttempt) refused(ctx context.Context, sent *unstructured.Unstructured, refusal error) error {
	var answer apierrors.APIStatus
	if a.runs > releaseRetries || !apierrors.IsInvalid(refusal) || !errors.As(refusal, &answer) || answer.Status().Details == nil {
		return refusal
	}
	left := drift.Required(sent, a.live, a.Target.Manager, answer.Status().Details.Causes)
	if left.Empty() {
		return refusal
	}
	if err := a.giveUp(ctx, left); err != nil {
		return err
	}
	for path := range left.Leaves().All() {
		a.out.Left = append(a.out.Left, path.String())
	}
	return a.run(ctx)
}

// giveUp releases fields, so that their values stay without an owner. A released note is removed.
func (a *patchAttempt) giveUp(ctx context.Context, fields *fieldpath.Set) error {
	entries, changed := drift.Handover{Released: fields, Claimed: fieldpath.NewSet()}.Entries(a.live, a.Target.Manager)
	if !changed {
		return nil
	}
	var notes map[string]any
	if note := a.notePath(); note != nil && fields.Has(note) {
		notes = map[string]any{a.Target.NoteKey(a.live): nil}
	}
	result, err := Rewrite(ctx, a.Client, a.live, entries, a.Target.Manager, notes)
	if err == nil {
		a.wrote(result)
	}
	return err
}

// notePath returns the path of the annotation of replaced values, or nil if the object has no such annotation.
func (a *patchAttempt) notePath() fieldpath.Path {
	if key := a.Target.NoteKey(a.live); key != "" {
		return fieldpath.MakePathOrDie("metadata", "annotations", key)
	}
	return nil
}

func (a *patchAttempt) wrote(result *unstructured.Unstructured) {
	a.live = result
	a.out.Writes = append(a.out.Writes, result)
}
