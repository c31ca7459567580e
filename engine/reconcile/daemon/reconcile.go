// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/reconcile/attempt"
)

// Input is the state of a key as a reconcile sees it.
type Input struct {
	Key cache.ObjectName
	// UID is the uid of the key's object. Object is the object after the reconcile, or before it as it was read. Both
	// are empty if there is none.
	UID    types.UID
	Object *unstructured.Unstructured
	// Deleting: the object is being deleted.
	Deleting bool
	// Starts: missing daemons are started. Otherwise daemons are only asked to stop.
	Starts bool
	// Reconcile answers questions about the object; nil if the key has no object.
	Reconcile Reconcile
}

// Reconcile answers questions of the manager about the object of a reconcile.
type Reconcile interface {
	// Matches evaluates the filters of a daemon. Known is false if a filter failed.
	Matches(h *dsl.Handler) (holds, known bool)
	// About returns the subject for a daemon.
	About(h *dsl.Handler) *dsl.Subject
	// Memo returns the object's memo, which is kept from then on.
	Memo() *dsl.Memo
}

// Reconcile stops daemons that must not run, and starts missing ones if the reconcile says so.
func (m *Manager) Reconcile(in Input) {
	if len(m.settings.Handlers) == 0 {
		return
	}
	for _, h := range m.settings.Handlers {
		wanted, known := false, true
		if in.UID != "" && !in.Deleting {
			wanted, known = in.Reconcile.Matches(h) // authors' code must not run with the lock
		}
		if !m.reconcile(in, h, wanted, known) {
			continue
		}
		var delay time.Duration
		if h.Delay != nil {
			delay = attempt.Delay(h.Delay, func() *dsl.Subject { return in.Reconcile.About(h) })
		}
		m.start(in, h, delay)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if at := m.objects[in.Key]; at != nil && at.uid != in.UID {
		at.uid, at.over = in.UID, nil // these were for an object that is gone
	}
	m.tidyLocked(in.Key)
}

// reconcile stops a daemon that must not run, and reports whether it must be started. Only reconciles of the key start
// its daemons.
func (m *Manager) reconcile(in Input, h *dsl.Handler, wanted, known bool) (start bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.objects[in.Key]
	s := at.of(h)
	switch {
	case s == nil:
		return in.Starts && wanted && m.term != nil && !at.isOver(in.UID, h)
	case s.uid != in.UID:
		s.stopLocked(dsl.StopGone)
	case in.Deleting:
		s.stopLocked(dsl.StopDeleted)
	case known && !wanted:
		s.stopLocked(dsl.StopFilters)
	}
	if m.settings.Keys && s.uid == in.UID {
		s.object.show(in.Object)
	}
	return false
}

// start starts a daemon, unless the object is paused or being deleted by now; a later reconcile starts it then.
func (m *Manager) start(in Input, h *dsl.Handler, delay time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen, found := m.settings.Cache.Get(in.Key)
	if m.term == nil || !found || seen.GetUID() != in.UID || seen.GetDeletionTimestamp() != nil || m.settings.Paused(seen) {
		return
	}
	o := newObject(&m.settings, id{h, in.Key, in.UID}, seen, in.Object)
	s := newSlot(m, o, in.Reconcile.Memo())
	at := m.objects[in.Key]
	if at == nil {
		at = &slots{uid: in.UID}
		m.objects[in.Key] = at
	}
	at.running = append(at.running, s)
	m.running.Go(func() { s.live(delay) })
}

// Wants reports whether a daemon of an object needs the finalizer: it runs, or must run. Holds: its filters match the
// object. A daemon that is over releases the object.
func (m *Manager) Wants(key cache.ObjectName, uid types.UID, h *dsl.Handler, holds bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.objects[key]
	s := at.of(h)
	return s != nil && s.uid == uid && !s.late || holds && !at.isOver(uid, h)
}

// Holds reports whether the deletion of an object waits for a daemon to end.
func (m *Manager) Holds(key cache.ObjectName, uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at := m.objects[key]; at != nil {
		for _, s := range at.running {
			if s.uid == uid && !s.late && s.handler.Finalizes() {
				return true
			}
		}
	}
	return false
}
