// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/child"
	"github.com/handwerk-dev/handwerk/engine/patch"
)

// mostNamed bounds the objects that a line of the log names.
const mostNamed = 5

// outdated returns the places of a record at which there is no child any more.
func (p *pass) outdated(record *child.Record) (out []child.Place) {
	owner, parted := p.owner(), p.deletion == "" && p.r.rules.farewells
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, place := range record.Places() {
		there, known := p.r.claimed(owner, place)
		if there {
			delete(p.ties.doubts, place)
		}
		_, wanted := p.ties.wanted[place]
		if known && !there && !wanted && !p.ties.doubts[place] || parted && p.farewell(record, place) {
			out = append(out, place)
		}
	}
	return out
}

// claimed reports whether an object that says it is the owner's is at a place, as far as it is known.
func (r *resource) claimed(owner child.Owner, place child.Place) (there, known bool) {
	key := cache.ObjectName{Namespace: place.Namespace, Name: place.Name}
	for _, f := range r.children {
		if !f.Known() || placeIn(f, key) != place {
			continue
		}
		if h := f.Informer(key.Namespace); h != nil && h.Synced() {
			o, found := h.Object(key)
			if !found && f.Telling(key) {
				return false, false // who is told of the deletion finds the owner by its record
			}
			return found && (owner.Labels(o) || owner.Says(o)), true
		}
	}
	return false, false
}

// trim takes what is no child any more out of the record, which is written when the object is. It
// returns the object as it is now.
func (p *pass) trim(marks *patch.Marks) *unstructured.Unstructured {
	p.ties.turn.Lock() // what a handler has left behind may be writing still
	defer p.ties.turn.Unlock()
	p.mu.Lock()
	before, base := p.ties.record, p.ties.base
	p.mu.Unlock()
	if before == nil || p.gone || p.deletion != "" {
		return base
	}
	left := p.outdated(before)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(left) > 0 {
		p.ties.record, p.ties.ahead = before.Without(left...), true
		p.r.records.put(p.key, p.ties.record)
	}
	if !p.ties.ahead {
		return base
	}
	if text, err := p.ties.record.Encode(p.object.GetUID()); err == nil {
		marks.Along = map[string]string{p.r.engine.op.ChildrenAnnotation(): text}
	}
	return base
}

// closeRecord remembers the record. When every handler is done, what was there before it is in it,
// and what passes for a child all the same is told, once in the life of a process.
func (p *pass) closeRecord() {
	m := p.memory
	done := !slices.ContainsFunc(p.jobs, func(j *job) bool { return !j.record.Done || j.record.Failed })
	p.mu.Lock()
	m.ties = nil
	if p.ties.record != nil || len(p.ties.doubts) > 0 {
		p.ties.closed = p.ties.closed || done && p.ties.record != nil
		known := p.ties.ties
		m.ties = &known
	}
	p.mu.Unlock()
	if done && !p.gone && (!m.told || p.deletion != "") {
		m.told = true
		p.tell()
	}
}

// unlisted names the objects that pass for children of this one, sorted.
func (p *pass) unlisted() (names []string) {
	owner := p.owner()
	for _, f := range p.r.children {
		if !f.Known() || p.r.repeats(f) {
			continue
		}
		for _, mark := range owner.Marks() {
			for _, o := range f.OwnedBy(mark) {
				if tree := o.Tree(); tree != nil && owner.Unlisted(tree) {
					names = append(names, child.PlaceOf(tree).String())
				}
			}
		}
	}
	slices.Sort(names)
	return names
}

// tell tells of the objects that pass for children of this one, and are left alone. When it is being
// deleted nobody will look for them again, so people are told, too.
func (p *pass) tell() {
	names := p.unlisted()
	if len(names) == 0 {
		return
	}
	more := max(0, len(names)-mostNamed)
	if p.deletion != "" {
		p.r.engine.events.Warn(p.object, "leave", "ChildrenLeft", fmt.Sprintf("%d objects say that they are children of this one, which has no record of them. They are left: %s",
			len(names), strings.Join(names[:len(names)-more], " ")))
	}
	p.log().Info("objects say that they are children of this one and are not in its record of children; they are left alone", dsl.LogWarning, true,
		"objects", strings.Join(names[:len(names)-more], " "), "more", more)
}
