// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package daemon runs the daemons of a resource: one goroutine for each object and daemon, which lives as long as the object, its
// filters and the term of leadership. Reconciles say which daemons an object has; events of deletion end them at once.
package daemon

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/reconcile/attempt"
)

// Settings are the settings for the daemons of one resource. All are required but Handlers.
type Settings struct {
	// Resource is the resource's name, for metrics.
	Resource string
	Handlers []*dsl.Handler
	// Grace is the time to stop of a daemon that names none.
	Grace time.Duration
	// Cache has the objects. Keys: it has only their keys.
	Cache Cache
	Keys  bool
	Host  Host
	// Paused reports whether an object, its namespace or the operator is paused. It is called with the lock of the
	// manager.
	Paused func(metav1.Object) bool
	// Texts bounds the log of errors that many objects share.
	Texts *attempt.Texts
	// Metrics count finished runs, and Events warns about an object.
	Metrics Metrics
	Events  Events
	Log     logr.Logger
}

// Cache has the objects of a resource; see [source.Source].
type Cache interface {
	// Get returns an object.
	Get(cache.ObjectName) (*cached.Object, bool)
	// Tree returns the tree of an object.
	Tree(*cached.Object) *unstructured.Unstructured
}

// Metrics count finished runs; see [ops.Metrics].
type Metrics interface{ Handled(ops.HandlerRun) }

// Events sends warnings about an object; see [events.Recorder].
type Events interface {
	Warn(o runtime.Object, action, reason, note string)
}

// Host is the process in which daemons run.
type Host interface {
	// Shown returns a written object in the form of the cache.
	Shown(*unstructured.Unstructured) *unstructured.Unstructured
	// View returns a digest of a daemon's view of an object.
	View(*dsl.Handler, *unstructured.Unstructured) string
	// Enqueue queues a key for a reconcile.
	Enqueue(cache.ObjectName)
	// Equip adds children, indexes, Events and a client to the request of a run. They work until the span is over.
	Equip(Run, *dsl.DaemonRequest)
	// Send sends a daemon's changes of its object.
	Send(context.Context, Write) (Sent, error)
	// Held is the fence; see [transport.Held].
	Held(context.Context) bool
	// Logged reports whether one line of the log stands for all errors of this kind.
	Logged(error) bool
}

// Manager keeps the daemons that run, by their objects. Its methods may be called by any number of goroutines.
type Manager struct {
	settings Settings

	mu sync.Mutex
	// term is the context of daemons, nil outside of a term of leadership. begun is the last term that has begun.
	term, begun context.Context
	objects     map[cache.ObjectName]*slots
	running     sync.WaitGroup
}

// slots are the daemons of one key.
type slots struct {
	// running are the daemons that have not ended, at most one of each handler, whatever object it is about.
	running []*slot
	// over are the daemons that do not run again for the object with this uid.
	uid  types.UID
	over map[*dsl.Handler]bool
}

// New returns a manager outside of a term.
func New(s Settings) *Manager {
	return &Manager{settings: s, objects: map[cache.ObjectName]*slots{}}
}

// Begin begins a term. It ends with ctx, by a loss of leadership, unless End is called before. Begin may be called again
// with the same context.
func (m *Manager) Begin(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.settings.Handlers) == 0 || m.begun == ctx {
		return
	}
	for key, at := range m.objects { // objects may have gone between the terms
		if o, found := m.settings.Cache.Get(key); !found || o.GetUID() != at.uid {
			at.over = nil
			m.tidyLocked(key)
		}
	}
	m.term, m.begun = ctx, ctx
	context.AfterFunc(ctx, m.cut)
}

// End ends the term: all daemons must stop, and none is started.
func (m *Manager) End(why dsl.Stop) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.endLocked(why)
}

func (m *Manager) endLocked(why dsl.Stop) {
	m.term = nil
	for _, at := range m.objects {
		for _, s := range at.running {
			s.stopLocked(why)
		}
	}
}

