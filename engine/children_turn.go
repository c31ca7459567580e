// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"time"
)

// turn is how a handler fares in a pass.
type turn struct {
	// step is the one that it began with.
	step         int
	ran, through bool
	// waits: it waits for what others do.
	waits bool
}

// turnComes notes that a handler has something to do in this pass, whether it can now or not.
func (p *pass) turnComes(j *job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rivals.turns == nil {
		p.rivals.turns = map[string]turn{}
	}
	if p.deletion != "" && p.rivals.parted == nil {
		p.rivals.parted = map[string]bool{}
		for _, r := range p.r.rules.readers {
			e := p.entry(r)
			p.rivals.parted[r.ID] = e.Parted(p.deletion) && !e.Try.Failed
		}
	}
	p.rivals.turns[j.reader.ID] = turn{step: j.record.Step, waits: j.record.Waiting}
}

// turnBegins notes that a handler runs now. From its first step on it says anew what it keeps.
func (p *pass) turnBegins(j *job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.memory.rivals {
		if j.record.Step == 0 && p.r.isOf(r.holder, j) {
			r.reached = false
		}
	}
}

// turnEnds notes that a handler has run. It gives up what it kept against others when it has succeeded without;
// what it wanted itself is settled then, too.
func (p *pass) turnEnds(j *job, err error) {
	_, waiting := waits(err)
	through := err == nil
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.rivals.turns[j.reader.ID]
	t.ran, t.through, t.waits = true, through, waiting
	p.rivals.turns[j.reader.ID] = t
	maps.DeleteFunc(p.memory.rivals, func(_ childID, r *rivalry) bool { return through && p.r.isOf(r.by, j) })
	for _, r := range p.memory.rivals {
		if p.r.isOf(r.holder, j) {
			r.asked = time.Time{}
			r.left = through && !r.reached
		}
	}
}

// isOf reports whether a maker of children is a job's handler, or a step of it.
func (r *resource) isOf(maker string, j *job) bool {
	at := r.makerOf(maker)
	return at >= 0 && r.rules.readers[at].ID == j.reader.ID
}

// reask lets handlers that had a child against another one be asked once more when they do not see the object any
// more: they will not say so themselves.
func (p *pass) reask() {
	for _, one := range p.memory.rivals {
		at := p.r.makerOf(one.holder)
		if one.asked.IsZero() && at >= 0 {
			if h := p.r.rules.readers[at]; !p.answer(&job{reader: h, cause: causeOf(h.Handler)}).keeps() {
				one.asked = p.now
			}
		}
	}
}

// asked returns the handlers that are to say whether they keep a child that another one wants.
func (m *memory) asked(r *resource) (out []string) {
	for _, one := range m.rivals {
		if at := r.makerOf(one.holder); at >= 0 && !one.asked.IsZero() {
			out = append(out, r.rules.readers[at].ID)
		}
	}
	return out
}
