// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// upgrade stops the operator; away happens, and then its next version starts.
func (s *stage) upgrade(next func(foo *dsl.Resource, j *journal), away func()) {
	s.t.Helper()
	s.Forget()
	stop(s)
	if away != nil {
		away()
	}
	s.Operator = dsl.New("op")
	s.Operator.Resource(foos, func(foo *dsl.Resource) { next(foo, &s.Journal) })
	s.Launch()
}

// TestAnotherVersionNamesOtherFields holds what a handler gets to see as old, and whether it runs, when
// an earlier version of it looked elsewhere: the truth or nothing.
func TestAnotherVersionNamesOtherFields(t *testing.T) {
	// watch is the handler in each of its versions.
	watch := func(options ...dsl.Option) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) { foo.On(both(), "watch", olds(j), options...) }
	}
	size, color, labels := dsl.Field("spec.size"), dsl.Field("spec.color"), dsl.Field("metadata.labels")
	blue := func(s *stage) func() { return func() { s.set("blue", "spec", "color") } }
	two := func(s *stage) func() { return func() { s.size(2) } }
	gold := func(s *stage) func() { return func() { s.set("gold", "metadata", "labels", "tier") } }
	tests := map[string]struct {
		before, after []dsl.Option
		// away is what happens while no operator runs, nil for nothing.
		away func(s *stage) func()
		// want are the calls at the start, and then those of a change of the color: with what was, or
		// without old where nobody kept it.
		want, then []string
	}{
		"another field, nothing changed: it was handled": {
			before: []dsl.Option{size}, after: []dsl.Option{color},
			then: []string{"update map[spec:map[color:red]] [change spec.color red green]"},
		},
		"another field, and the spec has changed: it runs, without old": {
			before: []dsl.Option{size}, after: []dsl.Option{color}, away: blue,
			want: []string{"update map[] []"}, then: []string{"update map[spec:map[color:blue]] [change spec.color blue green]"},
		},
		"another field, and the spec has changed elsewhere: it runs, for nobody can tell": {
			before: []dsl.Option{size}, after: []dsl.Option{color}, away: two,
			want: []string{"update map[] []"}, then: []string{"update map[spec:map[color:red]] [change spec.color red green]"},
		},
		"a field instead of the whole, which was kept: it sees what it was": {
			after: []dsl.Option{color}, away: blue,
			want: []string{"update map[spec:map[color:red]] [change spec.color red blue]"},
			then: []string{"update map[spec:map[color:blue]] [change spec.color blue green]"},
		},
		"a field instead of the whole, which was kept, and another one has changed: it does not run": {
			after: []dsl.Option{color}, away: two,
			then: []string{"update map[spec:map[color:red]] [change spec.color red green]"},
		},
		"the whole instead of a field, nothing changed: it runs, for labels have no generation": {
			before: []dsl.Option{size},
			want:   []string{"update map[] []"}, then: []string{"update map[spec:map[color:red size:1]] [change spec.color red green]"},
		},
		"the spec instead of a field, nothing changed: it was handled": {
			before: []dsl.Option{size}, after: []dsl.Option{dsl.Field("spec")},
			then: []string{"update map[spec:map[color:red size:1]] [change spec.color red green]"},
		},
		"labels instead of a field: it runs, for nobody can tell": {
			before: []dsl.Option{size}, after: []dsl.Option{labels},
			want: []string{"update map[] []"},
		},
		"labels instead of the whole, which was kept: it sees what they were": {
			after: []dsl.Option{labels}, away: gold,
			want: []string{"update map[] [add metadata.labels <nil> map[tier:gold]]"},
		},
		"old is wanted where a digest was kept: it was handled": {
			before: []dsl.Option{color, dsl.NoOld()}, after: []dsl.Option{color},
			then: []string{"update map[spec:map[color:red]] [change spec.color red green]"},
		},
		"old is wanted where a digest was kept, and there is a change: it runs, without old": {
			before: []dsl.Option{color, dsl.NoOld()}, after: []dsl.Option{color}, away: blue,
			want: []string{"update map[] []"}, then: []string{"update map[spec:map[color:blue]] [change spec.color blue green]"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			perform(t, scenario{watch(test.before...), func(s *stage) {
				s.begin()
				var away func()
				if test.away != nil {
					away = test.away(s)
				}
				s.upgrade(watch(test.after...), away)
				s.Called(test.want...)
				s.Process.Restart()
				s.Called()
				s.set("green", "spec", "color")
				s.Settle()
				if got := s.Take(); len(got) != 1 || got[0] != "update map[] []" || len(test.want) > 0 {
					compare(t, got, test.then...)
				}
			}})
		})
	}
}

