// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// secondLook is how soon a rollout checks its updates again if no event comes before.
const secondLook = 10 * time.Second

// update applies the objects of children with one rollout.
type update struct {
	*desired
	sender sender
	// states are those of the children, several if they are of one group.
	states []*state
	// unready is the share of the children that may be unready at a time.
	unready share
}

// rollouts returns the children of a level that have a rollout, those of a group together.
func rollouts(level []*state) (out [][]*state) {
	groups := map[string]int{}
	for _, st := range level {
		if st.child.rollout == nil {
			continue
		}
		group := st.child.rollout.group
		if i, found := groups[group]; found && group != "" {
			out[i] = append(out[i], st)
			continue
		}
		groups[group] = len(out)
		out = append(out, []*state{st})
	}
	return out
}

// allowed returns how many objects may be unready at a time.
func (u update) allowed() int {
	all := 0
	for _, st := range u.states {
		all += len(st.objects)
	}
	return u.unready.of(all)
}

// of returns the state of an object's child.
func (u update) of(o *object) *state {
	return u.states[slices.IndexFunc(u.states, func(st *state) bool { return st.child == o.child })]
}

// roll applies the objects of the children. New objects are applied at once. Changed objects are applied only as long as
// not more than allowed are unready, those that are new or were missing among them. Objects that are unready already are changed at
// once: this loses nothing, and the change may mend them. Objects that their controller has not observed yet count as unready, but may be ready, so
// they wait. The last ones, as many as the partition has, are not updated.
func (u update) roll(ctx context.Context) {
	limits, unready, known := u.limits()
	if !known {
		return
	}
	u.unready = unready
	now, later, down := u.divide(ctx, limits)
	u.sender.send(ctx, now)
	down = slices.DeleteFunc(down, u.isUpAtOnce)
	left, more := u.batches(ctx, later, u.allowed()-len(down))
	if len(left) == 0 {
		return
	}
	held := map[*state]int{}
	for _, o := range left {
		o.held = true
		held[u.of(o)]++
	}
	most := time.Duration(0)
	if len(left) < len(later) || len(now) > 0 {
		most = secondLook
	}
	var labels []string
	for _, o := range append(down, more...) {
		labels = append(labels, o.label())
	}
	for _, st := range u.states {
		if n := held[st]; n > 0 {
			st.open = true
			st.result.wait(most, "the rollout of %s (%d of %d are still to be updated; not ready: %s)",
				st.child.name, n, len(st.objects), listed(labels, ", "))
		}
	}
}

// limits returns for each child how many of its objects are updated, and the share of all that may be unready. They are not
// known if an expression cannot be evaluated: no object of the group is written then.
func (u update) limits() (updated []int, unready share, known bool) {
	known = true
	scope := u.inputs.scope(nil)
	for _, st := range u.states {
		kept, err := st.child.rollout.kept(scope, len(st.objects))
		if err == nil {
			unready, err = st.child.rollout.unready(scope) // the same for all of a group
		}
		if updated = append(updated, len(st.objects)-kept); err == nil {
			continue
		}
		known = false
		if u.unresolved(st, st.child.label(""), err, st.child.rollout.programs(), scope) {
			st.result.fail(st.child.label(""), judged(err)) // it may not leave out what is there
		}
	}
	for _, st := range u.states {
		st.open = st.open || !known
	}
	return updated, unready, known
}

// division is what a rollout does with its objects: now, later as far as the limit allows, or recreate them because they are
// broken. Down are those that are not ready.
type division struct{ now, later, broken, down []*object }

// divide divides the objects of the children. Those of each child from the place of its limit on are not updated.
func (u update) divide(ctx context.Context, limits []int) (now, later, down []*object) {
	var all division
	for n, st := range u.states {
		for i, o := range st.objects {
			if stale, known := u.look(ctx, o); known {
				all.add(o, stale, o.live != nil && !o.ending() && u.isUp(o), i >= limits[n])
			}
		}
	}
	// Unready ones may come back, as after the failure of a node: no more than may be unready are deleted at a time.
	most := u.allowed() - (len(all.down) - len(all.broken))
	most = min(max(most, 0), len(all.broken))
	return append(all.now, all.broken[:most]...), append(all.broken[most:], all.later...), all.down
}

// add adds an object. Stale: it is to be changed. Left: it is not to be updated.
func (d *division) add(o *object, stale, up, left bool) {
	if !up {
		d.down = append(d.down, o)
	}
	switch {
	case o.live == nil:
		d.now = append(d.now, o)
	case o.ending() || !stale:
	case left:
		o.update = dsl.UpdateOnDelete // its drift is put back all the same
		d.now = append(d.now, o)
	case !up && o.child.spec.Update == dsl.UpdateRecreate:
		d.broken = append(d.broken, o)
	case !up && observed(o.live):
		d.now = append(d.now, o)
	default:
		d.later = append(d.later, o)
	}
}

// look finds the live object, and whether it is to be changed. Known is false for one with an error.
func (u update) look(ctx context.Context, o *object) (stale, known bool) {
	if o.err != nil {
		return false, false
	}
	stale, o.live, o.err = u.sender.children.Stale(ctx, o.desired, o.spec())
	return stale, o.err == nil
}

// batches applies objects in batches, and continues while the applied ones are ready at once. It returns the
// remaining objects, and those that are not ready. A refused object counts as unready, because others
// are probably refused for the same reason.
func (u update) batches(ctx context.Context, list []*object, free int) (left, down []*object) {
	for len(list) > 0 && free > len(down) && ctx.Err() == nil {
		batch := list[:min(free-len(down), len(list))]
		list = list[len(batch):]
		u.sender.send(ctx, batch)
		for _, o := range batch {
			if !u.isUpAtOnce(o) {
				down = append(down, o)
			}
		}
	}
	return list, down
}

// isUp reports whether an existing object is ready for the rollout. An object that its controller has not observed
// yet is not. If readiness cannot be evaluated, the object is not ready, and that is a failure.
func (u update) isUp(o *object) bool {
	if !observed(o.live) {
		return false
	}
	up, err := u.inputs.holds(o.child.rollout.ready, o)
	if err != nil {
		u.of(o).result.fail(o.label(), wrong(reasonUnresolved, "evaluating rollout.readyWhen: %w", err))
	}
	return err == nil && up
}

// isUpAtOnce reports whether an object that may just have been applied is ready. One with a status is looked at later.
func (u update) isUpAtOnce(o *object) bool {
	return o.err == nil && o.live != nil && !o.ending() && !hasStatus(o.live) && u.isUp(o)
}

// hasStatus reports whether the object has a status. If it was just applied, the status is about its earlier state.
func hasStatus(live *unstructured.Unstructured) bool {
	_, found := live.Object["status"]
	return found
}

// observed reports whether the object's controller has observed its generation, as far as the status says.
func observed(live *unstructured.Unstructured) bool {
	generation, found, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
	return !found || generation >= live.GetGeneration()
}
