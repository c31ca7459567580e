// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// lifetime is one life of an object, by its uid, as the reference follows it.
type lifetime struct {
	name    string
	records map[string]*conduct
	// owed are the delete handlers that must succeed before it goes.
	owed []string
	// texts are the states that were put in the place of the operator's own since the process began; tainted: one
	// of them twice, which is not put right.
	texts   map[string]bool
	tainted bool
}

// conduct is what one handler has done in a life.
type conduct struct {
	last *called
	// handled are the views that the handler may have handled last: one, unless something
	// got lost. None: it has handled nothing.
	handled map[string]bool
	// unknown: it cannot be known what it has handled.
	unknown bool
	// bare: what it began with need not be stored.
	bare bool
	// again: it may be called once more with the same view, because the progress is of another generation.
	again bool
	// truths are the objects that it has handled.
	truths []map[string]any
	// unmet is what it looked at when the object was at rest and its when did not hold; empty for none. UnmetAt is how many calls
	// there were before that.
	unmet   string
	unmetAt int
}

// called is one attempt.
type called struct {
	// at counts calls; process and version are those that made it.
	at, process, version int
	cause                dsl.Cause
	left                 string
	// final: it succeeded, or failed for good.
	final, failed bool
	// doubted: a process may not know of it.
	doubted bool
	// polled: it asked to be run again.
	polled bool
}

func (r *conduct) good() bool { return r.last != nil && r.last.final && !r.last.failed }

// is sets what the handler has handled last.
func (r *conduct) is(view string) { r.handled, r.unknown = map[string]bool{view: true}, false }

// born begins a life.
func (m *model) born(o *unstructured.Unstructured) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begins(o)
}

func (m *model) begins(o *unstructured.Unstructured) *lifetime {
	if l := m.lives[o.GetUID()]; l != nil {
		return l
	}
	l := &lifetime{name: o.GetName(), records: map[string]*conduct{}, texts: map[string]bool{o.GetAnnotations()[scene.StateAnnotation]: true}}
	m.lives[o.GetUID()] = l
	for _, c := range m.program {
		r := &conduct{handled: map[string]bool{}}
		switch view := c.look(o.Object); {
		case c.kind == "both" && view == "null" && c.sees(o.Object):
			r.is(view)
			r.bare = true
		case c.kind == "update" || view == "null" && c.creates():
			r.unknown, r.bare = true, true
			r.truths = append(r.truths, o.Object) // where it begins, which a process that forgets goes back to
		}
		l.records[c.id] = r
	}
	return l
}

// remove deletes an object, if it is there.
func (m *model) remove(name string, o *unstructured.Unstructured) {
	if o == nil || o.GetDeletionTimestamp() != nil {
		return
	}
	m.mu.Lock()
	if l := m.lives[o.GetUID()]; l != nil && slices.Contains(o.GetFinalizers(), scene.Finalizer) {
		for _, c := range m.program {
			if c.kind == "delete" && c.sees(o.Object) {
				l.owed = append(l.owed, c.id)
			}
		}
	}
	m.mu.Unlock()
	m.Delete(scene.Foos, "default", name)
}

// replaced notes that an object's state is another one. Memory wins over it, for once; without memory there
// is nothing else to go by.
func (m *model) replaced(name, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.lives {
		if l.name != name {
			continue
		}
		if !m.runs {
			l.forget(m.program)
			m.excused = true
			continue
		}
		l.tainted = l.tainted || text != "" && l.texts[text]
		l.texts[text] = true
	}
}

// averted notes that handlers do not see an object which may run when they see it again: level-triggered ones, and those whose when
// does not hold. The lock is held.
func (m *model) averted(name string) {
	o := m.Get(scene.Foos, "default", name)
	if o == nil {
		return
	}
	if l := m.lives[o.GetUID()]; l != nil {
		for _, c := range m.program {
			l.records[c.id].again = l.records[c.id].again || (c.kind == "level" || c.when()) && !c.sees(o.Object)
		}
	}
}

