// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
)

// prune takes away the handler's objects that are not desired any more. It compares objects, and not the names of
// children, because an object may now belong to another child. It also compares the place where an object was
// applied, because a template of a cluster-scoped kind may contain a namespace.
func (p *pass) prune(ctx context.Context) {
	applied := map[types.UID]bool{}
	for _, o := range p.taken {
		if o.live != nil && o.live.GetUID() != "" {
			applied[o.live.GetUID()] = true
		}
	}
	p.clear(ctx, func(found dsl.ChildObject) bool {
		return p.taken[p.placeOf(found)] == nil && !applied[found.Object.GetUID()]
	})
}

// leave prepares the deletion of the owner: it deletes children that Kubernetes does not delete, and orphans or
// retains those that should stay. It needs no expressions, except for children of an owner that has lost its
// record, which it finds by their templates.
func (p *pass) leave(ctx context.Context) {
	missed, err := p.r.Children.Missed()
	if err != nil {
		p.fail("reading children", err)
		return
	}
	if missed {
		p.find(ctx)
	}
	p.clear(ctx, func(found dsl.ChildObject) bool { return needsRemoval(found.ChildSpec) })
}

// end deletes children that were made for the deletion and should not stay, once all of them are ready. It does not
// wait until they are gone: looking for them again would create them again.
func (p *pass) end(ctx context.Context) {
	if !p.quiet() || ctx.Err() != nil {
		return
	}
	for _, o := range p.taken {
		if o.child.stays || o.live == nil {
			continue
		}
		if err := p.r.Children.Remove(ctx, dsl.ChildObject{ChildSpec: o.spec(), Object: o.live}); err != nil {
			p.fail(o.label(), err)
		}
	}
}

// find enters the desired children into the owner's record, as far as they can be computed. It ignores errors, so
// that they do not block the deletion.
func (p *pass) find(ctx context.Context) {
	before := &pass{plan: p.plan, r: p.r, states: map[string]*state{}, taken: map[place]*object{}}
	before.look()
	for _, level := range p.graph.Levels() {
		for _, name := range level {
			before.states[name] = before.want(ctx, p.children[name])
		}
		before.apart(level)
		before.enter(ctx, level)
		for _, name := range level {
			for _, o := range before.states[name].objects {
				if _, live, err := p.r.Children.Stale(ctx, o.desired, o.spec()); err == nil {
					o.live = live
				}
			}
		}
	}
}

// clear takes away this handler's unwanted children, in waves: children that depend on others go first, and each
// wave must be gone before the next. It does nothing while something fails or waits, because the desired objects
// may change then.
func (p *pass) clear(ctx context.Context, unwanted func(dsl.ChildObject) bool) {
	if !p.quiet() || ctx.Err() != nil {
		return
	}
	all, err := p.r.Children.All()
	if err != nil {
		p.fail("reading children", err)
		return
	}
	left := slices.DeleteFunc(all, func(found dsl.ChildObject) bool {
		return found.Handler != p.id || found.Ownership == dsl.Unowned || found.OnDelete == dsl.RetainChild || !unwanted(found)
	})
	for len(left) > 0 && p.quiet() && ctx.Err() == nil {
		wave, rest := p.wave(left)
		if stays := p.remove(ctx, wave); stays {
			return
		}
		left = rest
	}
}

// quiet reports whether nothing failed and nothing waits.
func (p *pass) quiet() bool { return len(p.failures) == 0 && len(p.waits) == 0 }

// remove takes the children of a wave away, several in parallel. It only waits for those that are being deleted
// already. It reports whether some stay because another handler may want them; the engine then runs this handler
// again.
func (p *pass) remove(ctx context.Context, wave []dsl.ChildObject) (stays bool) {
	errs := make([]error, len(wave))
	indexes := make([]int, len(wave))
	for i := range indexes {
		indexes[i] = i
	}
	each(ctx, indexes, func(i int) {
		if wave[i].OnDelete == dsl.OrphanChild || wave[i].Object.GetDeletionTimestamp() == nil {
			errs[i] = p.r.Children.Remove(ctx, wave[i])
		}
	})
	living := p.living()
	for i, found := range wave {
		switch {
		case errs[i] != nil:
			p.fail(labelOf(found.Object), errs[i])
		case living[objectOf(found)]:
			stays = true
		case found.OnDelete != dsl.OrphanChild:
			p.wait(0, "%s to be gone", labelOf(found.Object))
		}
	}
	return stays
}

// objectOf returns a key that identifies an object.
func objectOf(found dsl.ChildObject) string {
	return string(found.Object.GetUID()) + " " + labelOf(found.Object)
}

// living returns the names of children that are not being deleted. At a deletion there are none.
func (p *pass) living() map[string]bool {
	out := map[string]bool{}
	all, err := p.r.Children.All()
	if err != nil || p.r.Cause == dsl.Delete {
		return out
	}
	for _, found := range all {
		if found.Object.GetDeletionTimestamp() == nil {
			out[objectOf(found)] = true
		}
	}
	return out
}

// wave splits children into the next wave and the rest. Children whose names are not in the configuration any more
// go first, the youngest name before the others, because their dependencies are not known. Then come those that no
// other child depends on.
func (p *pass) wave(left []dsl.ChildObject) (wave, rest []dsl.ChildObject) {
	born := map[string]time.Time{}
	var known []string
	for _, found := range left {
		if p.graph.Has(found.Name) {
			known = append(known, found.Name)
			continue
		}
		at := found.Object.GetCreationTimestamp().Time
		if first, seen := born[found.Name]; !seen || at.Before(first) {
			born[found.Name] = at
		}
	}
	next := p.graph.Last(known)
	if len(born) > 0 {
		next = youngest(born)
	}
	for _, found := range left {
		if slices.Contains(next, found.Name) {
			wave = append(wave, found)
		} else {
			rest = append(rest, found)
		}
	}
	return wave, rest
}

// youngest returns the names with the latest time.
func youngest(born map[string]time.Time) (out []string) {
	var latest time.Time
	for name, at := range born {
		switch {
		case len(out) == 0 || at.After(latest):
			out, latest = []string{name}, at
		case at.Equal(latest):
			out = append(out, name)
		}
	}
	return out
}

// placeOf returns the place of an existing object.
func (p *pass) placeOf(found dsl.ChildObject) place {
	u := found.Object
	out := place{
		group: schema.FromAPIVersionAndKind(u.GetAPIVersion(), u.GetKind()).Group,
		kind:  u.GetKind(), namespace: u.GetNamespace(), name: u.GetName(),
	}
	if out.namespace == "" {
		out.namespace = p.r.Object.GetNamespace() // as for desired objects
	}
	return out
}
