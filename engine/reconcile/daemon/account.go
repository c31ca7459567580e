// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Account says whether a daemon runs for an object.
type Account struct {
	// Runs: its code runs, or waits for its next run.
	Runs bool
	// Stop is why it was asked to stop, and Since when; empty if it was not.
	Stop  dsl.Stop
	Since time.Time
	// Late: its time to stop is over. Over: it does not run again for the object.
	Late, Over bool
}

// Account returns the state of a handler's daemon for an object.
func (m *Manager) Account(key cache.ObjectName, h *dsl.Handler) (out Account) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.objects[key]
	if at == nil {
		return out
	}
	out.Over = at.over[h]
	if s := at.of(h); s != nil {
		out.Runs, out.Stop, out.Since, out.Late = true, s.why, s.since, s.late
	}
	return out
}
