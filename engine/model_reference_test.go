// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
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
	// handled are the views of which it may be that the handler has handled them last: one, unless something
	// got lost. None: it has handled nothing.
	handled map[string]bool
	// unknown: nobody can tell what it has handled.
	unknown bool
	// bare: what it began with need not be stored.
	bare bool
	// again: it may be called once more with the same view, because the book is of another generation.
	again bool
	// truths are the objects that it has handled.
	truths []map[string]any
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
	l := &lifetime{name: o.GetName(), records: map[string]*conduct{}, texts: map[string]bool{o.GetAnnotations()[state]: true}}
	m.lives[o.GetUID()] = l
	for _, c := range m.program {
		r := &conduct{handled: map[string]bool{}}
		switch view := c.look(o.Object); {
		case c.kind == "both" && view == "null" && c.sees(o.Object):
			r.is(view)
			r.bare = true
		case c.kind == "update" || view == "null" && c.creates():
			r.unknown, r.bare = true, true
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
	if l := m.lives[o.GetUID()]; l != nil && slices.Contains(o.GetFinalizers(), finalizer) {
		for _, c := range m.program {
			if c.kind == "delete" && c.sees(o.Object) {
				l.owed = append(l.owed, c.id)
			}
		}
	}
	m.mu.Unlock()
	m.Delete(foos, "default", name)
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

func (l *lifetime) forget(p program) {
	for id, r := range l.records {
		if c, found := p.find(id); found && c.edge() {
			r.unknown, r.bare = true, true
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
	for _, l := range m.lives {
		if l.tainted {
			l.forget(m.program)
			m.excused, still, l.tainted = true, false, false
		}
		l.texts = map[string]bool{}
		l.meet(m.program, p)
		still = still && !l.hopes(p)
		if o := m.Get(foos, "default", l.name); o != nil && behind(o) {
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
	if writes := m.wrote(); still && len(writes) > 0 {
		m.fault("at a restart at rest it wrote %v", writes)
	}
	if still && m.calls > calls && !slices.ContainsFunc(p, func(c craft) bool { return c.kind == "level" }) {
		m.fault("at a restart at rest there were calls")
	}
	m.resting = false
}

// meet is what a new process knows of a life.
func (l *lifetime) meet(was, is program) {
	for _, c := range is {
		before, known := was.find(c.id)
		r := l.records[c.id]
		switch {
		case r == nil || !known || before.view != c.view:
			if r == nil || !known {
				r = &conduct{handled: map[string]bool{}}
			}
			r.unknown, r.bare = c.edge(), true
		case r.bare && c.edge():
			r.unknown = true
		}
		if c.kind == "level" {
			r.handled = map[string]bool{}
		}
		l.records[c.id] = r
	}
}

// hopes reports whether some handler has failed for good that is tried again when what it comes after succeeds,
// be that for resume.
func (l *lifetime) hopes(p program) bool {
	return slices.ContainsFunc(p, func(c craft) bool {
		last := l.records[c.id].last
		return len(c.after) > 0 && last != nil && last.failed
	})
}

// behind reports whether the book on an object is of an earlier generation: the object may be an older export
// then, which a new process cannot tell from one that was changed and changed back.
func behind(o *unstructured.Unstructured) bool {
	var book struct {
		Generation int64 `json:"generation"`
	}
	err := json.Unmarshal([]byte(o.GetAnnotations()[state]), &book)
	return err == nil && book.Generation < o.GetGeneration()
}

// mayRepeat lets those who look at the whole spec be called once more.
func (l *lifetime) mayRepeat(p program) {
	for _, c := range p {
		l.records[c.id].again = c.edge() && (c.view == "" || c.view == "spec")
	}
}

// call is what every handler does: it holds the call against the reference, and does what the program says.
func (m *model) call(c craft, r *dsl.Request) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	err, final := c.try(r.Object.Object, r.Attempt)
	saw := c.look(r.Object.Object)
	m.say("\t\t\t%s %s %d of %s saw %s old %s: %v", c.id, r.Cause, r.Attempt, r.Object.GetName(), saw, m.oldOf(c, r), err)
	l := m.begins(r.Object)
	was := l.records[c.id]
	if was == nil {
		m.fault("%s: no such handler", c.id)
		return nil
	}
	m.judge(c, r, l, was, saw)
	now := &called{at: m.calls, process: m.process, version: m.version, cause: r.Cause, final: final, failed: final && err != nil, left: saw, doubted: m.forgetful}
	left := r.Object.Object
	if err == nil {
		left = c.leaves(left)
		now.left = c.look(left)
		c.patch(r)
	}
	if final {
		was.again = false
		was.truths = append(was.truths, left)
		if m.forgetful {
			was.handled[now.left] = true
		} else {
			was.is(now.left)
			was.bare = false
		}
	}
	was.last = now
	if m.meanwhile != nil {
		m.meanwhile(r.Object.GetName())
	}
	return err
}

func (m *model) oldOf(c craft, r *dsl.Request) string {
	if r.Old == nil {
		return "-"
	}
	return c.look(r.Old)
}

// judge says whether a call may be.
func (m *model) judge(c craft, r *dsl.Request, l *lifetime, was *conduct, saw string) {
	deleted := r.Object.GetDeletionTimestamp() != nil
	switch {
	case deleted != (r.Cause == dsl.Delete) && (deleted || m.there(r)):
		m.fault("%s is called for %s, and the object's deletion is %v", c.id, r.Cause, deleted)
	case !c.sees(r.Object.Object):
		m.fault("%s is called, and its filter does not hold", c.id)
	case m.premature(c, r, l):
		m.fault("%s is called before what it comes after has succeeded", c.id)
	case !deleted && m.unsecured(r):
		m.fault("%s is called, and the finalizer is not there", c.id)
	}
	if m.excused || was.unknown {
		return
	}
	again := !was.again && was.handled[saw] && len(was.handled) == 1 && (was.last == nil || was.last.final)
	if again && was.last != nil && was.last.failed {
		again = !slices.ContainsFunc(c.after, func(id string) bool {
			a := l.records[id]
			return a != nil && a.good() && a.last.at > was.last.at
		})
	}
	if again && c.kind != "delete" && (!m.soft || c.wants == "") { // what it wanted may have been dropped
		m.fault("%s is called again for what it has handled", c.id)
	}
	if c.kind == "delete" && was.good() {
		m.fault("%s is called again in a deletion", c.id)
	}
	m.judgeCause(c, r, was)
}

func (m *model) judgeCause(c craft, r *dsl.Request, was *conduct) {
	if !c.edge() {
		return
	}
	if r.Cause == dsl.Create && was.good() {
		m.fault("%s is called for create, and has succeeded in this life", c.id)
	}
	if r.Cause != dsl.Create && len(was.handled) == 0 && c.creates() {
		m.fault("%s is called for %s, and nothing has created", c.id, r.Cause)
	}
	if r.Cause != dsl.Update || m.soft || was.bare {
		return
	}
	if r.Old == nil || !was.handled[c.look(r.Old)] {
		m.fault("%s gets %s as old, and has handled %v", c.id, m.oldOf(c, r), slices.Sorted(maps.Keys(was.handled)))
	}
}

// there reports whether the object that a handler is called for is there.
func (m *model) there(r *dsl.Request) bool {
	live := m.Get(foos, "default", r.Object.GetName())
	return live != nil && live.GetUID() == r.Object.GetUID()
}

// premature reports whether something that the handler comes after has failed, or is to be tried again.
func (m *model) premature(c craft, r *dsl.Request, l *lifetime) bool {
	return !m.excused && slices.ContainsFunc(c.after, func(id string) bool {
		a, found := m.program.find(id)
		if !found || !a.sees(r.Object.Object) || a.view != "" && a.look(r.Object.Object) == "null" {
			return false
		}
		did := l.records[id]
		return did != nil && did.last != nil && did.last.version == m.version && !did.good()
	})
}

// unsecured reports whether the finalizer is missing that a delete handler wants.
func (m *model) unsecured(r *dsl.Request) bool {
	if !m.program.holds(r.Object.Object) {
		return false
	}
	live := m.Get(foos, "default", r.Object.GetName())
	return live != nil && live.GetUID() == r.Object.GetUID() && m.program.holds(live.Object) && !slices.Contains(live.GetFinalizers(), finalizer)
}

// rest lets everything come to its end, and holds what there is then against the reference.
func (m *model) rest() {
	if !m.runs {
		return
	}
	m.Advance(15 * time.Minute)
	m.wrote()
	calls := m.calls
	m.Advance(time.Hour)
	if writes := m.wrote(); len(writes) > 0 || m.calls > calls {
		m.fault("at rest there were %d calls, and writes %v", m.calls-calls, writes)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid, l := range m.lives {
		m.restsLife(uid, l)
	}
	m.rested = m.calls
	m.resting, m.soft, m.forgetful, m.excused = true, false, false, m.lost
}

func (m *model) restsLife(uid types.UID, l *lifetime) {
	o := m.Get(foos, "default", l.name)
	if o == nil || o.GetUID() != uid {
		delete(m.lives, uid)
		for _, id := range l.owed {
			if _, found := m.program.find(id); found && !l.records[id].good() {
				m.fault("%s is gone, and %s did not see it off", l.name, id)
			}
		}
		return
	}
	if o.GetDeletionTimestamp() != nil {
		m.fault("%s is deleted, and still there", l.name)
		return
	}
	if has := slices.Contains(o.GetFinalizers(), finalizer); has != m.program.holds(o.Object) {
		m.fault("the finalizer is on %s: %v", l.name, has)
	}
	if o.GetAnnotations()[state] != "" && !m.program.stores() && !m.excused && m.version == 0 {
		m.fault("%s has a state that nobody needs", l.name)
	}
	for _, c := range m.program {
		if c.kind != "delete" && c.sees(o.Object) && !m.blocked(c, l, o) {
			m.restsHandler(c, l, o)
		}
	}
}

// blocked reports whether a handler may have to wait for one that it comes after.
func (m *model) blocked(c craft, l *lifetime, o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(c.after, func(id string) bool {
		a, found := m.program.find(id)
		if !found || !a.sees(o.Object) {
			return false
		}
		did := l.records[id]
		return did.last != nil && !did.good() || m.blocked(a, l, o)
	})
}

// restsHandler says whether a handler that sees the object has done what it must.
func (m *model) restsHandler(c craft, l *lifetime, o *unstructured.Unstructured) {
	r, view := l.records[c.id], c.look(o.Object)
	absent := c.view != "" && view == "null"
	failed := r.last != nil && r.last.failed
	nothing := len(r.handled) == 0 && absent
	kept := c.kind == "create" && len(r.handled) > 0 && (!failed || absent)
	if !r.unknown && !r.handled[view] && !nothing && !kept {
		m.fault("%s of %s is at rest, and has handled %v, and not %s", c.id, l.name, slices.Sorted(maps.Keys(r.handled)), view)
	}
	if r.last != nil && !r.last.final && !r.last.doubted && !m.excused && !r.unknown && !absent {
		m.fault("%s of %s has given up", c.id, l.name)
	}
	if r.good() && !r.last.doubted && r.last.left == view && c.wants == "status" && view != "null" && r.last.version == m.version {
		if got := at(o.Object, "status."+c.id); got != view {
			m.fault("%s of %s has written %v, want %s", c.id, l.name, got, view)
		}
	}
	if kept || nothing || r.unknown && absent {
		return
	}
	r.truths = append(r.truths, o.Object)
	r.is(view)
}

// wrote takes the writes since it was asked last.
func (m *model) wrote() []string {
	var out []string
	for _, w := range m.Writes() {
		m.say("\t\t\t\t%s", w)
		out = append(out, w.String())
		if w.Verb == "patch" && w.Resource == "foos" {
			m.lost = false
		}
	}
	return out
}

func (m *model) say(format string, args ...any) { m.story = append(m.story, fmt.Sprintf(format, args...)) }

func (m *model) fault(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	m.say("!!! %s", text)
	m.faults = append(m.faults, text)
}
