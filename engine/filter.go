// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/conditions"
	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/inbox"
	"github.com/handwerk-dev/handwerk/engine/progress"
	"github.com/handwerk-dev/handwerk/engine/queue"
)

// unsureLook is how long it is until something is looked at again that nobody tells of, and that holds others up.
const unsureLook = 10 * time.Second

// question is what a pass asks a handler's filters: whether it sees the object, for a cause.
type question struct {
	handler *dsl.Handler
	cause   dsl.Cause
}

// doubt is the question as far as its failing is told apart: whether it is asked for a deletion, before
// which it is asked of every object that lives.
func (q question) doubt() doubt { return doubt{q.handler.ID, q.cause == dsl.Delete} }

// doubt is what filters of a handler cannot tell.
type doubt struct {
	handler  string
	deletion bool
}

// puzzle is why they cannot.
type puzzle struct {
	text   string
	unread bool // see answer
}

// answer is what they say.
type answer struct {
	holds bool
	err   error
	// unread: they could not read children, which may be otherwise a moment later.
	unread bool
}

// keeps reports whether the handler sees the object, or may see it.
func (a answer) keeps() bool { return a.holds || a.err != nil }

// matches applies the handler's filters. An object that does not match any more has nothing to do
// with what happened beside it; new and changed ones are kept in mind, should it match later.
func (p *pass) matches(j *job) bool {
	a := p.answer(j)
	if a.holds {
		return true
	}
	e := p.entry(j.reader)
	begins := j.reader.Level() && e.Seen == "" // of such a one no view tells later that it was to run
	if j.cause.Transient() && !a.unread && !begins {
		e.Try = progress.Record{}
	}
	if j.reader.Level() && j.cause.Origin() != dsl.FromClock {
		e = e.Averted()
	}
	p.put(j.reader, e)
	return false
}

// chooses reports whether the handler's filters on labels and annotations hold.
func (p *pass) chooses(h *dsl.Handler) bool {
	// Both are copied when they are asked for, and most handlers have no such filters.
	return (len(h.Labels) == 0 || dsl.MatchAll(h.Labels, p.current.GetLabels())) &&
		(len(h.Annotations) == 0 || dsl.MatchAll(h.Annotations, p.current.GetAnnotations()))
}

// answer asks the handler's filters, for each cause once in a pass, as they may be costly: and once more
// when handlers have written children.
func (p *pass) answer(j *job) answer {
	q := question{j.reader.Handler, j.cause}
	a, asked := p.answers[q]
	if asked {
		return a
	}
	h := j.reader.Handler
	a.holds = p.chooses(h)
	if a.holds && h.When != nil {
		children := p.family.Reader()
		a.holds, a.err = ask(h.When, p.subject(j, children))
		if a.err == nil {
			p.enlightened(j, q.doubt())
		} else {
			a.holds, a.unread = false, children.Failed()
			p.baffled(j, a)
		}
	}
	if p.answers == nil {
		p.answers = map[question]answer{}
	}
	p.answers[q] = a
	return a
}

// baffled deals with a filter that failed. The handler does not see the object, but a deletion waits
// for the answer.
func (p *pass) baffled(j *job, a answer) {
	p.puzzle(j, a)
	if a.unread {
		p.next = p.next.sooner(p.r.childrenLook(), queue.Resync) // nobody is woken when children can be read
	}
	if j.cause != dsl.Delete || p.deletion == "" || j.reader.NoFinalizer && !p.gone {
		return
	}
	p.unsure = true
	p.next = p.next.sooner(unsureLook, queue.Due)
	p.r.engine.events.Warn(p.object, j.reader.ID, conditions.FilterFailed,
		fmt.Sprintf("Deletion is held: whether handler %s sees the object cannot be told: %v", j.reader.ID, a.err))
}

// puzzle says that a filter failed: in the log once, and on the object unless children alone could not be
// read, which passes.
func (p *pass) puzzle(j *job, a answer) {
	log, text := p.log().WithValues("handler", j.reader.ID), a.err.Error()
	const line = "filter failed; the handler does not see the object"
	known := p.puzzles(j.reader.ID, text)
	if p.memory.baffled == nil {
		p.memory.baffled = map[doubt]puzzle{}
	}
	p.memory.baffled[question{j.reader.Handler, j.cause}.doubt()] = puzzle{text, a.unread}
	if known {
		log.V(1).Info(line, "error", text)
		return
	}
	log.Error(a.err, line)
	if !a.unread && p.deletion == "" {
		p.r.engine.events.Warn(p.object, j.reader.ID, conditions.FilterFailed,
			fmt.Sprintf("Handler %s does not see this object, for its filter failed: %v", j.reader.ID, a.err))
	}
}

// enlightened notes that a filter has an answer, and says so after it had none.
func (p *pass) enlightened(j *job, d doubt) {
	was, failed := p.memory.baffled[d]
	delete(p.memory.baffled, d)
	if failed && !p.puzzles(j.reader.ID, was.text) {
		p.log().Info("filter can be asked again", "handler", j.reader.ID)
	}
}

// puzzles reports whether a filter of the handler has failed with these words.
func (p *pass) puzzles(handler, text string) bool {
	for _, deletion := range []bool{false, true} {
		if p.memory.baffled[doubt{handler, deletion}].text == text {
			return true
		}
	}
	return false
}

// puzzled says why it cannot be told whether the handler sees the object, empty when it can, or may be in
// a moment.
func (p *pass) puzzled(h *dsl.Handler) string {
	for _, deletion := range []bool{false, true} {
		if found := p.memory.baffled[doubt{h.ID, deletion}]; !found.unread && found.text != "" {
			return found.text
		}
	}
	return ""
}

// childrenLook is how long it is until children that could not be read are looked at again.
func (r *resource) childrenLook() (again time.Duration) {
	for _, f := range r.family.Kinds() {
		if len(f.Informers("")) > 0 && f.Readable("") != nil {
			return feed.ListingLook
		}
	}
	return inbox.Patience
}

// wantsFinalizer reports whether some delete handler wants to see the object off. Where that cannot
// be told, it stays as it is.
func (p *pass) wantsFinalizer() bool {
	if !p.r.rules.finalizes {
		return false
	}
	for _, r := range p.r.rules.readers {
		if !r.On(dsl.Delete) || r.NoFinalizer {
			continue
		}
		if a := p.answer(&job{reader: r, cause: dsl.Delete}); a.holds || a.err != nil && p.finalizer() {
			return true
		}
	}
	return false
}

// ask asks a handler's predicate, and turns a panic into an error.
func ask(when dsl.Predicate, about *dsl.Subject) (holds bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			holds, err = false, fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	return when(about)
}
