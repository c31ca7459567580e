// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"time"

	"github.com/go-logr/logr"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cause"
	"github.com/handwerk-dev/handwerk/engine/progress"
)

// job is a handler with a cause in this pass.
type job struct {
	handler *dsl.Handler
	cause   dsl.Cause
	// lasting: the cause comes from what is stored, so its progress is stored too.
	lasting bool
	record  progress.Record
	ran     bool
	// warned: its attempt has reported a warning of its own.
	warned bool
	// wants is what the handler asked for in this pass.
	wants *dsl.Patch
}

// plan finds the handlers that have a cause and that see the object.
func (p *pass) plan(n news) {
	p.wind()
	p.lookAround(n)
	p.resync = !p.memory.resync.IsZero() && !p.now.Before(p.memory.resync)
	for _, h := range p.r.rules.handlers {
		p.arise(h, n)
		j := p.job(h)
		if j == nil || !p.matches(j) {
			continue
		}
		p.jobs = append(p.jobs, j)
	}
}

// arise notes what has come up for a handler since the last pass.
func (p *pass) arise(h *dsl.Handler, n news) {
	p.rouse(h, n)
	record := p.records[h.ID]
	c := p.facts.Arising(h, finished(record))
	if c == "" && p.pending[h.ID] == "" {
		c = p.facts.Appearing(h, finished(record))
	}
	if c != "" {
		p.pending[h.ID] = c
		return
	}
	switch c := p.triggered(h, n); {
	case c == "":
	case p.pending[h.ID] == "":
		p.pending[h.ID] = c
	case c == dsl.Child || c == dsl.RelatedChange:
		record.Due = time.Time{} // what it waits for may have come
		p.records[h.ID] = record
	}
}

// rouse ends waits for what has come.
func (p *pass) rouse(h *dsl.Handler, n news) {
	if n.child || p.related {
		p.hurry(h)
	}
	if slices.Contains(n.granted, h.ID) {
		p.renew(h)
	}
	if !p.facts.Deleting && (n.child && h.On(dsl.Child) || p.related && h.On(dsl.RelatedChange)) {
		p.anew(h)
	}
}

// hurry lets a handler that waits for what others do have a look.
func (p *pass) hurry(h *dsl.Handler) {
	for _, records := range []map[string]progress.Record{p.records, p.state.Records} {
		if record, found := records[h.ID]; found {
			records[h.ID] = record.Hurry()
		}
	}
}

// anew lets a handler of steps begin with the first: what that one did may not be so any more.
func (p *pass) anew(h *dsl.Handler) {
	for _, records := range []map[string]progress.Record{p.records, p.state.Records} {
		if record, found := records[h.ID]; found {
			record.Step = 0
			records[h.ID] = record
		}
	}
}

// triggered returns the cause that a handler has by what happened beside the object, empty when
// there is none.
func (p *pass) triggered(h *dsl.Handler, n news) dsl.Cause {
	switch {
	case p.facts.Deleting:
	case n.child && h.On(dsl.Child):
		return dsl.Child
	case p.related && h.On(dsl.RelatedChange):
		return dsl.RelatedChange
	case p.rings(h):
		return dsl.Timer
	case p.resync && h.On(dsl.Resync):
		return dsl.Resync
	}
	return ""
}

// job returns what the handler has to do, nil when nothing.
func (p *pass) job(h *dsl.Handler) *job {
	view := p.facts.Now[h.Field.String()]
	stored := p.state.Records[h.ID]
	if c := p.facts.Lasting(h, finished(stored)); c != "" {
		if c == dsl.Delete && (p.parted(stored, view) || p.released(h)) {
			return nil
		}
		return &job{handler: h, cause: c, lasting: true, record: stored.For(c, view)}
	}
	if c := p.pending[h.ID]; c != "" && !p.facts.Deleting {
		record := p.records[h.ID]
		if record.Done {
			record = progress.Record{} // that was another time
		}
		return &job{handler: h, cause: c, record: record.For(c, view)}
	}
	return nil
}

// parted reports whether a delete handler is finished. One that failed for good is tried again
// when the object changes: that is how a person says that the reason is mended.
func (p *pass) parted(record progress.Record, view string) bool {
	return record.Cause == dsl.Delete && record.Done && (!record.Failed || record.View == view)
}

// released reports whether the object, which others still hold, was let go by this operator: a
// delete handler that holds its object has nothing to do where the finalizer is gone, or never was.
func (p *pass) released(h *dsl.Handler) bool {
	return !p.gone && !h.NoFinalizer && !p.finalizer()
}

// finished returns the view that the record's handler is done with, empty when it is not.
func finished(r progress.Record) string {
	if r.Done {
		return r.View
	}
	return ""
}

// comparable is the essence as far as the base was kept.
func (p *pass) comparable() map[string]any {
	if p.r.rules.fields == nil {
		return p.essence
	}
	return cause.Project(p.essence, p.r.rules.fields)
}

func (p *pass) log() logr.Logger {
	if p.whole {
		return p.r.log
	}
	return p.r.log.WithValues("namespace", p.key.Namespace, "name", p.key.Name)
}
