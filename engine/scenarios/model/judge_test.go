// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

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
	if err == nil && c.wants == "note" {
		if err = m.note(c, r, saw); err != nil {
			final, now.final = false, false // it is a failure that no program knows of
		}
	}
	if err == nil {
		left = c.leaves(left)
		now.left = c.look(left)
		c.patch(r)
		if now.polled = c.polls > 0 && r.Cause != dsl.Again; now.polled {
			r.RunAgain(c.polls)
		}
	}
	if !final && r.Cause == dsl.Again {
		now.polled = true // it goes on with what was asked for
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

// note writes what a handler sees with the client.
func (m *model) note(c craft, r *dsl.Request, saw string) error {
	_, err := r.Client.Apply(context.Background(), map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "default", "name": c.note(r.Object.GetName())},
		"data": map[string]any{"saw": saw},
	})
	return err
}

// ask answers for a handler's filter, which may fail.
func (m *model) ask(c craft, o *unstructured.Unstructured) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.filter == "shaky" && m.fails(c) {
		m.say("\t\t\t%s cannot say whether it sees %s", c.id, o.GetName())
		return false, scene.ErrAgain
	}
	return c.sees(o.Object), nil
}

// fails decides whether a filter that may fail does. While an answer is held against a reconcile, it does the same in both.
func (m *model) fails(c craft) bool {
	if m.moment > 0 {
		return (m.moment+len(c.String()))%3 == 0
	}
	return m.dice.IntN(3) == 0
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
	if r.Cause == dsl.Again {
		if last := was.last; !m.excused && (last == nil || !last.polled || last.process != m.process) {
			m.fault("%s is called again, and has not asked for it", c.id)
		}
		return
	}
	if m.excused || was.unknown {
		return
	}
	again := !was.again && c.filter != "shaky" && was.handled[saw] && len(was.handled) == 1 && (was.last == nil || was.last.final)
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
	if r.Cause == dsl.Create && was.good() && !was.last.doubted && (!m.soft || c.wants == "") { // as above
		m.fault("%s is called for create, and has succeeded in this life", c.id)
	}
	if r.Cause != dsl.Create && len(was.handled) == 0 && c.creates() {
		m.fault("%s is called for %s, and nothing has created", c.id, r.Cause)
	}
	if r.Cause != dsl.Update || m.soft || was.bare {
		return
	}
	if unmet := c.asks() && was.handled[c.look(r.Object.Object)]; r.Old == nil || !was.handled[c.look(r.Old)] && !unmet {
		m.fault("%s gets %s as old, and has handled %v", c.id, m.oldOf(c, r), slices.Sorted(maps.Keys(was.handled)))
	}
}

// there reports whether the object that a handler is called for is there.
func (m *model) there(r *dsl.Request) bool {
	live := m.Get(scene.Foos, "default", r.Object.GetName())
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
		return did != nil && did.last != nil && !did.last.doubted && did.last.version == m.version && !did.good()
	})
}

// unsecured reports whether the finalizer is missing that a delete handler wants. Where its filter cannot be asked, the
// object is as it was.
func (m *model) unsecured(r *dsl.Request) bool {
	if !m.program.secures(r.Object.Object) {
		return false
	}
	live := m.Get(scene.Foos, "default", r.Object.GetName())
	return live != nil && live.GetUID() == r.Object.GetUID() && m.program.secures(live.Object) && !slices.Contains(live.GetFinalizers(), scene.Finalizer)
}

// rest lets everything come to its end, and holds what there is then against the reference.
func (m *model) rest() {
	if !m.runs {
		return
	}
	m.Advance(15 * time.Minute)
	m.wrote()
	before := m.called()
	m.Advance(time.Hour)
	if writes, calls := m.wrote(), m.called()-before; len(writes) > 0 || calls > 0 {
		m.fault("at rest there were %d calls, and writes %v", calls, writes)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid, l := range m.lives {
		m.restsLife(uid, l)
	}
	m.rested = m.calls
	m.resting, m.soft, m.forgetful, m.excused = true, false, false, m.lost > 0
}

// over reports whether a life has come to its end: then those of the program have seen the object off that had to. The lock is held.
func (m *model) over(uid types.UID, l *lifetime) bool {
	if o := m.Get(scene.Foos, "default", l.name); o != nil && o.GetUID() == uid {
		return false
	}
	delete(m.lives, uid)
	for _, id := range l.owed {
		if _, found := m.program.find(id); found && !l.records[id].good() {
			m.fault("%s is gone, and %s did not see it off", l.name, id)
		}
	}
	return true
}

func (m *model) restsLife(uid types.UID, l *lifetime) {
	if m.over(uid, l) {
		return
	}
	o := m.Get(scene.Foos, "default", l.name)
	if o.GetDeletionTimestamp() != nil {
		m.fault("%s is deleted, and still there", l.name)
		return
	}
	if has := slices.Contains(o.GetFinalizers(), scene.Finalizer); has != m.program.holds(o.Object) {
		m.fault("the finalizer is on %s: %v", l.name, has)
	}
	if o.GetAnnotations()[scene.StateAnnotation] != "" && !m.program.stores() && !m.excused && m.version == 0 {
		m.fault("%s has a state that is not needed", l.name)
	}
	for _, c := range m.program {
		switch r := l.records[c.id]; {
		case c.kind == "delete":
		case !c.sees(o.Object) && c.asks():
			r.unmet, r.unmetAt = c.look(o.Object), m.calls
			r.bare = r.bare || m.soft // what it wanted may have been dropped, and so what it handled
		case c.sees(o.Object) && !m.blocked(c, l, o):
			m.restsHandler(c, l, o)
			r.unmet = ""
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
	if ran := r.last != nil && r.last.at > r.unmetAt; r.unmet != "" && r.unmet != view && !ran && !m.excused {
		m.fault("%s of %s is at rest, its when holds, and it has not run for the change from %s to %s", c.id, l.name, r.unmet, view)
	}
	if r.last != nil && !r.last.final && !r.last.doubted && !m.excused && !r.unknown && !absent {
		m.fault("%s of %s has given up", c.id, l.name)
	}
	if last := r.last; last != nil && last.polled && last.final && last.process == m.process && !last.doubted && !m.excused && c.filter == "" && !absent {
		m.fault("%s of %s asked to be run again, and was not", c.id, l.name)
	}
	if r.good() && !r.last.doubted && r.last.left == view && c.wants == "note" && r.last.version == m.version {
		if note := m.Get(scene.ConfigMaps, "default", c.note(l.name)); note == nil || at(note.Object, "data.saw") != view {
			m.fault("%s of %s has written %v, want %s", c.id, l.name, note, view)
		}
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
		if strings.HasPrefix(w.Name, "note-") {
			continue // the handler's own, at each of its calls
		}
		out = append(out, w.String())
		if w.Verb == "patch" && w.Resource == "foos" {
			m.locked(func() { m.lost = max(0, m.lost-1) })
		}
	}
	return out
}

// called is how many calls there were.
func (m *model) called() (n int) {
	m.locked(func() { n = m.calls })
	return n
}

// locked does something with what handlers look at, too.
func (m *model) locked(do func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	do()
}

func (m *model) say(format string, args ...any) {
	m.ink.Lock()
	defer m.ink.Unlock()
	m.story = append(m.story, fmt.Sprintf(format, args...))
}

func (m *model) fault(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	m.say("!!! %s", text)
	m.ink.Lock()
	defer m.ink.Unlock()
	m.faults = append(m.faults, text)
}
