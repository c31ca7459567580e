// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package history keeps the last reconciles over each object, so that people can read what happened in order. All objects together have
// a bound in bytes: past it, the oldest passes are dropped, whichever object they are of. Of one object no more is kept than a share.
//
// A reconcile is kept as a few dozen bytes, in memory that is used again, and with the object as the reconcile has read it. That is the
// immutable object of the cache, so what has changed from pass to pass is found out when somebody asks, and not before.
package history

import (
	"sync"

	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

const (
	// passesMost is how many reconciles of an object are kept.
	passesMost = 20
	// logCosts is about how much memory an object takes beside its reconciles, passCosts a reconcile beside its bytes, with its place in
	// the order of all, and versionCosts a version beside its JSON.
	logCosts, passCosts, versionCosts = 300, 120, 200
	// objectShare is the part of the room that the versions of one object may take, so that no object pushes out the history of others.
	objectShare = 50
)

// ID names an object.
type ID struct {
	Resource string
	Key      cache.ObjectName
}

// Store has the reconciles. Its methods may be called by any number of goroutines. A nil store keeps nothing.
type Store struct {
	most    int
	words   words
	records sync.Pool

	mu   sync.Mutex
	logs map[ID]*log
	// held is about how much memory the reconciles take, and versions how much of that the objects do. Reconciles is how many there are.
	held, versions, passes int
	// order has the reconciles of all objects from head on, the oldest first, and among them some that are dropped. Those before bare
	// have no version any more.
	order      []place
	head, bare int
}

// place says which reconcile of a log it is.
type place struct {
	log    *log
	number int
}

// New returns a store for so many bytes; nil for none.
func New(most int64) *Store {
	if most <= 0 {
		return nil
	}
	s := &Store{most: int(most), logs: map[ID]*log{}}
	s.records.New = func() any { return &Record{words: &s.words} }
	return s
}

// Record returns an empty record for [Store.Keep].
func (s *Store) Record() *Record {
	if s == nil {
		return nil
	}
	r := s.records.Get().(*Record)
	r.data, r.ran = r.data[:0], false
	return r
}

// Keep keeps a reconcile over an object, with the object as the reconcile has read it; nil where that is not known. An object that is too large
// for its share is not kept. A reconcile in which no handler ran is counted with the one before if that was like it. The record must not be
// used any more.
func (s *Store) Keep(id ID, when Moment, r *Record, version *cached.Object) {
	if s == nil {
		return
	}
	defer s.records.Put(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if weight(version) > s.most/objectShare {
		version = nil
	}
	l := s.logs[id]
	if l == nil {
		l = &log{id: id}
		s.logs[id] = l
		s.held += logCosts
	}
	if !r.ran && l.repeats(when, r.data, version) {
		return
	}
	before := l.held
	l.add(when, r.data, version)
	s.held += l.held - before + passCosts
	s.passes++
	s.order = append(s.order, place{l, l.first + len(l.passes) - 1})
	s.count(l, weight(version))
	if len(l.passes) > passesMost {
		s.drop(l)
	}
	s.bound(l)
	s.shrink()
}

// Left keeps the object as the last reconcile over it has written it, where no other reconcile sees it so.
func (s *Store) Left(id ID, version *cached.Object) {
	if s == nil || weight(version) > s.most/objectShare {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.logs[id]
	if l == nil {
		return
	}
	last := &l.passes[len(l.passes)-1]
	s.count(l, weight(version)-weight(last.left))
	last.left = version
	s.bound(l)
	s.shrink()
}

// bound drops the oldest versions of an object that has more than its share.
func (s *Store) bound(l *log) {
	for i := 0; l.versions > s.most/objectShare; i++ {
		s.strip(l, &l.passes[i])
	}
}

// weight is about how much memory a version takes.
func weight(version *cached.Object) int {
	if version == nil {
		return 0
	}
	return version.Size() + versionCosts
}

// count counts the memory that a version of an object takes, or gives back.
func (s *Store) count(l *log, bytes int) {
	s.held += bytes
	s.versions += bytes
	l.versions += bytes
}

// strip drops the versions of a reconcile.
func (s *Store) strip(l *log, p *kept) {
	s.count(l, -weight(p.version)-weight(p.left))
	p.version, p.left = nil, nil
}

// drop drops the oldest pass of an object.
func (s *Store) drop(l *log) {
	s.strip(l, &l.passes[0])
	before := l.held
	l.drop()
	s.held += l.held - before - passCosts
	if s.passes--; len(l.passes) == 0 {
		s.held -= l.held + logCosts
		delete(s.logs, l.id)
	}
}

// shrink drops what is too much: versions that take more than half of the room, and then passes.
func (s *Store) shrink() {
	for ; s.bare < len(s.order) && s.versions > s.most/2; s.bare++ {
		if at := s.order[s.bare]; at.pass() != nil {
			s.strip(at.log, at.pass())
		}
	}
	for ; s.head < len(s.order) && s.held > s.most; s.head++ {
		if at := s.order[s.head]; at.pass() != nil {
			s.drop(at.log)
		}
	}
	s.bare = max(s.bare, s.head)
	if len(s.order) > 2*s.passes+passesMost {
		s.tidy()
	}
}

// pass returns the reconcile of a place; nil where it is dropped.
func (at place) pass() *kept {
	if i := at.number - at.log.first; i >= 0 {
		return &at.log.passes[i]
	}
	return nil
}

// tidy takes those places out of the order whose reconciles are dropped.
func (s *Store) tidy() {
	out, bare := s.order[:0], 0
	for i, at := range s.order {
		if at.pass() == nil {
			continue
		}
		if i < s.bare {
			bare++
		}
		out = append(out, at)
	}
	clear(s.order[len(out):])
	s.order, s.head, s.bare = out, 0, bare
}

// Of returns the reconciles over an object that are kept, the oldest first.
func (s *Store) Of(id ID) []Pass {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.logs[id]
	if l == nil {
		return nil
	}
	return l.read(&s.words)
}

// Forget drops the reconciles over an object.
func (s *Store) Forget(id ID) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(id)
}

func (s *Store) forget(id ID) {
	if l := s.logs[id]; l != nil {
		for range len(l.passes) {
			s.drop(l)
		}
	}
}

// Clear drops the reconciles over all objects of a resource.
func (s *Store) Clear(resource string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.logs {
		if id.Resource == resource {
			s.forget(id)
		}
	}
	s.tidy()
}

// Held is about how much memory the reconciles take, in bytes, and how many reconciles there are.
func (s *Store) Held() (bytes, passes int) {
	if s == nil {
		return 0, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held, s.passes
}
