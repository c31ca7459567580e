// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/children/apply"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
	"github.com/handwerk-dev/handwerk/engine/decide/collision"
	"github.com/handwerk-dev/handwerk/engine/decide/filter"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// enterTarget enters a target into the owner's inventory and adds the finalizer to the owner, before the target is
// patched.
func (r *ownerInventory) enterTarget(ctx context.Context, t ownership.Target) error {
	r.turn.Lock()
	defer r.turn.Unlock()
	if err := r.ensure(ctx); err != nil {
		return r.unentered(err)
	}
	r.mu.Lock()
	before, fault := r.known.inventory, r.fault
	r.mu.Unlock()
	if before.ListsTarget(t) {
		return nil // the reconcile itself restores a finalizer that somebody has removed
	}
	if fault == nil {
		r.writer.need()
		fault = r.write(ctx, func(known *ownership.Inventory) *ownership.Inventory { return known.WithTarget(time.Now(), t) })
	}
	return r.unentered(fault)
}

// dropTarget removes a target from the inventory. The annotation follows when there is something to write.
func (r *ownerInventory) dropTarget(t ownership.Target) {
	r.mu.Lock()
	defer r.mu.Unlock()
	inventory := r.known.inventory.WithoutTarget(t)
	text, err := inventory.Encode(r.in.Object.GetUID())
	if err != nil {
		return // it was encoded before, and was longer
	}
	r.known.inventory, r.known.next, r.known.since = inventory, text, r.family.epoch(r.in.Key)
	r.keep()
}

// giveBack releases the fields of a target, and removes the target from the inventory. An object that is gone has no
// fields to release.
func (s *Session) giveBack(ctx context.Context, t ownership.Target, why string) error {
	if !s.goesWith(t) {
		if err := s.release(ctx, t, why); err != nil {
			return fmt.Errorf("giving back fields of %s: %w", t.Describe(), err)
		}
	}
	s.inventory.dropTarget(t)
	return nil
}

// goesWith reports whether the fields of a target go with the owner, which is the target and is being deleted. If the
// owner has finalizers that are not the operator's, the answer is no: one of them may be a patched field, and would hold
// the owner for ever.
func (s *Session) goesWith(t ownership.Target) bool {
	others := func(finalizer string) bool { return !s.family.names.keys.Own(finalizer) }
	return t.Place == s.owner().Name() && s.in.Deleting && !s.in.Gone && !slices.ContainsFunc(s.Base().GetFinalizers(), others)
}

// release applies an object without fields with the field manager of a target. This removes the fields that no other
// manager owns.
func (s *Session) release(ctx context.Context, t ownership.Target, why string) error {
	with := s.family.settings
	served, err := with.Catalog.KindOf(ctx, t.Kind.WithVersion(""))
	if errors.Is(err, discovery.ErrMissing) {
		if extinct, _ := with.Sources.IsExtinct(ctx, t.Kind); extinct {
			return nil // the API server removes a CRD after its last object
		}
	}
	if err != nil {
		return err
	}
	live, gvr, err := s.readApplied(ctx, t, served.GVR)
	if err != nil {
		return fmt.Errorf("reading it: %w", err)
	}
	p, err := s.patching(ctx, t, gvr)
	if err != nil {
		return err
	}
	out, err := p.Release(ctx, live)
	s.reportPatch(t, t.Handler, out)
	s.wroteTarget(t.Handler, apply.FieldsReleased, why, gvr, live, out.Writes)
	return err
}

// readApplied reads a target in the version in which its manager has applied it, if that version is served; see
// [apply.AppliedIn].
func (s *Session) readApplied(ctx context.Context, t ownership.Target, gvr schema.GroupVersionResource) (*unstructured.Unstructured, schema.GroupVersionResource, error) {
	with, key := s.family.settings, cache.ObjectName{Namespace: t.Namespace, Name: t.Name}
	live, err := with.Host.Read(ctx, gvr, key)
	if err != nil || live == nil {
		return nil, gvr, err
	}
	other, err := apply.AppliedIn(ctx, with.Catalog, t, live)
	if err != nil || other == nil {
		return live, gvr, err
	}
	live, err = with.Host.Read(ctx, *other, key)
	return live, *other, err
}