func (l *lifetime) forget(p program) {
	for id, r := range l.records {
		if r.last != nil {
			r.last.doubted = true
		}
		if c, found := p.find(id); found && c.edge() {
			r.unknown, r.bare, r.unmet = true, true, ""
		}
	}
}

// trouble says that a process may forget what it has done.
func (m *model) trouble() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.excused, m.forgetful = true, true
	for _, l := range m.lives {
		for id, r := range l.records {
			c, _ := m.program.find(id)
			if r.last != nil && r.last.at > m.rested {
				r.last.doubted = true
			}
			for _, o := range r.truths {
				r.handled[c.look(o)] = true
			}
		}
	}
}

// leave stops the process.
func (m *model) leave() {
	if !m.runs {
		return
	}
	if !m.resting {
		m.trouble()
	}
	if err := m.Process.Stop(); err != nil {
		m.fault("stopping: %v", err)
	}
	m.runs = false
}

// kill ends the process at once.
func (m *model) kill() {
	if m.runs && !m.resting {
		m.trouble()
	}
	m.Process.Kill()
	m.runs = false
}

// begin starts a version of the operator.
func (m *model) begin(p program) {
	m.mu.Lock()
	m.process++
	still := m.resting && !m.excused && p.String() == m.program.String()
	for uid, l := range m.lives {
		if m.over(uid, l) {
			continue // what the next program has to do with it cannot be known from what this one did
		}
		if l.tainted {
			l.forget(m.program)
			m.excused, still, l.tainted = true, false, false
		}
		l.texts = map[string]bool{}
		l.meet(m.program, p)
		still = still && !l.hopes(p)
		if o := m.Get(scene.Foos, "default", l.name); o != nil && m.behind(o) {
			still = false
			l.mayRepeat(p)
		}
	}
	if p.String() != m.program.String() {
		m.version++
	}
	m.program, m.runs = p, true
	calls := m.calls
	m.mu.Unlock()
	m.launch()
	m.Settle()
	// If a filter fails, it is stored where its handler begins, and an object gets the finalizer that its delete handler may want.
	doubts := slices.ContainsFunc(p, func(c craft) bool {
		return c.filter == "shaky" && (c.kind == "delete" || c.edge() && c.kind != "create")
	})
	if writes := m.wrote(); still && len(writes) > 0 && !doubts {
		m.fault("at a restart at rest it wrote %v", writes)
	}
	if still && m.called() > calls && !slices.ContainsFunc(p, func(c craft) bool { return c.kind == "level" }) {
		m.fault("at a restart at rest there were calls")
	}
	m.locked(func() { m.resting = false })
}

// meet is what a new process knows of a life.
func (l *lifetime) meet(was, is program) {
	for _, c := range is {
		before, known := was.before(c)
		r := l.records[before.id]
		switch {
		case r == nil || !known || before.view != c.view:
			if r == nil || !known {
				r = &conduct{handled: map[string]bool{}}
			}
			r.unknown, r.bare, r.unmet = c.edge(), true, ""
		case r.bare && c.edge():
			r.unknown = true
		}
		if c.kind == "level" {
			r.handled = map[string]bool{}
		}
		l.records[c.id] = r
	}
}

// hopes reports whether some handler has failed for good that may succeed in a new process: a level-triggered one,
// which is resumed, or one that comes after such a one.
func (l *lifetime) hopes(p program) bool {
	return slices.ContainsFunc(p, func(c craft) bool {
		last := l.records[c.id].last
		return (c.kind == "level" || len(c.after) > 0) && last != nil && last.failed
	})
}

// behind reports whether the progress on an object is of an earlier generation: the object may be an
// older export then, which a new process cannot distinguish from one that was changed and changed back.
func (m *model) behind(o *unstructured.Unstructured) bool {
	var book struct {
		Generation int64 `json:"generation"`
	}
	err := json.Unmarshal([]byte(o.GetAnnotations()[scene.StateAnnotation]), &book)
	return err == nil && book.Generation < o.GetGeneration()
}

// mayRepeat lets those who look at the whole spec be called once more.
func (l *lifetime) mayRepeat(p program) {
	for _, c := range p {
		l.records[c.id].again = c.edge() && (c.view == "" || c.view == "spec")
	}
}
