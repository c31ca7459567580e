// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/handwerk-dev/handwerk/dsl"
)

// ScopeSettings configure a scope. Namespaces and Log are used only if the scope is live; see [Scope.Live].
type ScopeSettings struct {
	// Of says which namespaces are in the scope. If all patterns exclude namespaces, the others are in.
	Of dsl.Scope
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
	// NamespacesFault returns why the list of namespaces is not available; empty while it is being read, and afterwards.
	NamespacesFault() string
}

// Scope is the set of namespaces that an operator works in. Its methods may be called by any number of
// goroutines.
type Scope struct {
	settings ScopeSettings
	selector labels.Selector
	live     bool
	// named are the namespaces of a scope that is not live.
	named map[string]bool

	mu sync.Mutex
	// existing has the namespaces that exist. The value is true if the selector matches their labels.
	existing map[string]bool
	// doubtful has the namespaces that a listing lacks, until they are read. The values number the doubts, so that a
	// later doubt about the same name is a different one.
	doubtful map[string]int
	doubts   int
	// listed is true when the first listing of namespaces is complete.
	listed bool
}

// NewScope returns a scope without namespaces.
func NewScope(s ScopeSettings) *Scope {
	selector, err := labels.Parse(s.Of.NamespaceSelector)
	if err != nil {
		selector = labels.Nothing() // loading the configuration reports it
	}
	named := map[string]bool{}
	for _, name := range s.Of.Namespaces {
		named[name] = true
	}
	return &Scope{
		settings: s, selector: selector, named: named, existing: map[string]bool{}, doubtful: map[string]int{},
		live: !selector.Empty() || slices.ContainsFunc(s.Of.Namespaces, func(p string) bool { return strings.ContainsAny(p, "*?[!") }),
	}
}

// Live reports whether the scope depends on which namespaces exist: a pattern is a glob or excludes namespaces, or there
// is a label selector.
func (s *Scope) Live() bool { return s.live }

// Names returns the namespaces in which a resource has to be watched, sorted; [""] means all at once. Known is false
// until the existing namespaces were listed.
func (s *Scope) Names(namespaced bool) (names []string, known bool) {
	if !namespaced || s.settings.Of.Everywhere() {
		return []string{""}, true
	}
	if !s.live {
		names = slices.Clone(s.settings.Of.Namespaces)
		slices.Sort(names)
		return slices.Compact(names), true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, selected := range s.existing {
		if selected && s.Matches(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, s.listed
}

// Has reports whether Names returns a namespace. It does not go through the others: there may be thousands.
func (s *Scope) Has(name string) bool {
	if !s.live {
		return s.named[name]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.existing[name] && s.Matches(name)
}

// extent is a scope, or one namespace of it.
type extent struct {
	*Scope
	// namespace is empty for the whole scope.
	namespace string
}

// Names is [Scope.Names] of the extent. It has no names if the namespace is outside the scope.
func (e extent) Names(namespaced bool) (names []string, known bool) {
	names, known = e.Scope.Names(namespaced)
	switch {
	case e.namespace == "" || !namespaced:
		return names, known
	case e.settings.Of.Everywhere() || slices.Contains(names, e.namespace):
		return []string{e.namespace}, known
	}
	return nil, known
}

// Has reports whether a namespace is one of Names.
func (e extent) Has(name string) bool {
	if e.namespace == "" {
		return e.Scope.Has(name)
	}
	return name == e.namespace && (e.settings.Of.Everywhere() || e.Scope.Has(name))
}

// Fault returns why Names are not known; empty while they are being read.
func (s *Scope) Fault() string { return s.settings.Namespaces.NamespacesFault() }

// Matches reports whether a namespace of that name may be in the scope, if it exists and has the labels. No pattern may
// exclude it, and one has to include it, unless all patterns exclude.
func (s *Scope) Matches(name string) bool {
	in, positive := false, false
	for _, p := range s.settings.Of.Namespaces {
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

// IsMissing reports whether a namespace matches the scope and does not exist.
func (s *Scope) IsMissing(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, exists := s.existing[name]
	return s.live && s.listed && s.Matches(name) && !exists
}

// IsOutside reports whether a namespace is known not to be in the scope: it does not exist, or its name or its labels do not match.
func (s *Scope) IsOutside(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live && s.listed && (!s.existing[name] || !s.Matches(name))
}

// OnLost is called when a listing lacks a namespace and the watch missed its deletion. The namespace stays until [Scope.Listed] has
// read it.
func (s *Scope) OnLost(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubts++
	s.doubtful[name] = s.doubts
}

// OnUpdated is called when a namespace was added or has changed.
func (s *Scope) OnUpdated(name string, set map[string]string) {
	selected := s.selector.Matches(labels.Set(set))
	s.note(func() bool {
		delete(s.doubtful, name)
		before := s.existing[name]
		s.existing[name] = selected
		return before != selected && s.Matches(name)
	})
}

// OnDeleted is called when a namespace was deleted.
func (s *Scope) OnDeleted(name string) { s.note(func() bool { return s.removeLocked(name) }) }

// note changes the known namespaces, and reports a change of the scope.
func (s *Scope) note(change func() (changed bool)) {
	s.mu.Lock()
	changed := change() && s.listed
	s.mu.Unlock()
	if changed {
		s.settings.Namespaces.ScopeChanged()
	}
}

// removeLocked removes a namespace, and reports whether it was in the scope. The lock is held.
func (s *Scope) removeLocked(name string) (changed bool) {
	before := s.existing[name]
	delete(s.doubtful, name)
	delete(s.existing, name)
	return before && s.Matches(name)
}

// Listed is called when all namespaces are listed. While the source runs, it reads the lost namespaces, and reports
// whether to call it again. A namespace whose deletion is not confirmed stays in the scope, and so does a namespace that
// was added meanwhile.
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

// confirm reads a namespace that was lost, and reports whether to read it again.
func (s *Scope) confirm(ctx context.Context, name string, doubt int) (again bool) {
	gone, err := s.settings.Namespaces.NamespaceGone(ctx, name)
	if err != nil {
		s.settings.Log.V(1).Info("reading namespace failed; it stays in the scope", "namespace", name, "reason", err.Error())
	}
	if !gone {
		return true // it exists: until the watch shows it, no event would report its deletion
	}
	s.note(func() bool {
		now := s.doubtful[name]
		again = now != doubt && now > 0
		return now == doubt && s.removeLocked(name)
	})
	return again
}
