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

// Sight is what a reconcile sees of a key.
type Sight struct {
	Key cache.ObjectName
	// UID is that of the object that the key has, and Object that as the reconcile has left it, or as it has read it; empty and
	// nil when it has none.
	UID    types.UID
	Object *unstructured.Unstructured
	// Deleting: the object is being deleted.
	Deleting bool
	// Starts: those that are to run and do not are started. Without, daemons are only asked to stop.
	Starts bool
	// Reconcile answers for the reconcile; nil where the key has no object.
	Pass Reconcile
}

// Reconcile answers what is asked about the daemons of the object of a reconcile.
type Reconcile interface {
	// Sees asks the filters of a daemon, and reports whether they have an answer.
	Matches(h *dsl.Handler) (holds, known bool)
	// About is what a daemon is asked about.
	About(h *dsl.Handler) *dsl.Subject
	// Memo is the object's, which is kept from then on.
	Memo() *dsl.Memo
}

// Reconcile takes what a reconcile sees of a key. It has daemons stop, and starts some if the reconcile says so.
func (m *Manager) Reconcile(sight Sight) {
	if len(m.settings.Handlers) == 0 {
		return
	}
	for _, h := range m.settings.Handlers {
		wanted, known := false, true
		if sight.UID != "" && !sight.Deleting {
			wanted, known = sight.Pass.Matches(h) // authors' code: not with the lock
		}
		if !m.reconcile(sight, h, wanted, known) {
			continue
		}
		var delay time.Duration
		if h.Delay != nil {
			delay = attempt.Delay(h.Delay, func() *dsl.Subject { return sight.Pass.About(h) })
		}
		m.start(sight, h, delay)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if at := m.objects[sight.Key]; at != nil && at.uid != sight.UID {
		at.uid, at.over = sight.UID, nil // these were of an object that is gone
	}
	m.tidyLocked(sight.Key)
}

// reconcile stops a daemon that must not run, and reports whether it must be started. Only passes of the key start its
// daemons.
func (m *Manager) reconcile(sight Sight, h *dsl.Handler, wanted, known bool) (start bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.objects[sight.Key]
	s := at.of(h)
	switch {
	case s == nil:
		return sight.Starts && wanted && m.term != nil && !at.isOver(sight.UID, h)
	case s.uid != sight.UID:
		s.stopLocked(dsl.StopGone)
	case sight.Deleting:
		s.stopLocked(dsl.StopDeleted)
	case known && !wanted:
		s.stopLocked(dsl.StopFilters)
	}
	if m.settings.Keys && s.uid == sight.UID {
		s.object.show(sight.Object)
	}
	return false
}

// start starts a daemon, unless the object is paused, or has changed since the reconcile read it; a later reconcile starts it then.
func (m *Manager) start(sight Sight, h *dsl.Handler, delay time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen, found := m.settings.Cache.Get(sight.Key)
	if m.term == nil || !found || seen.GetUID() != sight.UID || seen.GetDeletionTimestamp() != nil || m.settings.Paused(seen) {
		return
	}
	o := newObject(&m.settings, id{h, sight.Key, sight.UID}, seen, sight.Object)
	s := newSlot(m, o, sight.Pass.Memo())
	at := m.objects[sight.Key]
	if at == nil {
		at = &slots{uid: sight.UID}
		m.objects[sight.Key] = at
	}
	at.running = append(at.running, s)
	m.running.Go(func() { s.live(delay) })
}

// Wants reports whether a daemon of an object needs the finalizer: it runs, or must run. holds: its filters match the
// object. A daemon that is over lets the object go.
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
