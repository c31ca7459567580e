// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/family"
)

// brake lets an object rest whose passes write again and again, or whose handlers undo each other without
// a write.
func (p *pass) brake() {
	m, content, last := p.memory, uint32(0), ""
	wrote := p.family.Writes()
	for _, w := range wrote {
		if w.Cache != nil {
			content += w.Content // in any order
			last = w.Cache.Name().String() + " " + w.Key.String()
		}
	}
	if last == "" && !p.behind {
		return
	}
	if p.driven(wrote) || !m.breaker.Wrote(p.now, content) {
		p.r.box.Suspend(p.key, time.Time{})
		return
	}
	p.r.box.Suspend(p.key, m.breaker.Until())
	var handlers []string
	for _, j := range p.jobs {
		if j.asks() || slices.ContainsFunc(wrote, func(w family.Write) bool { return w.Child && w.Handler == j.reader.ID }) {
			handlers = append(handlers, j.reader.ID)
		}
	}
	who, last := strings.Join(handlers, ", "), cmp.Or(last, p.r.name+" "+p.key.String())
	p.log().Info("object loops: its passes write again and again; it rests", dsl.LogWarning, true,
		"until", m.breaker.Until().Format(time.RFC3339), "handlers", who, "written", last)
	p.r.engine.events.Warn(p.object, "breaker", "Looping", fmt.Sprintf(
		"Handlers (%s) change this object or its children again and again without coming to rest, last %s; it is looked at again in a minute", who, last))
}

// driven reports whether the pass wrote for nothing but what goes its own way: the time, or children and
// related objects, after which it changed no more than the object's status. That is no loop: a heartbeat
// follows the clock, and a status the Pods of a roll-out, as long as they come.
func (p *pass) driven(writes []family.Write) bool {
	return !p.behind && !slices.ContainsFunc(p.jobs, func(j *job) bool {
		wrote := slices.ContainsFunc(writes, func(w family.Write) bool { return w.Handler == j.reader.ID })
		switch j.cause.Origin() {
		case dsl.FromClock:
			return false
		case dsl.FromOthers:
			return wrote || j.wants != nil && len(j.wants.Object) > 0
		}
		return j.ran && (wrote || j.asks())
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
