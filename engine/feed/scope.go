// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
)

// ScopeSettings configure a scope. Namespaces and Log are used only if some pattern is a glob; see [Scope.Live].
type ScopeSettings struct {
	// Patterns are names of namespaces and globs. One that begins with ! takes out what it matches; where
	// all do, the others are in. None at all means every namespace.
	Patterns []string
	// Namespaces knows the namespaces of the cluster.
	Namespaces Namespaces
	// Log gets failed reads of namespaces, at V(1). Optional.
	Log logr.Logger
}

// Namespaces answers a scope's questions about the namespaces of the cluster, as [Factory] does.
type Namespaces interface {
	// ScopeChanged is called when the namespaces of the scope have changed, and when they are first known. It
	// must be quick.
	ScopeChanged()
	// NamespaceGone reads a namespace from the server and reports whether it is gone.
	NamespaceGone(ctx context.Context, name string) (bool, error)
	// NamespacesFault says why the list of namespaces is not available; empty while it is being read, and afterwards.
	NamespacesFault() string
}

// Scope is the set of namespaces that an operator works in. Its methods may be called by any number of
// goroutines.
type Scope struct {
	settings ScopeSettings
	live     bool

	mu       sync.Mutex
	existing map[string]bool
	// doubtful has the namespaces that a listing lacks, until they are read. The values number the doubts, so that a later
	// one about the same name differs.
	doubtful map[string]int
	doubts   int
	// listed is true when the first listing of namespaces is complete.
	listed bool
}

// NewScope returns a scope without namespaces.
func NewScope(s ScopeSettings) *Scope {
	return &Scope{
		settings: s, existing: map[string]bool{}, doubtful: map[string]int{},
		live: slices.ContainsFunc(s.Patterns, func(p string) bool { return strings.ContainsAny(p, "*?[!") }),
	}
}

// Live reports whether the scope depends on which namespaces exist: some pattern is a glob or takes out.
func (s *Scope) Live() bool { return s.live }

// Names returns the namespaces in which a resource is to be watched, sorted, [""] meaning all at once. They
// are not known until those that exist were listed.
func (s *Scope) Names(namespaced bool) (names []string, known bool) {
	if !namespaced || len(s.settings.Patterns) == 0 {
		return []string{""}, true
	}
	if !s.live {
		names = slices.Clone(s.settings.Patterns)
		slices.Sort(names)
		return slices.Compact(names), true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.existing {
		if s.Matches(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, s.listed
}

// Fault says why Names are not known; empty when they are on their way.
func (s *Scope) Fault() string { return s.settings.Namespaces.NamespacesFault() }

// Matches reports whether a namespace of that name is in the scope, if it exists: some pattern takes it
// in, or there are only patterns that take out, and none takes it out.
func (s *Scope) Matches(name string) bool {
	in, positive := false, false
	for _, p := range s.settings.Patterns {
		p, out := strings.CutPrefix(p, "!")
		matched, err := path.Match(p, name)
		if err != nil {
			continue // a faulty glob matches nothing; loading the configuration reports it
		}
		if out && matched {
			return false
		}
		positive = positive || !out
		in = in || matched
	}
	return in || !positive
}

// ScopesOverlap reports whether two lists of patterns may take in the same namespace. Two that both have globs may.
func ScopesOverlap(a, b []string) bool {
	for _, lists := range [][2][]string{{a, b}, {b, a}} {
		if one, other := NewScope(ScopeSettings{Patterns: lists[0]}), NewScope(ScopeSettings{Patterns: lists[1]}); len(lists[0]) > 0 && !one.Live() {
			return slices.ContainsFunc(lists[0], other.Matches)
		}
	}
	return true
}

// comma separates the patterns in a text.
const comma = ","

// Text is a list of patterns as the lock of an operator has it. FromText is the opposite.
func Text(patterns []string) string { return strings.Join(patterns, comma) }

// FromText reads what [Text] has written.
func FromText(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, comma)
}

// Lacks reports whether a namespace matches the scope and does not exist.
func (s *Scope) Lacks(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live && s.listed && s.Matches(name) && !s.existing[name]
}

// Lost is called when a listing lacks a namespace and the watch missed its deletion. The namespace stays until [Scope.Listed] has
// read it.
func (s *Scope) Lost(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubts++
	s.doubtful[name] = s.doubts
}

// Seen is called when a namespace was added or deleted.
func (s *Scope) Seen(name string, there bool) {
	s.mu.Lock()
	changed := s.noteLocked(name, there)
	s.mu.Unlock()
	if changed {
		s.settings.Namespaces.ScopeChanged()
	}
}

// noteLocked notes whether a namespace is there, and reports whether that changes the scope. The lock is held.
func (s *Scope) noteLocked(name string, there bool) (changed bool) {
	delete(s.doubtful, name)
	before := s.existing[name]
	if there {
		s.existing[name] = true
	} else {
		delete(s.existing, name)
	}
	return before != there && s.listed && s.Matches(name)
}

// Listed is called when all namespaces are listed. While the feed runs, it reads the lost namespaces, and reports whether to call it
// again. A namespace whose deletion is not confirmed stays in the scope, and so does one that was added meanwhile.
func (s *Scope) Listed(ctx context.Context, well bool) (again bool) {
	s.mu.Lock()
	first := !s.listed
	s.listed = true
	doubtful := maps.Clone(s.doubtful)
	s.mu.Unlock()
	if first {
		s.settings.Namespaces.ScopeChanged()
	}
	if !well {
		return false
	}
	for _, name := range slices.Sorted(maps.Keys(doubtful)) {
		again = s.confirm(ctx, name, doubtful[name]) || again
	}
	return again
}

// confirm asks for a namespace that was lost, and reports whether to ask again.
func (s *Scope) confirm(ctx context.Context, name string, doubt int) (again bool) {
	gone, err := s.settings.Namespaces.NamespaceGone(ctx, name)
	if err != nil {
		s.settings.Log.V(1).Info("reading namespace failed; it stays in the scope", "namespace", name, "reason", err.Error())
	}
	if !gone {
		return true // it exists: until the watch shows it, no event would report its deletion
	}
	s.mu.Lock()
	now, changed := s.doubtful[name], false
	if now == doubt {
		changed = s.noteLocked(name, false)
	}
	s.mu.Unlock()
	if changed {
		s.settings.Namespaces.ScopeChanged()
	}
	return now != doubt && now > 0
}
