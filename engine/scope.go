// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/handwerk-dev/handwerk/engine/watch"
)

// scope knows the namespaces that an operator works in. Names alone are taken as they are; globs
// are matched against the namespaces that exist, which a feed of them brings in.
type scope struct {
	patterns []string
	// live: the patterns must be matched against what exists.
	live bool
	// feed brings the namespaces in; nil when the patterns are names alone.
	feed *feed
	// changed is called when the set of namespaces has changed.
	changed func()
	// ask reads a namespace and reports whether it is gone; the error says why that cannot be told.
	ask func(ctx context.Context, name string) (bool, error)

	mu       sync.Mutex
	existing map[string]bool
	// doubtful are namespaces that a listing did not have any more, until they are asked for: the value
	// tells one doubt about a name from the next.
	doubtful map[string]int
	doubts   int
	synced   bool
}

func newScope(patterns []string) *scope {
	s := &scope{patterns: patterns, existing: map[string]bool{}, doubtful: map[string]int{}}
	s.live = slices.ContainsFunc(patterns, func(p string) bool { return strings.ContainsAny(p, "*?[!") })
	return s
}

// names returns the namespaces to watch, [""] meaning all, and false while they are not known.
func (s *scope) names(namespaced bool) (names []string, known bool) {
	if !namespaced || len(s.patterns) == 0 {
		return []string{""}, true
	}
	if !s.live {
		names = slices.Clone(s.patterns)
		slices.Sort(names)
		return slices.Compact(names), true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.existing {
		if s.matches(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, s.synced
}

// fault says why the namespaces are not known; empty when they are on their way.
func (s *scope) fault() string {
	if h := s.feed.health(); h.phase != phaseStarting && h.phase != phaseRunning {
		return "namespaces are " + string(h.phase) + ": " + h.message
	}
	return ""
}

// matches reports whether a namespace is in scope: some pattern takes it in, or there are only
// patterns that take out, and none takes it out.
func (s *scope) matches(name string) bool {
	in, positive := false, false
	for _, p := range s.patterns {
		out := strings.HasPrefix(p, "!")
		matched, err := path.Match(strings.TrimPrefix(p, "!"), name)
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

// seen takes an event of a namespace. One that nobody saw go stays until it was asked for.
func (s *scope) seen(ev watch.Event) {
	s.mu.Lock()
	delete(s.doubtful, ev.Key.Name)
	if ev.Kind == watch.Deleted && ev.Unseen {
		s.doubts++
		s.doubtful[ev.Key.Name] = s.doubts
		s.mu.Unlock()
		s.feed.nudge()
		return
	}
	s.noteLocked(ev.Key.Name, ev.Kind != watch.Deleted)
}

// noteLocked notes whether a namespace is there. It releases the lock, which is held.
func (s *scope) noteLocked(name string, there bool) {
	before := s.existing[name]
	if there {
		s.existing[name] = true
	} else {
		delete(s.existing, name)
	}
	news := before != there && s.synced && s.matches(name)
	s.mu.Unlock()
	if news {
		s.changed()
	}
}

// confirm asks for the namespaces that a listing did not have any more. It reports whether to ask
// again: what can be neither found nor known to be gone stays in the scope, and so does one that came
// while it was asked for.
func (s *scope) confirm(ctx context.Context) (again bool) {
	s.mu.Lock()
	doubtful := maps.Clone(s.doubtful)
	s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(doubtful)) {
		gone, err := s.ask(ctx, name)
		if !gone {
			again = true // it is there: until the watch shows it, nothing else would tell of its end
			if err != nil {
				s.feed.log.V(1).Info("whether a namespace is gone cannot be told", "namespace", name, "reason", err.Error())
			}
			continue
		}
		s.mu.Lock()
		if s.doubtful[name] != doubtful[name] {
			again = again || s.doubtful[name] > 0
			s.mu.Unlock()
			continue
		}
		delete(s.doubtful, name)
		s.noteLocked(name, false)
	}
	return again
}

// lacks reports whether a namespace that would be in scope is known not to be there.
func (s *scope) lacks(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live && s.synced && s.matches(name) && !s.existing[name]
}

// sync says that all namespaces that exist were seen.
func (s *scope) sync() {
	s.mu.Lock()
	first := !s.synced
	s.synced = true
	s.mu.Unlock()
	if first {
		s.changed()
	}
}