// cut ends the term, and the writes of its daemons, after a loss of leadership. Another term does not begin before these
// daemons have ended.
func (m *Manager) cut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.endLocked(dsl.StopLeadership)
	for _, at := range m.objects {
		for _, s := range at.running {
			s.cut()
		}
	}
}

// Wait waits until no daemon runs. It must not be called before the term has ended.
func (m *Manager) Wait() { m.running.Wait() }

// OnEvent handles an event of the resource's objects.
func (m *Manager) OnEvent(ev watch.Event) {
	if len(m.settings.Handlers) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.objects[ev.Key]
	if at == nil {
		return
	}
	for _, s := range at.running {
		switch {
		case ev.Kind == watch.Deleted && !ev.Unseen && ev.UID == s.uid, ev.Kind != watch.Deleted && ev.UID != s.uid:
			s.stopLocked(dsl.StopGone)
		case ev.Kind == watch.Deleted: // another object, or a relist lacks it: Gone follows when its deletion is confirmed
		default:
			switch {
			case ev.Object.GetDeletionTimestamp() != nil:
				s.stopLocked(dsl.StopDeleted)
			case m.settings.Paused(ev.Object):
				s.stopLocked(dsl.StopPaused)
			}
			if !m.settings.Keys { // otherwise the reconcile that reads the object reports it
				s.object.changed(ev.Object.GetResourceVersion())
			}
		}
	}
}

// Gone stops the daemons of an object that is gone for certain. An empty uid stands for any.
func (m *Manager) Gone(key cache.ObjectName, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at := m.objects[key]; at != nil {
		for _, s := range at.running {
			if uid == "" || s.uid == uid {
				s.stopLocked(dsl.StopGone)
			}
		}
	}
}

// Pause stops the daemons of a key. The first reconcile after the pause starts them again.
func (m *Manager) Pause(key cache.ObjectName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at := m.objects[key]; at != nil {
		for _, s := range at.running {
			s.stopLocked(dsl.StopPaused)
		}
	}
}

// PauseAll stops the daemons of all objects that are paused, without waiting for reconciles over them.
func (m *Manager) PauseAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, at := range m.objects {
		if o, found := m.settings.Cache.Get(key); !found || !m.settings.Paused(o) {
			continue
		}
		for _, s := range at.running {
			s.stopLocked(dsl.StopPaused)
		}
	}
}

// Again makes a daemon of a key run now. A daemon that is over starts again in the next reconcile; a daemon that waits
// for its next run stops waiting. It reports whether there was such a daemon.
func (m *Manager) Again(key cache.ObjectName, h *dsl.Handler) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.objects[key]
	if s := at.of(h); s != nil {
		return s.againLocked()
	}
	if at == nil || !at.over[h] {
		return false
	}
	delete(at.over, h)
	return true
}

// endedLocked notes that a daemon has ended.
func (m *Manager) endedLocked(s *slot) {
	at := m.objects[s.key]
	if at == nil {
		return
	}
	at.running = slices.DeleteFunc(at.running, func(other *slot) bool { return other == s })
	if s.over && at.uid == s.uid {
		if at.over == nil {
			at.over = map[*dsl.Handler]bool{}
		}
		at.over[s.handler] = true
	}
	m.tidyLocked(s.key)
}

// tidyLocked drops a key without daemons.
func (m *Manager) tidyLocked(key cache.ObjectName) {
	if at := m.objects[key]; at != nil && len(at.running) == 0 && len(at.over) == 0 {
		delete(m.objects, key)
	}
}

// of returns the daemon of a handler; nil if none runs.
func (at *slots) of(h *dsl.Handler) *slot {
	if at != nil {
		for _, s := range at.running {
			if s.handler == h {
				return s
			}
		}
	}
	return nil
}

// isOver reports whether a daemon does not run again for an object.
func (at *slots) isOver(uid types.UID, h *dsl.Handler) bool {
	return at != nil && at.uid == uid && at.over[h]
}
