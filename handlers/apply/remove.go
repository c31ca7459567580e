// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
)

// prune takes away the handler's objects that are not desired any more.
func (p *pass) prune(ctx context.Context, taken places) {
	own := p.r.Object.GetNamespace()
	p.clear(ctx, func() ([]dsl.ChildObject, error) {
		if known, is := p.owned.(dsl.ChildInputs); is { // it builds no trees of those that stay
			return known.Left(p.id, taken.having(own))
		}
		all, err := p.owned.All()
		return taken.without(all, own), err
	})
}

// leave prepares the deletion of the owner: it deletes children that Kubernetes does not delete, and orphans or
// retains those that should stay. It needs no expressions, except for children of an owner that has lost its
// record, which it finds by their templates.
func (p *pass) leave(ctx context.Context) {
	missed, err := p.owned.Missed()
	if err != nil {
		p.result.fail("reading children", err)
		return
	}
	if missed {
		p.find(ctx)
	}
	p.clear(ctx, func() ([]dsl.ChildObject, error) {
		all, err := p.owned.All()
		return p.leaving(all), err
	})
}

// order finds the children that are deleted in order when their owner is: those that say so, and those that need one of
// them, or Kubernetes would delete these last.
func (p *plan) order() {
	p.ordered = map[string]bool{}
	for _, level := range p.graph.Levels() {
		for _, name := range level {
			needs := slices.ContainsFunc(p.graph.Needs(name), func(other string) bool { return p.ordered[other] })
			if !needs && p.children[name].spec.DeleteOrder != dsl.DeleteReverse {
				continue
			}
			p.ordered[name] = true
		}
	}
}

// leaving returns the children about which something has to be done before their owner goes. Somebody may want it to go
// without its children, as by kubectl delete --cascade=orphan, or it has left the operator's selector or scope and lives.
func (p *pass) leaving(all []dsl.ChildObject) (out []dsl.ChildObject) {
	owner := p.r.Object
	leaves := owner.GetDeletionTimestamp() == nil || slices.Contains(owner.GetFinalizers(), metav1.FinalizerOrphanDependents)
	for _, one := range all {
		goes := one.Ownership != dsl.Unowned && (one.OnDelete == "" || one.OnDelete == dsl.DeleteChild)
		if goes && !leaves && p.ordered[one.Name] {
			one.DeleteOrder = dsl.DeleteReverse
		} else if !needsRemoval(one.ChildSpec) {
			continue
		}
		out = append(out, one)
	}
	return out
}

// end deletes children that were made for the deletion and should not stay, once all of them are ready. It does not
// wait until they are gone: looking for them again would create them again.
func (p *pass) end(ctx context.Context, taken places) {
	if !p.result.quiet() || ctx.Err() != nil {
		return
	}
	for _, o := range taken {
		if o.child.stays || o.live == nil {
			continue
		}
		if err := p.owned.Remove(ctx, dsl.ChildObject{ChildSpec: o.spec(), Object: o.live}); err != nil {
			p.result.fail(o.label(), err)
		}
	}
}

// find enters the desired children into the owner's inventory, as far as they can be computed. It ignores errors, so
// that they do not block the deletion.
func (p *pass) find(ctx context.Context) {
	before, _ := p.desired()
	for _, names := range p.graph.Levels() {
		level := before.level(ctx, names)
		p.sender.enter(ctx, level)
		for _, st := range level {
			for _, o := range st.objects {
				if _, live, err := p.owned.Stale(ctx, o.desired, o.spec()); err == nil {
					o.live = live
				}
			}
		}
	}
}

// clear takes away this handler's unwanted children. It does nothing while something fails or waits, because the
// desired objects may change then.
func (p *pass) clear(ctx context.Context, unwanted func() ([]dsl.ChildObject, error)) {
	if !p.result.quiet() || ctx.Err() != nil {
		return
	}
	all, err := unwanted()
	if err != nil {
		p.result.fail("reading children", err)
		return
	}
	kept := func(found dsl.ChildObject) bool {
		return found.Handler != p.id || found.Ownership == dsl.Unowned || found.OnDelete == dsl.RetainChild
	}
	r := remover{children: p.owned, graph: p.graph, deletion: p.r.Cause == dsl.Delete}
	p.result.add(r.removeAll(ctx, slices.DeleteFunc(all, kept)))
}
