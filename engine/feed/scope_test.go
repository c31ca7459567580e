// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package feed_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/engine/feed"
)

// TestNames holds which namespaces a scope has of those that exist.
func TestNames(t *testing.T) {
	exist := []string{"team-b", "team-a", "team-old", "kube-system"}
	tests := map[string]struct {
		patterns []string
		want     []string
		live     bool
	}{
		"no pattern means all at once":              {nil, []string{""}, false},
		"names are taken as they are, once each":    {[]string{"b", "a", "b"}, []string{"a", "b"}, false},
		"a glob takes in those that exist":          {[]string{"team-?"}, []string{"team-a", "team-b"}, true},
		"one that takes out is stronger":            {[]string{"team-*", "!team-old"}, []string{"team-a", "team-b"}, true},
		"and so wherever it stands":                 {[]string{"!team-old", "team-*"}, []string{"team-a", "team-b"}, true},
		"patterns that take out alone leave others": {[]string{"!team-*"}, []string{"kube-system"}, true},
		"a name beside a glob must exist":           {[]string{"team-o*", "other"}, []string{"team-old"}, true},
		"a faulty glob matches nothing":             {[]string{"[", "team-a"}, []string{"team-a"}, true},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			s := feed.NewScope(feed.ScopeSettings{Patterns: tt.patterns, Namespaces: &cluster{}})
			for _, name := range exist {
				s.Seen(name, true)
			}
			s.Listed(t.Context(), true)
			got, known := s.Names(true)
			if diff := cmp.Diff(tt.want, got); diff != "" || !known || s.Live() != tt.live {
				t.Errorf("known is %v, live %v, want %v; names (-want +got):\n%s", known, s.Live(), tt.live, diff)
			}
			if all, _ := s.Names(false); !cmp.Equal(all, []string{""}) {
				t.Errorf("a resource without namespaces is watched in %q", all)
			}
		})
	}
}

// cluster counts changes of a scope, and answers whether a namespace is gone.
type cluster struct {
	changes int
	gone    func() (bool, error)
}

func (c *cluster) ScopeChanged() { c.changes++ }

func (c *cluster) NamespaceGone(context.Context, string) (bool, error) { return c.gone() }

func (c *cluster) NamespacesFault() string { return "" }

// TestChanges holds when a scope says that it has changed, and what it knows not to be there.
func TestChanges(t *testing.T) {
	c := &cluster{}
	s := feed.NewScope(feed.ScopeSettings{Patterns: []string{"team-*"}, Namespaces: c})
	steps := []struct {
		what  string
		do    func()
		want  int
		lacks bool
	}{
		{"what comes before all were listed is no change", func() { s.Seen("team-b", true) }, 0, false},
		{"the first listing is one", func() { s.Listed(t.Context(), true) }, 1, true},
		{"a later one does not count", func() { s.Listed(t.Context(), true) }, 1, true},
		{"one that comes is", func() { s.Seen("team-a", true) }, 2, false},
		{"one that changes is none", func() { s.Seen("team-a", true) }, 2, false},
		{"nor is one that is not in the scope", func() { s.Seen("other", true) }, 2, false},
		{"one that goes is", func() { s.Seen("team-a", false) }, 3, true},
	}
	for _, step := range steps {
		step.do()
		if c.changes != step.want || s.Lacks("team-a") != step.lacks {
			t.Errorf("%s: %d changes, want %d; lacks it: %v", step.what, c.changes, step.want, s.Lacks("team-a"))
		}
	}
	if s.Lacks("elsewhere") {
		t.Error("a namespace that would not be in the scope is said to be lacking")
	}
}

// TestANamespaceThatIsLost holds that a namespace which a listing does not have stays until the server says
// that it is gone, and that the answer says nothing of one that came after it was asked for.
func TestANamespaceThatIsLost(t *testing.T) {
	const name = "team-a"
	there, unknown := []string{name}, errors.New("no answer")
	tests := map[string]struct {
		gone      bool
		err       error
		meanwhile func(*feed.Scope)
		want      []string
		again     bool
	}{
		"one that is gone leaves the scope":             {true, nil, func(*feed.Scope) {}, nil, false},
		"one that is there stays":                       {false, nil, func(*feed.Scope) {}, there, true},
		"one whose state is unknown stays":              {false, unknown, func(*feed.Scope) {}, there, true},
		"one that comes while it is asked for stays":    {true, nil, func(s *feed.Scope) { s.Seen(name, true) }, there, false},
		"one that comes and is lost meanwhile stays":    {true, nil, func(s *feed.Scope) { s.Seen(name, true); s.Lost(name) }, there, true},
		"one that is lost again meanwhile is asked for": {true, nil, func(s *feed.Scope) { s.Lost(name) }, there, true},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			var s *feed.Scope
			s = feed.NewScope(feed.ScopeSettings{Patterns: []string{"team-*"}, Namespaces: &cluster{gone: func() (bool, error) {
				tt.meanwhile(s)
				return tt.gone, tt.err
			}}})
			s.Seen(name, true)
			s.Lost(name)
			if again := s.Listed(t.Context(), false); again {
				t.Error("it asks although namespaces are not watched well")
			}
			again := s.Listed(t.Context(), true)
			got, _ := s.Names(true)
			if diff := cmp.Diff(tt.want, got); diff != "" || again != tt.again {
				t.Errorf("to ask again is %v, want %v; the scope (-want +got):\n%s", again, tt.again, diff)
			}
		})
	}
}

func TestOverlap(t *testing.T) {
	tests := map[string]struct {
		a, b []string
		want bool
	}{
		"two whole clusters":                         {nil, nil, true},
		"a whole cluster and a name":                 {nil, []string{"a"}, true},
		"the same name":                              {[]string{"a", "b"}, []string{"b", "c"}, true},
		"two names":                                  {[]string{"a"}, []string{"b"}, false},
		"a name that a glob takes in":                {[]string{"team-a"}, []string{"team-*"}, true},
		"a name that a glob does not take in":        {[]string{"a"}, []string{"team-*"}, false},
		"a name that is taken out":                   {[]string{"team-a"}, []string{"!team-*"}, false},
		"a whole cluster and one with names out":     {nil, []string{"!a"}, true},
		"two globs may, also where they do not look": {[]string{"a-*"}, []string{"b-*"}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, turned := feed.ScopesOverlap(test.a, test.b), feed.ScopesOverlap(test.b, test.a); got != test.want || turned != test.want {
				t.Errorf("it is %v, and %v the other way round", got, turned)
			}
		})
	}
}
