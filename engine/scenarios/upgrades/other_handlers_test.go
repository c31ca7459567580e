// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package upgrades_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAVersionWithOtherFieldsSeesTheRightOld holds what a handler gets to see as old, and whether it runs, when
// an earlier version of it looked elsewhere: the truth or nothing.
func TestAVersionWithOtherFieldsSeesTheRightOld(t *testing.T) {
	// watch is the handler in each of its versions.
	watch := func(options ...dsl.Option) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.On(scene.CreateAndUpdate(), "watch", scene.NotesOld(j), options...)
		}
	}
	size, color, labels := dsl.Field("spec.size"), dsl.Field("spec.color"), dsl.Field("metadata.labels")
	blue := func(s *scene.Stage) func() { return func() { s.Set("blue", "spec", "color") } }
	two := func(s *scene.Stage) func() { return func() { s.Resize(2) } }
	gold := func(s *scene.Stage) func() { return func() { s.Set("gold", "metadata", "labels", "tier") } }
	tests := map[string]struct {
		before, after []dsl.Option
		// away is what happens while no operator runs, nil for nothing.
		away func(s *scene.Stage) func()
		// want are the calls at the start, and then those of a change of the color: with what was, or
		// without old where it was not kept.
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
		"another field, and the spec has changed elsewhere: it runs, for that is unknown": {
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
		"labels instead of a field: it runs, for that is unknown": {
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
			scene.Play(t, scene.Scenario{Operator: watch(test.before...), Play: func(s *scene.Stage) {
				s.Begin()
				var away func()
				if test.away != nil {
					away = test.away(s)
				}
				s.Upgrade(watch(test.after...), away)
				s.Called(test.want...)
				s.Process.Restart()
				s.Called()
				s.Set("green", "spec", "color")
				s.Settle()
				if got := s.Take(); len(got) != 1 || got[0] != "update map[] []" || len(test.want) > 0 {
					scene.CompareLines(t, got, test.then...)
				}
			}})
		})
	}
}

// TestAVersionWithOtherHandlersChangesNoView holds that a handler's neighbours do not take from what it sees.
func TestAVersionWithOtherHandlersChangesNoView(t *testing.T) {
	narrow := func(foo *dsl.Resource, j *kit.Journal) { foo.OnField("spec.size", "sized", scene.NotesOld(j)) }
	scene.PlayAll(t, map[string]scene.Scenario{
		"a new one that looks at everything does not see all as new": {Operator: narrow, Play: func(s *scene.Stage) {
			s.Begin()
			s.Upgrade(func(foo *dsl.Resource, j *kit.Journal) {
				narrow(foo, j)
				foo.OnUpdate("changed", j.Note("changed", func(_ context.Context, r *dsl.Request) error {
					for _, c := range r.Diff {
						if c.Path.String() != "spec.size" {
							j.Add("sees " + string(c.Op) + " " + c.Path.String())
						}
					}
					return nil
				}))
			}, nil)
			s.Called()
			s.Resize(2)
			s.Called("update map[spec:map[size:1]] [change spec.size 1 2]", "changed update")
		}},
		"a new one that looks at one field does not narrow what another one sees": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnUpdate("changed", scene.NotesOld(j)) }, Play: func(s *scene.Stage) {
				s.Begin()
				s.Upgrade(func(foo *dsl.Resource, j *kit.Journal) {
					foo.OnUpdate("changed", scene.NotesOld(j))
					foo.OnField("spec.color", "colored", j.Note("colored"))
				}, func() { s.Resize(2) })
				s.Called("update map[spec:map[color:red size:1]] [change spec.size 1 2]")
				s.Set("blue", "spec", "color")
				s.Called("update map[spec:map[color:red size:2]] [change spec.color red blue]", "colored update")
			},
		},
		"one that is taken out and comes back sees what changed meanwhile, or nothing wrong": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				narrow(foo, j)
				foo.OnField("spec.color", "colored", j.Note("colored"))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Upgrade(func(foo *dsl.Resource, j *kit.Journal) {
					foo.OnField("spec.color", "colored", j.Note("colored"))
				}, nil)
				s.Set("blue", "spec", "color")
				s.Called("colored update")
				s.Upgrade(func(foo *dsl.Resource, j *kit.Journal) {
					narrow(foo, j)
					foo.OnField("spec.color", "colored", j.Note("colored"))
				}, nil)
				s.Called()
				s.Resize(2)
				s.Settle()
				switch got := s.Take(); {
				case len(got) == 1 && (got[0] == "update map[] []" || got[0] == "update map[spec:map[size:1]] [change spec.size 1 2]"):
				default:
					s.T.Errorf("calls %v", got)
				}
			},
		},
		"it is as if nothing had happened when the earlier version comes back": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnUpdate("changed", scene.NotesOld(j)) }, Play: func(s *scene.Stage) {
				s.Begin()
				s.Upgrade(func(foo *dsl.Resource, j *kit.Journal) {
					foo.OnUpdate("changed", j.Note("changed"), dsl.Field("spec"))
				}, nil)
				s.Called()
				s.Upgrade(func(foo *dsl.Resource, j *kit.Journal) { foo.OnUpdate("changed", scene.NotesOld(j)) }, nil)
				s.Called()
				s.Resize(2)
				s.Called("update map[spec:map[color:red size:1]] [change spec.size 1 2]")
			},
		},
	})
}

// TestALevelTriggeredHandlerSeesThatItsFieldIsGone holds that a level-triggered handler learns that its field is gone.
func TestALevelTriggeredHandlerSeesThatItsFieldIsGone(t *testing.T) {
	operator := func(foo *dsl.Resource, j *kit.Journal) {
		foo.OnReconcile("sync", j.Note("sync"), dsl.Field("spec.size"))
	}
	without := func(s *scene.Stage) {
		s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
			unstructured.RemoveNestedField(o.Object, "spec", "size")
		})
	}
	once := func(s *scene.Stage) {
		s.T.Helper()
		s.Settle()
		s.Advance(time.Hour)
		if got := s.Take(); len(got) != 1 {
			s.T.Errorf("calls %v, want one, which finds the field gone", got)
		}
		s.Wrote()
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"while it runs": {Operator: operator, Play: func(s *scene.Stage) {
			s.Begin()
			without(s)
			once(s)
		}},
		"while no process runs": {Operator: operator, Play: func(s *scene.Stage) {
			s.Begin()
			scene.Stop(s)
			without(s)
			s.Process.Restart()
			once(s)
		}},
		"while nothing is watched": {Operator: operator, Play: func(s *scene.Stage) {
			s.Begin()
			s.HoldWatches(scene.Foos)
			without(s)
			s.ExpireWatches(scene.Foos)
			s.ReleaseWatches(scene.Foos)
			s.Advance(time.Minute)
			once(s)
		}},
	})
}
