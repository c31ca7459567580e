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

// update applies the objects of a child with a rollout.
type update struct {
	*desired
	sender sender
	state  *state
}

// roll applies the objects of the child. New objects are applied at once. Changed objects are applied only as long as
// not more than allowed are unready, those that are new or were missing among them. Objects that are unready already are changed at
// once: this loses nothing, and the change may mend them. Objects that their controller has not observed yet count as unready, but may be ready, so
// they wait. The last ones, as many as the partition has, are not updated.
func (u update) roll(ctx context.Context) {
	st := u.state
	scope := u.inputs.scope(nil)
	kept, err := st.child.rollout.kept(scope, len(st.objects))
	if err != nil {
		if st.open = true; u.unresolved(st, st.child.label(""), err, st.child.rollout.partition.Programs(), scope) {
			st.result.fail(st.child.label(""), judged(err)) // it may not leave out what is there
		}
		return
	}
	now, later, down := u.divide(ctx, len(st.objects)-kept)
	u.sender.send(ctx, now)
	down = slices.DeleteFunc(down, u.isUpAtOnce)
	left, more := u.batches(ctx, later, st.child.rollout.allowed(len(st.objects))-len(down))
	if len(left) == 0 {
		return
	}
	st.open = true
	for _, o := range left {
		o.held = true
	}
	most := time.Duration(0)
	if len(left) < len(later) || len(now) > 0 {
		most = secondLook
	}
	var labels []string
	for _, o := range append(down, more...) {
		labels = append(labels, o.label())
	}
	st.result.wait(most, "the rollout of %s (%d of %d are still to be updated; not ready: %s)",
		st.child.name, len(left), len(st.objects), listed(labels, ", "))
}

// divide finds the objects that are applied now, and those that are applied later, as far as the limit allows. Down
// are those that are not ready. Objects from the place of the limit on are not updated.
func (u update) divide(ctx context.Context, limit int) (now, later, down []*object) {
	var broken []*object // which are recreated
	recreates := u.state.child.spec.Update == dsl.UpdateRecreate
	for i, o := range u.state.objects {
		stale, known := u.look(ctx, o)
		if !known {
			continue
		}
		up := o.live != nil && !o.ending() && u.isUp(o)
		if !up {
			down = append(down, o)
		}
		switch {
		case o.live == nil:
			now = append(now, o)
		case o.ending():
		case stale && i >= limit:
			o.update = dsl.UpdateOnDelete // its drift is put back all the same
			now = append(now, o)
		case stale && !up && recreates:
			broken = append(broken, o)
		case stale && !up && observed(o.live):
			now = append(now, o)
		case stale:
			later = append(later, o)
		}
	}
	// Unready ones may come back, as after the failure of a node: no more than may be unready are deleted at a time.
	most := u.state.child.rollout.allowed(len(u.state.objects)) - (len(down) - len(broken))
	most = min(max(most, 0), len(broken))
	return append(now, broken[:most]...), append(broken[most:], later...), down
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
	up, err := u.inputs.holds(u.state.child.rollout.ready, o)
	if err != nil {
		u.state.result.fail(o.label(), wrong(reasonUnresolved, "evaluating rollout.readyWhen: %w", err))
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
