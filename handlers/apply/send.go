// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"
	"sync"

	"github.com/go-logr/logr"

	"github.com/handwerk-dev/handwerk/dsl"
)

// atOnce is the number of parallel requests in one reconcile.
const atOnce = 8

// sender applies desired objects.
type sender struct {
	children dsl.Children
	log      logr.Logger
	// namespace is the owner's.
	namespace string
}

// enter enters the children of a level that must be in the owner's inventory, with one request. Apply reports errors.
// In the record of a namespaced owner, children with owner references are not needed.
func (s sender) enter(ctx context.Context, level []*state) {
	var all []dsl.DesiredChild
	for _, st := range level {
		for _, o := range st.objects {
			if o.err == nil && o.settled == nil && (o.child.spec.ByLabel() || s.namespace == "") {
				all = append(all, dsl.DesiredChild{ChildSpec: o.spec(), Object: o.desired})
			}
		}
	}
	if len(all) == 0 {
		return
	}
	if err := s.children.Enter(ctx, all...); err != nil {
		s.log.V(1).Info("children are entered one by one", "reason", err.Error())
	}
}

// send applies objects, several in parallel.
func (s sender) send(ctx context.Context, objects []*object) {
	objects = slices.DeleteFunc(slices.Clone(objects), func(o *object) bool { return o.settled != nil })
	each(ctx, objects, func(o *object) {
		if o.err != nil {
			return
		}
		result, err := s.children.Apply(ctx, o.desired, o.spec())
		if o.err = err; result != nil {
			o.live = result // it may be one that is being deleted
		}
	})
}

// compare finds the objects that were left as they are, although their template has changed.
func (s sender) compare(ctx context.Context, objects []*object) {
	for _, o := range objects {
		if o.spec().Update != dsl.UpdateOnDelete || o.err != nil || o.ending() {
			continue
		}
		if stale, live, err := s.children.Stale(ctx, o.desired, o.spec()); err != nil || !stale || live == nil {
			continue
		}
		if o.outdated = "as update: onDelete says"; o.update != "" {
			o.outdated = "as rollout.partition says"
		}
	}
}

// each calls fn for each element, several in parallel, until the context ends. It passes a panic on to the caller,
// because in another goroutine it would end the process. The last call, which is mostly the only one, has the caller's goroutine.
func each[T any](ctx context.Context, list []T, fn func(T)) {
	slots := make(chan struct{}, atOnce)
	panics := make(chan any, len(list))
	one := func(element T) {
		defer func() {
			if p := recover(); p != nil {
				panics <- p
			}
			<-slots
		}()
		fn(element)
	}
	var group sync.WaitGroup
	for i, element := range list {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		if i == len(list)-1 {
			one(element)
		} else {
			group.Go(func() { one(element) })
		}
	}
	group.Wait()
	if len(panics) > 0 {
		panic(<-panics)
	}
}
