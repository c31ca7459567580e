// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/handlers/graph"
)

type needs = map[string][]string

func TestCycle(t *testing.T) {
	tests := map[string]struct {
		needs needs
		want  []string
	}{
		"nothing":                       {needs{}, nil},
		"names alone":                   {needs{"a": nil, "b": nil}, nil},
		"a diamond is none":             {needs{"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": nil}, nil},
		"two that need each other":      {needs{"a": {"b"}, "b": {"a"}}, []string{"a", "b", "a"}},
		"one that needs itself":         {needs{"a": {"a"}}, []string{"a", "a"}},
		"three, found from outside":     {needs{"a": {"d"}, "b": {"c"}, "c": {"d"}, "d": {"b"}}, []string{"d", "b", "c", "d"}},
		"a name that is not there ends": {needs{"a": {"x"}, "b": {"a"}}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, graph.New(test.needs).Cycle()); diff != "" {
				t.Errorf("Cycle() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLevels(t *testing.T) {
	tests := map[string]struct {
		needs needs
		want  [][]string
	}{
		"nothing":                         {needs{}, nil},
		"what is apart is side by side":   {needs{"b": nil, "a": nil}, [][]string{{"a", "b"}}},
		"a diamond":                       {needs{"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": nil}, [][]string{{"d"}, {"b", "c"}, {"a"}}},
		"what needs two ways is behind":   {needs{"a": {"b", "c"}, "b": {"c"}, "c": nil}, [][]string{{"c"}, {"b"}, {"a"}}},
		"a circle and what needs it miss": {needs{"a": {"b"}, "b": {"a"}, "c": {"a"}, "d": nil}, [][]string{{"d"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, graph.New(test.needs).Levels()); diff != "" {
				t.Errorf("Levels() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLast(t *testing.T) {
	chain := needs{"a": nil, "b": {"a"}, "c": {"b"}, "d": nil}
	tests := map[string]struct {
		among, want []string
	}{
		"none of none":                      {nil, nil},
		"the end of the chain, what is off": {[]string{"a", "b", "c", "d"}, []string{"c", "d"}},
		"a link that is gone still holds":   {[]string{"a", "c"}, []string{"c"}},
		"the first when it is alone":        {[]string{"a"}, []string{"a"}},
		"a name that is not in the graph":   {[]string{"x", "a"}, []string{"a", "x"}},
		"a name given twice":                {[]string{"a", "a"}, []string{"a"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, graph.New(chain).Last(test.among)); diff != "" {
				t.Errorf("Last() (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOrdersOfRandomGraphs holds that levels never put a name before what it needs, and that taking
// away the last again and again is the way back.
func TestOrdersOfRandomGraphs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		in := needs{}
		n := 1 + random.IntN(9)
		for i := range n {
			var others []string
			for j := range i {
				if random.IntN(3) == 0 {
					others = append(others, strconv.Itoa(j))
				}
			}
			in[strconv.Itoa(i)] = others
		}
		g := graph.New(in)
		if cycle := g.Cycle(); cycle != nil {
			t.Fatalf("%v: cycle %v", in, cycle)
		}
		made := map[string]bool{}
		for _, level := range g.Levels() {
			for _, name := range level {
				for _, other := range in[name] {
					if !made[other] {
						t.Fatalf("%v: %s is made before %s", in, name, other)
					}
				}
			}
			for _, name := range level {
				made[name] = true
			}
		}
		if len(made) != n {
			t.Fatalf("%v: %d of %d are made", in, len(made), n)
		}
		for left := g.Names(); len(left) > 0; {
			wave := g.Last(left)
			if len(wave) == 0 {
				t.Fatalf("%v: nothing of %v can go", in, left)
			}
			left = slices.DeleteFunc(left, func(name string) bool { return slices.Contains(wave, name) })
			for _, name := range left {
				for _, gone := range wave {
					if slices.Contains(in[name], gone) {
						t.Fatalf("%v: %s goes before %s", in, gone, name)
					}
				}
			}
		}
	}
}
