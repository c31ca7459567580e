// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/handwerk-dev/handwerk/engine/ops"
)

// named is how many daemons a check names, the longest ones.
const named = 5

// Counts says how many daemons there are of each handler.
func (c *Crew) Counts() (out []ops.DaemonStats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.settings.Handlers {
		one := ops.DaemonStats{Handler: h.ID}
		for _, p := range c.posts {
			switch l := p.of(h); {
			case l == nil:
			case l.late:
				one.Late++
			default:
				one.Running++
			}
		}
		out = append(out, one)
	}
	return out
}

// Late tells people of the daemons that were told to stop and whose time is over, the longest first; it is empty when
// there are none.
func (c *Crew) Late() string {
	var late []*life
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.posts {
		for _, l := range p.lives {
			if l.late {
				late = append(late, l)
			}
		}
	}
	slices.SortFunc(late, func(a, b *life) int { return a.told.Compare(b.told) })
	var out []string
	for _, l := range late[:min(len(late), named)] {
		out = append(out, fmt.Sprintf("%s of %s was told to stop %s ago and still runs", l.handler.ID, l.key, time.Since(l.told).Truncate(time.Second)))
	}
	if more := len(late) - named; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, "; ")
}

// Busy names the daemons that run, with their objects, sorted.
func (c *Crew) Busy() (out []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, p := range c.posts {
		for _, l := range p.lives {
			out = append(out, l.handler.ID+" of "+key.String())
		}
	}
	slices.Sort(out)
	return out
}
