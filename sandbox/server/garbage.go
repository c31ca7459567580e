// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// garbage knows which objects have owners, and which of them are to be looked at. It is guarded by the server's lock.
type garbage struct {
	// sums: a look at the roles that are sums is planned.
	sums bool
	// observes: a look at the status of policies is planned.
	observes bool
	// owners are those of each object that has some, and dependents the opposite, by the owner's uid.
	owners     map[place][]metav1.OwnerReference
	dependents map[types.UID]map[place]bool
	// due are the objects to look at, the oldest first.
	due []place
	// waits: a look at them is planned.
	waits bool
}

// place is where an object is.
type place struct {
	table *table
	key   types.NamespacedName
}

func newGarbage() *garbage {
	return &garbage{owners: map[place][]metav1.OwnerReference{}, dependents: map[types.UID]map[place]bool{}}
}

const (
	// collectLag is how long a collector takes to notice a write, and to go on after a part of its work.
	collectLag = 20 * time.Millisecond
	// collectPart is how many objects are looked at without a pause, so that requests do not wait for the rest.
	collectPart = 100
)

// note takes the owners of a written object, and plans to look at the objects which the write may concern.
func (g *garbage) note(p place, c store.Change, o *unstructured.Unstructured) {
	before, now := g.owners[p], o.GetOwnerReferences()
	if c.What == store.Deleted {
		now = nil
	}
	changed := !slices.EqualFunc(before, now, func(a, b metav1.OwnerReference) bool { return a.UID == b.UID })
	for _, owner := range before {
		delete(g.dependents[owner.UID], p)
		if len(g.dependents[owner.UID]) == 0 {
			delete(g.dependents, owner.UID)
		}
	}
	g.record(p, now)
	marked := o.GetDeletionTimestamp() != nil
	if changed && len(now) > 0 || marked && c.What != store.Deleted && len(propagation(o)) > 0 {
		g.due = append(g.due, p)
	}
	if c.What == store.Deleted || marked {
		g.due = append(g.due, g.of(o.GetUID())...)
	}
}

func (g *garbage) record(p place, owners []metav1.OwnerReference) {
	delete(g.owners, p)
	if len(owners) == 0 {
		return
	}
	g.owners[p] = owners
	for _, owner := range owners {
		if g.dependents[owner.UID] == nil {
			g.dependents[owner.UID] = map[place]bool{}
		}
		g.dependents[owner.UID][p] = true
	}
}

// of returns the dependents of an owner in a fixed order.
func (g *garbage) of(owner types.UID) []place {
	out := make([]place, 0, len(g.dependents[owner]))
	for p := range g.dependents[owner] {
		out = append(out, p)
	}
	slices.SortFunc(out, comparePlaces)
	return out
}

// propagation returns those finalizers of an object that the collector removes.
func propagation(o *unstructured.Unstructured) []string {
	return slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool { return !isPropagation(f) })
}

func isPropagation(finalizer string) bool {
	return finalizer == metav1.FinalizerOrphanDependents || finalizer == metav1.FinalizerDeleteDependents
}

// orphanDependents returns the older form of the propagation policy, nil if it is absent.
func orphanDependents(options metav1.DeleteOptions) *bool {
	return options.OrphanDependents //nolint:staticcheck // it is deprecated, and old clients still send it
}

// propagated returns an object with the finalizer that a deletion with these options gives it.
func (s *Server) propagated(t *table, o *unstructured.Unstructured, options metav1.DeleteOptions) *unstructured.Unstructured {
	if s.garbage == nil || t.name() == coreEvents() || t.name() == newEvents() {
		return o
	}
	want := ""
	orphans := orphanDependents(options)
	switch policy := options.PropagationPolicy; {
	case orphans != nil && *orphans, policy != nil && *policy == metav1.DeletePropagationOrphan:
		want = metav1.FinalizerOrphanDependents
	case policy != nil && *policy == metav1.DeletePropagationForeground:
		want = metav1.FinalizerDeleteDependents
	case policy != nil, orphans != nil:
	case slices.Contains(o.GetFinalizers(), metav1.FinalizerOrphanDependents):
		want = metav1.FinalizerOrphanDependents
	case slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents):
		want = metav1.FinalizerDeleteDependents
	case t.name() == schema.GroupResource{Group: "batch", Resource: "jobs"}: // as they were before there was a collector
		want = metav1.FinalizerOrphanDependents
	}
	finalizers := slices.DeleteFunc(slices.Clone(o.GetFinalizers()), isPropagation)
	if want != "" {
		finalizers = append(finalizers, want)
	}
	if slices.Equal(finalizers, o.GetFinalizers()) {
		return o
	}
	out := o.DeepCopy()
	out.SetFinalizers(finalizers)
	return out
}
