// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// wants reports whether a toy of an object is wanted.
func (n *nursery) wants(o *unstructured.Unstructured, name string) bool {
	size, _ := at(o.Object, "spec.size").(int64)
	return slices.ContainsFunc(n.workshop.makes(), func(y toy) bool { return y.name == name && y.wanted(size) })
}

// look notes which toys are not wanted now.
func (n *nursery) look() {
	for name, k := range n.toys {
		owner, _, _ := strings.Cut(name, "-")
		o := n.Get(scene.Foos, "default", owner)
		k.unwanted = k.unwanted || o == nil || !n.wants(o, k.toy.name)
	}
}

// rest lets everything come to its end, and holds what there is then against the reference.
func (n *nursery) rest() {
	n.Advance(20 * time.Minute)
	n.process.Writes()
	n.Advance(time.Hour)
	if writes := n.process.Writes(); len(writes) > 0 {
		n.fault("at rest there were writes %v", writes)
	}
	for i := range n.names {
		o := n.object(operation{object: i})
		if o == nil && n.names[i] != "" && n.Get(scene.Foos, "default", n.names[i]) != nil {
			n.fault("%s is deleted, and still there", n.names[i])
		}
		if o == nil {
			continue
		}
		size, _ := at(o.Object, "spec.size").(int64)
		for _, y := range n.workshop.makes() {
			if y.wanted(size) {
				n.has(o, y, size)
			}
		}
	}
	for name, k := range n.toys {
		n.left(name, k)
	}
}

// has holds that a wanted child is there, tied to its owner, and that it is the one of the last rest.
func (n *nursery) has(o *unstructured.Unstructured, y toy, size int64) {
	name := o.GetName() + "-" + y.name
	child := n.Get(scene.ConfigMaps, y.namespace(), name)
	if child == nil {
		n.fault("%s is wanted, and is not there", name)
		return
	}
	if y.free(child) {
		return
	}
	if got := at(child.Object, "data.size"); got != fmt.Sprint(size) && !n.kept(o, child, y) {
		n.fault("%s has size %v, want %d", name, got, size)
	}
	byReference := y.ownership == dsl.Owned && y.onDelete != dsl.RetainChild
	if refs := child.GetOwnerReferences(); byReference != (len(refs) == 1 && refs[0].UID == o.GetUID()) {
		n.fault("%s has owner references %v", name, refs)
	}
	if record := o.GetAnnotations()["op.handwerk.dev/children"]; (!byReference || y.onDelete == dsl.OrphanChild) && !strings.Contains(record, name) {
		n.fault("%s is not in the record %s", name, record)
	}
	k := n.toys[name]
	if k == nil {
		k = &keepsake{toy: y, owner: o.GetUID()}
		n.toys[name] = k
	}
	if k.uid != "" && k.uid != child.GetUID() && !k.touched && !k.unwanted {
		n.fault("%s was deleted and made again", name)
	}
	k.uid, k.touched, k.unwanted = child.GetUID(), false, false
}

// free reports whether a child was let go before, and belongs to no object.
func (y toy) free(child *unstructured.Unstructured) bool {
	return y.onDelete == dsl.OrphanChild && len(child.GetOwnerReferences()) == 0 && child.GetLabels()["op.handwerk.dev/owner"] == ""
}

// unasked reports whether a handler of an object fails because a child that was let go is in its place. Whether that handler wants
// another child is not known, so the engine takes no child away from the object.
func (n *nursery) unasked(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(n.workshop, func(m maker) bool { return n.fails(o, m) })
}

// fails is unasked for one handler.
func (n *nursery) fails(o *unstructured.Unstructured, m maker) bool {
	return slices.ContainsFunc(m.toys, func(y toy) bool {
		child := n.Get(scene.ConfigMaps, y.namespace(), o.GetName()+"-"+y.name)
		return child != nil && n.wants(o, y.name) && y.free(child)
	})
}

// kept reports whether the handler that made a child keeps it from the one that wants it now: it fails, so whether it wants the
// child, too, is not known.
func (n *nursery) kept(o, child *unstructured.Unstructured, y toy) bool {
	return slices.ContainsFunc(n.workshop, func(m maker) bool { return m.made(child) && !slices.Contains(m.toys, y) && n.fails(o, m) })
}

// made reports whether a child says that the handler made it.
func (m maker) made(child *unstructured.Unstructured) bool {
	by, _, _ := strings.Cut(child.GetAnnotations()["op.handwerk.dev/child"], "/")
	return m.id == by || slices.Contains(m.was, by)
}

// dropped reports whether the handler that made a child is there no more: code may make children under any name, so the
// engine leaves it to the deletion of its owner.
func (n *nursery) dropped(child *unstructured.Unstructured) bool {
	return !slices.ContainsFunc(n.workshop, func(m maker) bool { return m.made(child) })
}

// collected is the garbage collector, which the cluster lacks: it returns what it leaves of a child whose owner is gone.
func (n *nursery) collected(child *unstructured.Unstructured, k *keepsake) *unstructured.Unstructured {
	if child == nil || !slices.ContainsFunc(child.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == k.owner }) {
		return child
	}
	n.Delete(scene.ConfigMaps, child.GetNamespace(), child.GetName())
	return nil
}

// left holds what became of a child that is not wanted any more.
func (n *nursery) left(name string, k *keepsake) {
	owner, _, _ := strings.Cut(name, "-")
	o := n.Get(scene.Foos, "default", owner)
	child := n.Get(scene.ConfigMaps, k.toy.namespace(), name)
	if o != nil {
		if n.wants(o, k.toy.name) || child != nil && (n.dropped(child) || n.unasked(o)) {
			return
		}
	} else if child = n.collected(child, k); child == nil && k.toy.ownership == dsl.Owned && k.toy.onDelete == dsl.DeleteChild {
		delete(n.toys, name)
		return
	}
	switch {
	case k.toy.onDelete == dsl.DeleteChild && child != nil:
		n.fault("%s is wanted no more, and is there", name)
	case k.toy.onDelete != dsl.DeleteChild && child == nil && !k.touched:
		n.fault("%s is to stay, and is gone", name)
	case k.toy.onDelete == dsl.OrphanChild && child != nil && (len(child.GetOwnerReferences()) > 0 || child.GetLabels()["op.handwerk.dev/owner"] != ""):
		n.fault("%s is to be free, and is tied: %v", name, child.Object["metadata"])
	}
	delete(n.toys, name)
}

func (n *nursery) fault(format string, args ...any) {
	n.faults = append(n.faults, fmt.Sprintf(format, args...))
}

// TestModelOfChildren holds the engine against a small reference of what becomes of children: random versions of an operator,
// random lives of owners, faults of the server and hands of people.
// MODEL_SEED=7 MODEL_SEEDS=1 go test ./engine/scenarios/model -run TestModelOfChildren does one of them again.
func TestModelOfChildren(t *testing.T) {
	first, last := seeds(t)
	for seed := first; seed < last; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 11))
			w := newWorkshop(r)
			operations := newOperations(r, w)
			faults := raise(t, w, operations)
			if len(faults) == 0 {
				return
			}
			for i := range slices.Backward(operations) {
				if less := slices.Delete(slices.Clone(operations), i, i+1); len(raise(t, w, less)) > 0 {
					operations = less
				}
			}
			faults = raise(t, w, operations)
			var story []string
			for _, d := range operations {
				story = append(story, d.String())
			}
			t.Errorf("MODEL_SEED=%d MODEL_SEEDS=1: %s\noperator:\n%s\nstory:\n%s", seed, faults[0], w, strings.Join(story, "\n"))
		})
	}
}
