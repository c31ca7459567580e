// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/children/apply"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/cluster/notfound"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
	"github.com/handwerk-dev/handwerk/engine/decide/collision"
	"github.com/handwerk-dev/handwerk/engine/decide/drift"
)

// targets implements [dsl.Targets] for one attempt of a handler.
type targets struct {
	session *Session
	span    *transport.Span
	handler string
}

var _ dsl.Targets = (*targets)(nil)

// Targets returns the objects that a handler patches, for one attempt, which may write them in the span.
func (s *Session) Targets(span *transport.Span, handler string) dsl.Targets {
	return &targets{session: s, span: span, handler: handler}
}

// Patched returns the objects that the owner's handlers patch, from its inventory. A renamed handler has its new id.
func (s *Session) Patched() []ownership.Target {
	all := s.owner().Inventory.Targets()
	for i := range all {
		all[i].Handler = collision.Renamed(s.family.settings.Handlers, all[i].Handler)
	}
	return all
}

// aim is a target that is about to be patched.
type aim struct {
	ownership.Target
	gvr    schema.GroupVersionResource
	fields *unstructured.Unstructured
	force  bool
}

func (a *aim) key() cache.ObjectName { return cache.ObjectName{Namespace: a.Namespace, Name: a.Name} }

// Patch applies some fields to an object. An earlier target of the handler and key is released even if this patch fails:
// the handler does not want it.
func (t *targets) Patch(ctx context.Context, fields any, spec dsl.TargetSpec) (*unstructured.Unstructured, error) {
	ctx, done, err := t.span.Write(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	a, err := t.aim(ctx, fields, spec)
	if err != nil {
		return nil, err
	}
	result, err := t.patch(ctx, a)
	failed := t.giveBack(ctx, a.Handler, func(old ownership.Target) bool { return old.Key == a.Key && old != a.Target })
	if _, waits := dsl.IsWaiting(err); waits && failed != nil {
		return nil, failed
	}
	return result, errors.Join(err, failed)
}

// aim checks a patch, and finds the object's resource.
func (t *targets) aim(ctx context.Context, fields any, spec dsl.TargetSpec) (*aim, error) {
	s, with := t.session, t.session.family.settings
	object, err := dsl.Object(fields)
	if err == nil {
		err = spec.Validate()
	}
	name := cmp.Or(spec.Handler, t.handler)
	switch {
	case err != nil:
	case name != t.handler && !strings.HasPrefix(name, t.handler+"."):
		err = fmt.Errorf("%q is neither the handler's id nor that of a step of it", name)
	case s.in.Deleting:
		err = errors.New("its owner is being deleted, so it would be given back at once")
	}
	if err != nil {
		return nil, dsl.Permanent(fmt.Errorf("patching object: %w", err))
	}
	served, err := with.Catalog.KindOf(ctx, object.GroupVersionKind())
	if err != nil {
		return nil, fmt.Errorf("patching %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	if err := s.owner().CompletePatch(object, served.Namespaced, spec.Reach); err != nil {
		return nil, err
	}
	if err := dsl.CheckData(object, dsl.Discreet(ctx)); err != nil {
		return nil, fmt.Errorf("patching %s: %w", ownership.PlaceOf(object).Describe(), err)
	}
	a := &aim{gvr: served.GVR, fields: object, force: spec.Force, Target: ownership.Target{
		Place: ownership.PlaceOf(object), Handler: name, Key: spec.Key,
		Manager: ownership.TargetManager(with.Operator.Name, name, spec.Key, s.in.Object.GetUID()),
	}}
	return a, with.Host.Refusal(a.gvr, a.key())
}

// patch reads a target, and applies the fields unless the target has them.
func (t *targets) patch(ctx context.Context, a *aim) (*unstructured.Unstructured, error) {
	s := t.session
	live, err := s.family.settings.Host.Read(ctx, a.gvr, a.key())
	switch {
	case err != nil:
		return nil, fmt.Errorf("patching %s: reading it: %w", a.Describe(), err)
	case live == nil:
		return nil, awaitsTarget(a.Target)
	}
	if err := s.inventory.enterTarget(ctx, a.Target); err != nil {
		return nil, err
	}
	a.fields = a.Noted(a.fields, live)
	if drift.Holds(a.fields, live, a.Manager) || s.isSettled(a, live) {
		return live, nil
	}
	result, err := t.apply(ctx, a, live)
	switch conflict := conflictOf(a.Place, err); {
	case conflict != nil:
		return nil, conflict
	case notfound.IsGone(err, a.gvr.GroupResource(), a.Name):
		return nil, awaitsTarget(a.Target)
	case err != nil:
		return nil, fmt.Errorf("patching %s: %w", a.Describe(), err)
	}
	a.fields = a.Noted(a.fields, result)
	s.settle(a, result)
	return result, nil
}

// apply applies the fields. If they conflict only with fields that the same handler and key own under an earlier id, the
// new manager takes them over by force. One request does that, so the object keeps the fields all the time.
func (t *targets) apply(ctx context.Context, a *aim, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	s := t.session
	p, err := s.patching(ctx, a.Target, a.gvr)
	if err != nil {
		return nil, err
	}
	out, err := p.Apply(ctx, a.fields, live, apply.Force{Always: a.force})
	s.reportPatch(a.Target, t.handler, out)
	live = s.wroteTarget(t.handler, apply.Patched, "", a.gvr, live, out.Writes)
	conflict := conflictOf(a.Place, err)
	if conflict == nil {
		return live, err
	}
	former := t.of(a.Handler)
	foreign := func(c dsl.FieldConflict) bool {
		return !slices.ContainsFunc(former, func(old ownership.Target) bool {
			return old.Place == a.Place && old.Key == a.Key && old.Manager == c.Manager
		})
	}
	if slices.ContainsFunc(conflict.Conflicts, foreign) {
		return nil, err
	}
	out, err = p.Apply(ctx, a.fields, live, apply.Force{Exact: true}) // takes nothing that others own by now
	s.reportPatch(a.Target, t.handler, out)
	return s.wroteTarget(t.handler, apply.Patched, "", a.gvr, live, out.Writes), err
}

// patching returns the client that patches and releases a target.
func (s *Session) patching(ctx context.Context, t ownership.Target, gvr schema.GroupVersionResource) (apply.Patching, error) {
	with := s.family.settings
	kept, err := apply.KeptFields(ctx, with.Catalog, t.Kind.WithVersion(gvr.Version))
	return apply.Patching{Client: with.Host.Client(gvr, t.Namespace), Renewer: with.Renewer, Target: t, Prefix: s.family.names.keys.Prefix, Kept: kept}, err
}

// awaitsTarget returns the error for a target that does not exist.
func awaitsTarget(t ownership.Target) error {
	return dsl.Waiting(t.Describe()+" to exist", 0)
}

// conflictOf returns the error with the fields that others own; nil for other errors.
func conflictOf(at ownership.Place, err error) *dsl.FieldConflictError {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || !apierrors.IsConflict(err) || answer.Status().Details == nil {
		return nil
	}
	fields := map[string][]string{}
	for _, cause := range answer.Status().Details.Causes {
		if cause.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		manager := cause.Message // as in: conflict with "kubectl-edit" using v1
		if _, quoted, found := strings.Cut(manager, `"`); found {
			manager, _, _ = strings.Cut(quoted, `"`)
		}
		fields[manager] = append(fields[manager], cause.Field)
	}
	if len(fields) == 0 {
		return nil
	}
	out := &dsl.FieldConflictError{Kind: at.Kind.Kind, Namespace: at.Namespace, Name: at.Name}
	for manager, paths := range fields {
		slices.Sort(paths)
		out.Conflicts = append(out.Conflicts, dsl.FieldConflict{Manager: manager, Fields: slices.Compact(paths)})
	}
	slices.SortFunc(out.Conflicts, func(a, b dsl.FieldConflict) int { return cmp.Compare(a.Manager, b.Manager) })
	return out
}

// GiveBack releases the target of a handler and key.
func (t *targets) GiveBack(ctx context.Context, handler, key string) error {
	ctx, done, err := t.span.Write(ctx)
	if err != nil {
		return err
	}
	defer done()
	return t.giveBack(ctx, handler, func(old ownership.Target) bool { return old.Key == key })
}

// giveBack releases the targets of a handler that a function selects.
func (t *targets) giveBack(ctx context.Context, handler string, selects func(ownership.Target) bool) error {
	var failed []error
	for _, old := range t.of(handler) {
		if selects(old) {
			failed = append(failed, t.session.giveBack(ctx, old, ""))
		}
	}
	return errors.Join(failed...)
}

// Keys returns the keys under which a handler has targets.
func (t *targets) Keys(handler string) (keys []string) {
	for _, old := range t.of(handler) {
		keys = append(keys, old.Key)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// of returns the targets of a handler, including targets from its earlier ids.
func (t *targets) of(handler string) []ownership.Target {
	handlers, name := t.session.family.settings.Handlers, cmp.Or(handler, t.handler)
	return slices.DeleteFunc(t.session.owner().Inventory.Targets(), func(old ownership.Target) bool {
		return collision.Renamed(handlers, old.Handler) != name
	})
}
