// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/machine"
	"github.com/handwerk-dev/handwerk/engine/ops"
	"github.com/handwerk-dev/handwerk/engine/plan"
)

// machines are those of the resource, but for that of a handler.
func (r *resource) machines(but *dsl.Handler) (out []*dsl.Machine) {
	for _, h := range r.spec.Machines() {
		if h != but {
			out = append(out, h.Machine)
		}
	}
	return out
}

// code is the handler that is run for a job: a machine's own attempt, where it is one.
func (p *pass) code(j *plan.Job) *dsl.Handler {
	h := j.Reader.Handler
	if h.Machine == nil {
		return h
	}
	j.Machine = &machine.Run{
		Of: h, Others: p.r.machines(h), Prefix: p.r.engine.op.Prefix(), Early: !j.Record.Early.IsZero(), Known: p.memory.Done[h.ID],
	}
	return j.Machine.Handler()
}

// did remembers what a machine has done, until that is written.
func (p *pass) did(j *plan.Job) {
	if j.Machine == nil || j.Machine.Done == (machine.Done{}) {
		return
	}
	if p.memory.Done == nil {
		p.memory.Done = map[string]machine.Done{}
	}
	p.memory.Done[j.Reader.ID] = j.Machine.Done
}

// moved tells of the transitions that the pass has written.
func (p *pass) moved() {
	if p.left == nil || p.gone {
		return
	}
	p.r.census.Note(p.key, p.left)
	for _, j := range p.jobs {
		if j.Machine == nil || !j.Asks() {
			continue
		}
		delete(p.memory.Done, j.Reader.ID)
		for _, v := range j.Machine.Taken(p.left) {
			p.r.engine.metrics.Moved(ops.Move{Resource: p.r.name, Machine: j.Reader.ID, From: v.From, To: v.To, Stayed: v.Stayed})
			p.r.engine.events.Send(ops.ByHandler, p.object, j.Reader.ID, v.Kind(), v.To, v.String())
		}
	}
}
