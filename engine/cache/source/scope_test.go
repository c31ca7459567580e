// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
)

// TestNames holds which namespaces a scope has of those that exist.
func TestNames(t *testing.T) {
	exist := map[string]map[string]string{
		"team-b": {"team": "b"}, "team-a": {"team": "a"}, "team-old": {"team": "old"}, "kube-system": nil,
	}
	tests := map[string]struct {
		patterns []string
		selector string
		want     []string
		live     bool
	}{
		"no pattern means all at once":               {nil, "", []string{""}, false},
		"names are taken as they are, once each":     {[]string{"b", "a", "b"}, "", []string{"a", "b"}, false},
		"a glob takes in those that exist":           {[]string{"team-?"}, "", []string{"team-a", "team-b"}, true},
		"one that takes out is stronger":             {[]string{"team-*", "!team-old"}, "", []string{"team-a", "team-b"}, true},
		"and so wherever it stands":                  {[]string{"!team-old", "team-*"}, "", []string{"team-a", "team-b"}, true},
		"patterns that take out alone leave others":  {[]string{"!team-*"}, "", []string{"kube-system"}, true},
		"a name beside a glob must exist":            {[]string{"team-o*", "other"}, "", []string{"team-old"}, true},
		"a faulty glob matches nothing":              {[]string{"[", "team-a"}, "", []string{"team-a"}, true},
		"labels alone take in those that have them":  {nil, "team=a", []string{"team-a"}, true},
		"labels and globs take in what matches both": {[]string{"team-?"}, "team", []string{"team-a", "team-b"}, true},
		"a name must have the labels, too":           {[]string{"team-b", "kube-system"}, "team", []string{"team-b"}, true},
		"labels that must be absent":                 {[]string{"!team-old"}, "!team", []string{"kube-system"}, true},
		"a faulty selector matches nothing":          {nil, "=", nil, true},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			s := source.NewScope(source.ScopeSettings{Of: dsl.Scope{Namespaces: tt.patterns, NamespaceSelector: tt.selector}, Namespaces: &cluster{}})
			for name, labels := range exist {
				s.OnUpdated(name, labels)
			}
			s.Listed(t.Context(), true)
			got, known := s.Names(true)
			if diff := cmp.Diff(tt.want, got); diff != "" || !known || s.Live() != tt.live {
				t.Errorf("known is %v, live %v, want %v; names (-want +got):\n%s", known, s.Live(), tt.live, diff)
			}
			for _, name := range []string{"team-a", "team-b", "team-old", "kube-system", "a", "b", "other"} {
				if want := slices.Contains(tt.want, name); s.Has(name) != want {
					t.Errorf("whether %s is one of them is %v, want %v", name, !want, want)
				}
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
	s := source.NewScope(source.ScopeSettings{Of: dsl.Scope{Namespaces: []string{"team-*"}}, Namespaces: c})
	steps := []struct {
		what  string
		do    func()
		want  int
		lacks bool
	}{
		{"what comes before all were listed is no change", func() { s.OnUpdated("team-b", nil) }, 0, false},
		{"the first listing is one", func() { s.Listed(t.Context(), true) }, 1, true},
		{"a later one does not count", func() { s.Listed(t.Context(), true) }, 1, true},
		{"one that comes is", func() { s.OnUpdated("team-a", nil) }, 2, false},
		{"one that changes is none", func() { s.OnUpdated("team-a", nil) }, 2, false},
		{"nor is one that is not in the scope", func() { s.OnUpdated("other", nil) }, 2, false},
		{"one that goes is", func() { s.OnDeleted("team-a") }, 3, true},
	}
	for _, step := range steps {
		step.do()
		if c.changes != step.want || s.IsMissing("team-a") != step.lacks {
			t.Errorf("%s: %d changes, want %d; lacks it: %v", step.what, c.changes, step.want, s.IsMissing("team-a"))
		}
	}
	if s.IsMissing("elsewhere") {
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
		meanwhile func(*source.Scope)
		want      []string
		again     bool
	}{
		"one that is gone leaves the scope":             {true, nil, func(*source.Scope) {}, nil, false},
		"one that is there stays":                       {false, nil, func(*source.Scope) {}, there, true},
		"one whose state is unknown stays":              {false, unknown, func(*source.Scope) {}, there, true},
		"one that comes while it is asked for stays":    {true, nil, func(s *source.Scope) { s.OnUpdated(name, nil) }, there, false},
		"one that comes and is lost meanwhile stays":    {true, nil, func(s *source.Scope) { s.OnUpdated(name, nil); s.OnLost(name) }, there, true},
		"one that is lost again meanwhile is asked for": {true, nil, func(s *source.Scope) { s.OnLost(name) }, there, true},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			var s *source.Scope
			s = source.NewScope(source.ScopeSettings{Of: dsl.Scope{Namespaces: []string{"team-*"}}, Namespaces: &cluster{gone: func() (bool, error) {
				tt.meanwhile(s)
				return tt.gone, tt.err
			}}})
			s.OnUpdated(name, nil)
			s.OnLost(name)
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

// TestChangesOfLabels holds when labels change a scope, and what it knows to be outside.
func TestChangesOfLabels(t *testing.T) {
	c := &cluster{}
	s := source.NewScope(source.ScopeSettings{Of: dsl.Scope{Namespaces: []string{"team-*"}, NamespaceSelector: "on=yes"}, Namespaces: c})
	on, off := map[string]string{"on": "yes", "more": "x"}, map[string]string{"on": "no"}
	steps := []struct {
		what           string
		do             func()
		want           int
		outside, lacks bool
	}{
		{"before all are listed nothing is known to be outside", func() { s.OnUpdated("team-a", off) }, 0, false, false},
		{"the first listing is a change", func() { s.Listed(t.Context(), true) }, 1, true, false},
		{"labels that come are", func() { s.OnUpdated("team-a", on) }, 2, false, false},
		{"other labels are none", func() { s.OnUpdated("team-a", map[string]string{"on": "yes"}) }, 2, false, false},
		{"nor are those of a name that does not match", func() { s.OnUpdated("other", on) }, 2, false, false},
		{"labels that go are", func() { s.OnUpdated("team-a", off) }, 3, true, false},
		{"the end of a namespace without them is none", func() { s.OnDeleted("team-a") }, 3, true, true},
		{"one that comes with them is", func() { s.OnUpdated("team-a", on) }, 4, false, false},
		{"and its end", func() { s.OnDeleted("team-a") }, 5, true, true},
	}
	for _, step := range steps {
		step.do()
		if c.changes != step.want || s.IsOutside("team-a") != step.outside || s.IsMissing("team-a") != step.lacks {
			t.Errorf("%s: %d changes, want %d; outside: %v; lacks it: %v", step.what, c.changes, step.want, s.IsOutside("team-a"), s.IsMissing("team-a"))
		}
	}
	if !s.IsOutside("other") {
		t.Error("a namespace whose name does not match is not outside")
	}
	if source.NewScope(source.ScopeSettings{}).IsOutside("other") {
		t.Error("a namespace is outside the whole cluster")
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
	overlap := func(a, b []string) bool {
		return source.ScopesOverlap(dsl.Scope{Namespaces: a}, dsl.Scope{Namespaces: b})
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, turned := overlap(test.a, test.b), overlap(test.b, test.a); got != test.want || turned != test.want {
				t.Errorf("it is %v, and %v the other way round", got, turned)
			}
		})
	}
}

// TestOverlapOfLabels holds which selectors exclude each other.
func TestOverlapOfLabels(t *testing.T) {
	tests := map[string]struct {
		a, b string
		want bool
	}{
		"two values of one label":                      {"shard=a", "shard=b", false},
		"two values of two labels":                     {"shard=a", "team=b", true},
		"values of which some are common":              {"shard in (a,b)", "shard in (b,c)", true},
		"values of which none are":                     {"shard in (a,b)", "shard in (c,d)", false},
		"a value, and all but that":                    {"shard=a", "shard!=a", false},
		"a value, and all but another one":             {"shard=a", "shard!=b", true},
		"a label, and its absence":                     {"shard", "!shard", false},
		"its absence, and all but a value":             {"!shard", "shard!=a", true},
		"one requirement of several":                   {"shard=a,team", "team=x,shard=b", false},
		"labels, and none":                             {"shard=a", "", true},
		"what cannot be read may be anything":          {"shard=a", "=", true},
		"a number, and one outside":                    {"size>3", "size=2", false},
		"two ranges may, also where they do not":       {"size>3", "size<2", true},
		"all but some values, and all but some others": {"shard notin (a)", "shard notin (b)", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a, b := dsl.Scope{NamespaceSelector: test.a}, dsl.Scope{NamespaceSelector: test.b}
			if got, turned := source.ScopesOverlap(a, b), source.ScopesOverlap(b, a); got != test.want || turned != test.want {
				t.Errorf("it is %v, and %v the other way round", got, turned)
			}
		})
	}
	names, labelled := dsl.Scope{Namespaces: []string{"a"}, NamespaceSelector: "on"}, dsl.Scope{Namespaces: []string{"b"}, NamespaceSelector: "on"}
	if source.ScopesOverlap(names, labelled) {
		t.Error("two names overlap where they have labels, too")
	}
}

// TestText holds that a scope is read from a lock as it was written.
func TestText(t *testing.T) {
	for text, scope := range map[string]dsl.Scope{
		"":                            {},
		"team-*,!team-old":            {Namespaces: []string{"team-*", "!team-old"}},
		";shard in (a,b),!paused":     {NamespaceSelector: "shard in (a,b),!paused"},
		"team-*,other;shard in (a,b)": {Namespaces: []string{"team-*", "other"}, NamespaceSelector: "shard in (a,b)"},
	} {
		if got := source.EncodeScope(scope); got != text {
			t.Errorf("it is written as %q, want %q", got, text)
		}
		if diff := cmp.Diff(scope, source.DecodeScope(text)); diff != "" {
			t.Errorf("%q is read as (-want +got):\n%s", text, diff)
		}
	}
}
