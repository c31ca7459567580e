// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// brake lets an object rest whose passes write again and again, or whose handlers undo each other without
// a write.
func (p *pass) brake() {
	m := p.memory
	if len(p.writes) > 0 {
		m.writes.Set(p.writes)
	} else if !p.behind {
		return
	}
	if p.driven() || !m.breaker.Wrote(p.now, p.content) {
		p.r.box.Suspend(p.key, time.Time{})
		return
	}
	p.r.box.Suspend(p.key, m.breaker.Until())
	var handlers []string
	for _, j := range p.jobs {
		if _, wrote := p.writers[j.reader.ID]; wrote || j.asks() {
			handlers = append(handlers, j.reader.ID)
		}
	}
	who, last := strings.Join(handlers, ", "), p.r.name+" "+p.key.String()
	if n := len(p.writes); n > 0 {
		last = p.writes[n-1].Cache.Name().String() + " " + p.writes[n-1].Key.String()
	}
	p.log().Info("object loops: its passes write again and again; it rests", dsl.LogWarning, true,
		"until", m.breaker.Until().Format(time.RFC3339), "handlers", who, "written", last)
	p.r.engine.events.Warn(p.object, "breaker", "Looping", fmt.Sprintf(
		"Handlers (%s) change this object or its children again and again without coming to rest, last %s; it is looked at again in a minute", who, last))
}

// driven reports whether the pass wrote for nothing but what goes its own way: the time, or children and
// related objects, after which it changed no more than the object's status. That is no loop: a heartbeat
// follows the clock, and a status the Pods of a roll-out, as long as they come.
func (p *pass) driven() bool {
	return !p.behind && !slices.ContainsFunc(p.jobs, func(j *job) bool {
		_, wroteChild := p.writers[j.reader.ID]
		wrote := j.ran && (wroteChild || p.others[j.reader.ID] || j.asks())
		switch j.cause {
		case dsl.Timer, dsl.Resync:
			return false
		case dsl.Child, dsl.RelatedChange:
			return wroteChild || p.others[j.reader.ID] || j.wants != nil && len(j.wants.Object) > 0
		}
		return wrote
	})
}

// lags reports whether a handler has not seen what those after it have done to the object.
func (p *pass) lags() bool {
	if p.deletion != "" || !slices.ContainsFunc(p.jobs, func(j *job) bool { return j.asks() }) {
		return false
	}
	return slices.ContainsFunc(p.jobs, func(j *job) bool {
		return j.ran && j.left != p.sight.Digest(j.reader.View) && p.entry(j.reader).Due(j.reader.Handler, p.facts(j.reader)) != ""
	})
}
