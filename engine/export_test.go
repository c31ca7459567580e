// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

// Waiting returns how many objects keys of the engine's resources wait for, for tests of what is left
// over when nothing waits.
func Waiting(e *Engine) (n int) {
	for r := range e.resources.All {
		n += r.inbox.CountAwaited()
	}
	return n
}

// Resync runs one reconcile over an object whose resync period has passed. Nothing else of it may be under way.
func Resync(e *Engine, namespace, name string) {
	for r := range e.resources.All {
		t := r.inbox.Take(cache.ObjectName{Namespace: namespace, Name: name})
		t.Memory.Resync = new(time.Unix(1, 0))
		t.Close()
	}
	Look(e, namespace, name)
}

// Look runs one reconcile over an object for which nothing has come up. Nothing else of it may be under way.
func Look(e *Engine, namespace, name string) {
	for r := range e.resources.All {
		if _, err := r.controller.Reconcile(context.Background(), cache.ObjectName{Namespace: namespace, Name: name}); err != nil {
			panic(err)
		}
	}
}

// ChildChanged has a running engine see a change of a child, and reports whether that brings a reconcile over its owner.
func ChildChanged(e *Engine, before, after *cached.Object) (wakes bool) {
	ev := watch.Event{Kind: watch.Updated, Key: cache.MetaObjectToName(after), UID: after.GetUID(), Object: after, Old: before}
	for r := range e.resources.All {
		for _, kind := range r.family.Kinds() {
			r.family.OnEvent(kind, ev)
		}
		at := r.inbox.Queue()
		wakes = wakes || at.Working > 0 || len(at.Waiting) > 0
	}
	return wakes
}

// Child returns an object of the first kind that an engine's resource owns, as the cache has it.
func Child(e *Engine, namespace, name string) (child *cached.Object) {
	for r := range e.resources.All {
		child, _ = r.family.Kinds()[0].Get(cache.ObjectName{Namespace: namespace, Name: name})
	}
	return child
}

// Rests reports whether nothing is remembered of an object but what is of all.
func Rests(e *Engine, namespace, name string) bool {
	for r := range e.resources.All {
		t := r.inbox.Take(cache.ObjectName{Namespace: namespace, Name: name})
		defer t.Close()
		if t.Memory == nil || t.Memory.HasRare() {
			return false
		}
	}
	return true
}

// WatchReconciles logs the reconciles of a running engine with all their details.
func WatchReconciles(e *Engine, log logr.Logger) {
	for r := range e.resources.All {
		r.controller.Observer.Log = log
	}
}