// TestAnotherVersionHasOtherHandlers holds that a handler's neighbours do not take from what it sees.
func TestAnotherVersionHasOtherHandlers(t *testing.T) {
	narrow := func(foo *dsl.Resource, j *journal) { foo.OnField("spec.size", "sized", olds(j)) }
	scenarios(t, map[string]scenario{
		"a new one that looks at everything is not told that all is new": {narrow, func(s *stage) {
			s.begin()
			s.upgrade(func(foo *dsl.Resource, j *journal) {
				narrow(foo, j)
				foo.OnUpdate("changed", j.Note("changed", func(_ ctx, r *dsl.Request) error {
					for _, c := range r.Diff {
						if c.Path.String() != "spec.size" {
							j.Add("told of " + string(c.Op) + " " + c.Path.String())
						}
					}
					return nil
				}))
			}, nil)
			s.Called()
			s.size(2)
			s.Called("update map[spec:map[size:1]] [change spec.size 1 2]", "changed update")
		}},
		"a new one that looks at one field does not narrow what another one sees": {
			func(foo *dsl.Resource, j *journal) { foo.OnUpdate("changed", olds(j)) }, func(s *stage) {
				s.begin()
				s.upgrade(func(foo *dsl.Resource, j *journal) {
					foo.OnUpdate("changed", olds(j))
					foo.OnField("spec.color", "colored", j.Note("colored"))
				}, func() { s.size(2) })
				s.Called("update map[spec:map[color:red size:1]] [change spec.size 1 2]")
				s.set("blue", "spec", "color")
				s.Called("update map[spec:map[color:red size:2]] [change spec.color red blue]", "colored update")
			},
		},
		"one that is taken out and comes back is told of what changed meanwhile, or of nothing wrong": {
			func(foo *dsl.Resource, j *journal) {
				narrow(foo, j)
				foo.OnField("spec.color", "colored", j.Note("colored"))
			}, func(s *stage) {
				s.begin()
				s.upgrade(func(foo *dsl.Resource, j *journal) { foo.OnField("spec.color", "colored", j.Note("colored")) }, nil)
				s.set("blue", "spec", "color")
				s.Called("colored update")
				s.upgrade(func(foo *dsl.Resource, j *journal) {
					narrow(foo, j)
					foo.OnField("spec.color", "colored", j.Note("colored"))
				}, nil)
				s.Called()
				s.size(2)
				s.Settle()
				switch got := s.Take(); {
				case len(got) == 1 && (got[0] == "update map[] []" || got[0] == "update map[spec:map[size:1]] [change spec.size 1 2]"):
				default:
					s.t.Errorf("calls %v", got)
				}
			},
		},
		"it is as if nothing had happened when the earlier version comes back": {
			func(foo *dsl.Resource, j *journal) { foo.OnUpdate("changed", olds(j)) }, func(s *stage) {
				s.begin()
				s.upgrade(func(foo *dsl.Resource, j *journal) { foo.OnUpdate("changed", j.Note("changed"), dsl.Field("spec")) }, nil)
				s.Called()
				s.upgrade(func(foo *dsl.Resource, j *journal) { foo.OnUpdate("changed", olds(j)) }, nil)
				s.Called()
				s.size(2)
				s.Called("update map[spec:map[color:red size:1]] [change spec.size 1 2]")
			},
		},
	})
}

// TestFieldsThatGoWhileNobodyLooks holds that a level-triggered handler learns that its field is gone.
func TestFieldsThatGoWhileNobodyLooks(t *testing.T) {
	operator := func(foo *dsl.Resource, j *journal) { foo.OnReconcile("sync", j.Note("sync"), dsl.Field("spec.size")) }
	without := func(s *stage) {
		s.Update(foos, "default", "web", func(o *unstructured.Unstructured) {
			unstructured.RemoveNestedField(o.Object, "spec", "size")
		})
	}
	once := func(s *stage) {
		s.t.Helper()
		s.Settle()
		s.Advance(time.Hour)
		if got := s.Take(); len(got) != 1 {
			s.t.Errorf("calls %v, want one, which finds the field gone", got)
		}
		s.Wrote()
	}
	scenarios(t, map[string]scenario{
		"while it runs": {operator, func(s *stage) {
			s.begin()
			without(s)
			once(s)
		}},
		"while no process runs": {operator, func(s *stage) {
			s.begin()
			stop(s)
			without(s)
			s.Process.Restart()
			once(s)
		}},
		"while nothing is watched": {operator, func(s *stage) {
			s.begin()
			s.HoldWatches(foos)
			without(s)
			s.ExpireWatches(foos)
			s.ReleaseWatches(foos)
			s.Advance(time.Minute)
			once(s)
		}},
	})
}
