// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// named is how many daemons a check names, the longest ones.
const named = 5

// Counts counts the daemons of each handler.
func (m *Manager) Counts() (out []ops.DaemonStats) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range m.settings.Handlers {
		one := ops.DaemonStats{Handler: h.ID}
		for _, at := range m.objects {
			switch s := at.of(h); {
			case s == nil:
			case s.late:
				one.Late++
			default:
				one.Running++
			}
		}
		out = append(out, one)
	}
	return out
}

// Late describes the daemons that still run after their time to stop, the longest first. It is empty for none.
func (m *Manager) Late() string {
	var late []*slot
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, at := range m.objects {
		for _, s := range at.running {
			if s.late {
				late = append(late, s)
			}
		}
	}
	slices.SortFunc(late, func(a, b *slot) int { return a.since.Compare(b.since) })
	var out []string
	for _, s := range late[:min(len(late), named)] {
		out = append(out, fmt.Sprintf("%s of %s was asked to stop %s ago and still runs", s.handler.ID, s.key, time.Since(s.since).Truncate(time.Second)))
	}
	if more := len(late) - named; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, "; ")
}

// Busy returns the names of the daemons that run, with their objects, sorted.
func (m *Manager) Busy() (out []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, at := range m.objects {
		for _, s := range at.running {
			out = append(out, s.handler.ID+" of "+key.String())
		}
	}
	slices.Sort(out)
	return out
}
