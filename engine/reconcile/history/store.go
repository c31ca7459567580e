// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package history keeps the last reconciles over each object, so that people can read what happened in order. All
// objects together have a bound in bytes. Beyond it, the oldest reconciles are dropped, whichever object they are of.
// One object may use only a share of it.
//
// A reconcile takes a few dozen bytes, in memory that is reused, and the object as the reconcile has read it. That is
// the immutable object of the cache. Changes from reconcile to reconcile are computed only when somebody asks.
package history

import (
	"sync"

	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

const (
	// mostReconciles is how many reconciles of an object are kept.
	mostReconciles = 20
	// Estimates of memory in bytes: of an object beside its reconciles, of a reconcile beside its bytes, and of a
	// version beside its JSON.
	logCosts, reconcileCosts, versionCosts = 300, 120, 200
	// objectShare is the divisor for the part of the store that the versions of one object may use. So no object evicts the
	// history of others.
	objectShare = 50
)

// ID names an object.
type ID struct {
	Resource string
	Key      cache.ObjectName
}

// Store has the recorded reconciles. Its methods are safe for concurrent use. A nil store keeps nothing.
type Store struct {
	most    int
	words   words
	records sync.Pool

	mu   sync.Mutex
	logs map[ID]*log
	// held is roughly the memory of all reconciles, and versions the part of the objects. reconciles is the number of
	// reconciles.
	held, versions, reconciles int
	// order has the reconciles of all objects from head on, the oldest first; some of them are dropped already. Those
	// before bare have no version.
	order      []place
	head, bare int
}

// place is the place of a reconcile in a log.
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

// Keep records a reconcile over an object. Version is the object as the reconcile has read it; nil if unknown, and
// dropped if it is too large for its share. If no handler ran and the previous record is the same, the reconcile is only
// counted. The record must not be used after that.
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
	s.held += l.held - before + reconcileCosts
	s.reconciles++
	s.order = append(s.order, place{l, l.first + len(l.reconciles) - 1})
	s.count(l, weight(version))
	if len(l.reconciles) > mostReconciles {
		s.drop(l)
	}
	s.bound(l)
	s.shrink()
}

// Left records the object after the write of the last reconcile, if no other reconcile will see it.
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
	last := &l.reconciles[len(l.reconciles)-1]
	s.count(l, weight(version)-weight(last.left))
	last.left = version
	s.bound(l)
	s.shrink()
}

// bound drops the oldest versions of an object that has more than its share.
func (s *Store) bound(l *log) {
	for i := 0; l.versions > s.most/objectShare; i++ {
		s.strip(l, &l.reconciles[i])
	}
}

// weight is roughly the memory of a version.
func weight(version *cached.Object) int {
	if version == nil {
		return 0
	}
	return version.Size() + versionCosts
}

// count adds the memory of an object's version, or subtracts it.
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

// drop drops the oldest reconcile of an object.
func (s *Store) drop(l *log) {
	s.strip(l, &l.reconciles[0])
	before := l.held
	l.drop()
	s.held += l.held - before - reconcileCosts
	if s.reconciles--; len(l.reconciles) == 0 {
		s.held -= l.held + logCosts
		delete(s.logs, l.id)
	}
}

// shrink drops versions while they use more than half of the store, and then reconciles.
func (s *Store) shrink() {
	for ; s.bare < len(s.order) && s.versions > s.most/2; s.bare++ {
		if at := s.order[s.bare]; at.reconcile() != nil {
			s.strip(at.log, at.reconcile())
		}
	}
	for ; s.head < len(s.order) && s.held > s.most; s.head++ {
		if at := s.order[s.head]; at.reconcile() != nil {
			s.drop(at.log)
		}
	}
	s.bare = max(s.bare, s.head)
	if len(s.order) > 2*s.reconciles+mostReconciles {
		s.tidy()
	}
}

// reconcile returns the reconcile of a place; nil if it is dropped.
func (at place) reconcile() *kept {
	if i := at.number - at.log.first; i >= 0 {
		return &at.log.reconciles[i]
	}
	return nil
}

// tidy removes the places of dropped reconciles from the order.
func (s *Store) tidy() {
	out, bare := s.order[:0], 0
	for i, at := range s.order {
		if at.reconcile() == nil {
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

// Of returns the recorded reconciles over an object, the oldest first.
func (s *Store) Of(id ID) []Reconcile {
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
		for range len(l.reconciles) {
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

// Held returns roughly the memory of the reconciles in bytes, and their number.
func (s *Store) Held() (bytes, reconciles int) {
	if s == nil {
		return 0, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held, s.reconciles
}
