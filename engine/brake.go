// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// brake lets an object rest whose passes write again and again, or whose handlers undo each other without
// a write. Behind: a handler has not seen what others have done after it.
func (p *pass) brake(behind bool) {
	m, content, last := p.memory, uint32(0), ""
	wrote := p.family.Writes()
	for _, w := range wrote {
		if w.Cache != nil {
			content += w.Content // in any order
			last = w.Cache.Name().String() + " " + w.Key.String()
		}
	}
	if last == "" && !behind {
		return
	}
	if !behind && p.jobs.Driven(wrote) || !m.breaker.Wrote(p.now, content) {
		p.r.box.Suspend(p.key, time.Time{})
		return
	}
	p.r.box.Suspend(p.key, m.breaker.Until())
	who, last := strings.Join(p.jobs.Changers(wrote), ", "), cmp.Or(last, p.r.name+" "+p.key.String())
	p.log().Info("object loops: its passes write again and again; it rests", dsl.LogWarning, true,
		"until", m.breaker.Until().Format(time.RFC3339), "handlers", who, "written", last)
	p.r.engine.events.Warn(p.object, "breaker", "Looping", fmt.Sprintf(
		"Handlers (%s) change this object or its children again and again without coming to rest, last %s; it is looked at again in a minute", who, last))
}