// reportPatch logs the values of a target that are not restored, and the fields that stay.
func (s *Session) reportPatch(t ownership.Target, handler string, out apply.PatchResult) {
	log := s.in.Logger.Log().WithValues(logmark.Warning, true, "object", t.Describe(), "handler", handler)
	if out.Unread != nil {
		log.Info("the note of replaced values does not count; they are not restored", "error", out.Unread.Error())
	}
	if len(out.Large) > 0 {
		log.Info("values are too large to restore when the fields are released", "fields", out.Large)
	}
	if len(out.Left) > 0 {
		log.Info("fields stay as they are, because the API server requires them", "fields", out.Left)
	}
}

// wroteTarget records and logs the writes of a target, which may be the owner itself. It returns the target after the
// writes. Why may be empty.
func (s *Session) wroteTarget(handler string, operation apply.Operation, why string, gvr schema.GroupVersionResource, before *unstructured.Unstructured, writes []*unstructured.Unstructured) *unstructured.Unstructured {
	now, changed := before, false
	for _, result := range writes {
		switch own := result.GetUID() == s.in.Object.GetUID(); {
		case now.GetResourceVersion() == result.GetResourceVersion():
			s.journal.count(ops.Other)
			continue
		case own && !s.in.Gone:
			s.inventory.wrote(patch.Result{Object: result, Whole: true})
			s.writer.set(result)
		default:
			s.journal.written(Write{Handler: handler}, ops.Other, s.journal.showing(gvr, result), gvr, result)
		}
		now, changed = result, true
	}
	if !changed {
		return now
	}
	line := string(operation) + " " + ownership.PlaceOf(now).Describe()
	if why != "" {
		line += ": " + why
	}
	s.in.Logger.Log().Info(line, "handler", handler)
	return now
}

// endTargets releases all targets before the owner goes.
func (s *Session) endTargets(ctx context.Context) error {
	var failed []error
	for _, t := range s.owner().Inventory.Targets() {
		failed = append(failed, s.giveBack(ctx, t, ""))
	}
	return errors.Join(failed...)
}

// reclaimLook is the interval between attempts to release targets that no handler wants.
const reclaimLook = time.Minute

// ReleaseTargets releases the targets that no handler wants, of an owner that is not being deleted. Again is the delay until
// the next attempt; zero if only an event makes one necessary. Failures are logged, and hold up nothing else. The span
// must not have begun.
func (s *Session) ReleaseTargets(ctx context.Context, span *transport.Span, owner metav1.Object) (again time.Duration) {
	all := s.owner().Inventory.Targets()
	if !slices.ContainsFunc(all, func(t ownership.Target) bool { return s.family.left(t, owner) != "" }) {
		return 0
	}
	ctx = span.Begin(ctx)
	defer span.End()
	ctx, done, err := span.Write(ctx)
	if err != nil {
		return reclaimLook
	}
	defer done()
	var failed []error
	for _, t := range all {
		if why := s.family.left(t, owner); why != "" {
			failed = append(failed, s.giveBack(ctx, t, why))
		}
	}
	m := &s.in.Memory.targets
	s.settling.Lock()
	defer s.settling.Unlock()
	err = errors.Join(failed...)
	if err == nil {
		m.refused = ""
		return 0
	}
	if m.refused != err.Error() {
		m.refused = err.Error()
		s.in.Logger.Log().Info("fields of objects that no handler patches any more could not be given back", logmark.Warning, true, "error", m.refused)
	}
	return reclaimLook
}

// left returns the reason why no handler wants a target; empty if one does, or may.
func (f *Family) left(t ownership.Target, owner metav1.Object) string {
	handlers := f.settings.Handlers
	maker := collision.Renamed(handlers, t.Handler)
	at := collision.HandlerOf(handlers, maker)
	switch {
	case at < 0:
		return fmt.Sprintf("there is no handler %s any more", maker)
	case handlers[at].Known.Patches != nil && !slices.Contains(handlers[at].Known.Patches, maker):
		return fmt.Sprintf("handler %s does not patch any more", maker)
	case handlers[at].Known.Withdraws && !filter.Matches(handlers[at], owner):
		return fmt.Sprintf("handler %s does not see the object any more", maker)
	}
	return ""
}
